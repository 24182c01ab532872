"""What an environment is, as it lies in its folder: ``axletree-env.json``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import msgspec

from axletree.core.errors import IntegrityError, Problem
from axletree.core.formats import format_problem
from axletree.environment.delta import Activation, Delta, Order, checked

if TYPE_CHECKING:
    from pathlib import PurePath

FILE = "axletree-env.json"
PREFIX = "prefix"
"""Folder of an environment with what was installed."""
Provider = Literal["venv", "conda", "system"]


class InstalledPackage(msgspec.Struct, frozen=True, kw_only=True):
    """What was installed."""

    name: str
    version: str
    build: str = ""
    """Conda's build string; empty for a wheel."""
    url: str = ""
    sha256: str = ""
    md5: str = ""


class Description(msgspec.Struct, frozen=True, kw_only=True):
    """An environment."""

    schema: Literal[1] = 1
    folder: str
    """Where it was created; it cannot be moved."""
    recipe: str
    variant: str
    name: str
    """Its name in the recipe."""
    provider: Provider
    python: str
    requires: tuple[str, ...] = ()
    channels: tuple[str, ...] = ()
    wheels: tuple[str, ...] = ()
    """Requirements of wheels on top of conda packages."""
    toolkit: str | None = None
    """Root of the GPU toolkit."""
    packages: tuple[InstalledPackage, ...] = ()
    order: Order
    deltas: tuple[Delta, ...]
    notes: tuple[str, ...] = ()
    """Notes from its creation, such as a workaround for a fault of a compiler."""

    @property
    def activation(self) -> Activation:
        """What activating it does.

        Raises:
            IntegrityError: the file was edited into what shells can't do.
        """
        return checked(Activation(folder=self.folder, deltas=self.deltas))


class _Envelope(msgspec.Struct):
    schema: int = 1


def decode_description(data: bytes, folder: PurePath) -> Description:
    """Read a description.

    Raises:
        IntegrityError: it is none of this version, or of another folder.
    """
    file, hint = str(folder / FILE), "create it again: axletree env create"
    try:
        problem = format_problem(msgspec.json.decode(data, type=_Envelope).schema, 1, file=file, remake=hint)
        if problem is not None:
            raise IntegrityError(problem)
        description = msgspec.json.decode(data, type=Description)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise IntegrityError(
            Problem(file=file, message=f"the file does not describe an environment: {error}", hint=hint)
        ) from error
    if description.folder != str(folder):
        message = f"the environment was created at {description.folder}, and contains paths to that folder"
        hint = f"create it again here: axletree env create {description.recipe} -v {description.variant} {folder}"
        raise IntegrityError(Problem(file=str(folder), message=message, hint=hint))
    return description
