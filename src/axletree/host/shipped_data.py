"""Reads data files that ship with Axletree, or with what it depends on; each once."""

from __future__ import annotations

from fnmatch import fnmatchcase
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any, TypeVar, cast

from axletree.core.errors import HostError
from axletree.core.values import Digest, digest_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from axletree.core.shipped import Shipped

T = TypeVar("T")


def read_shipped(shipped: Shipped[T]) -> T:
    """What shipped data says.

    Raises:
        HostError: a file is missing or cannot be read.
        IntegrityError: one is not in its form.
    """
    return cast("T", _decoded(shipped))


@cache
def shipped_digest(shipped: Shipped[Any]) -> Digest:
    """What stands for shipped data in keys.

    Raises:
        HostError: a file is missing or cannot be read.
    """
    return digest_of(b"".join(_contents(shipped).values()))


@cache
def _decoded(shipped: Shipped[Any]) -> object:
    return shipped.decode(_contents(shipped))


@cache
def _contents(shipped: Shipped[Any]) -> Mapping[str, bytes]:
    package, _, inner = shipped.folder.partition("/")
    hint = f"reinstall {package.partition('.')[0]}"
    found: dict[str, bytes] = {}
    for pattern in (*shipped.patterns, *shipped.optional):
        try:
            there = sorted((files(package) / inner).iterdir(), key=lambda file: file.name)
            matching = {file.name: file.read_bytes() for file in there if fnmatchcase(file.name, pattern)}
        except OSError as error:
            raise HostError(f"{pattern} in {shipped.folder} cannot be read: {error}", hint=hint) from error
        if not matching and pattern in shipped.patterns:
            raise HostError(f"{pattern} is missing from {shipped.folder}", hint=hint)
        found |= matching
    return found
