"""What an environment changes: one variable each, with who wants it; and the order in which tools are to look."""

from __future__ import annotations

import re
from typing import Literal

import msgspec

from axletree.core.errors import IntegrityError, Problem

Operation = Literal["prepend", "append", "set", "unset"]
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
"""A variable that every shell can hold (POSIX, "Environment Variables")."""
RESERVED = re.compile(r"AXLETREE_(ACTIVE|[0-9]+_.*)")
"""Variables in which an activation remembers what was."""


class Delta(msgspec.Struct, frozen=True, kw_only=True):
    """A change of one variable."""

    variable: str
    operation: Operation
    value: str = ""
    """For ``prepend`` and ``append``: one or more entries, with the separator between them; empty for ``unset``."""
    origin: str
    """What sets it: ``conda environment``, ``ROCm at /opt/rocm``, a script of a package."""
    separator: Literal[":", " "] = ":"
    """The separator of list entries."""


class SearchFolder(msgspec.Struct, frozen=True, kw_only=True):
    """A folder that tools search."""

    path: str
    origin: str


class Order(msgspec.Struct, frozen=True, kw_only=True):
    """The search lists of tools, in order; there are three because different tools need different orders."""

    include: tuple[SearchFolder, ...] = ()
    """For headers, by the compiler."""
    link: tuple[SearchFolder, ...] = ()
    """For libraries, by the linker."""
    run: tuple[SearchFolder, ...] = ()
    """For libraries, by the loader."""


class Activation(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that activating an environment does."""

    folder: str
    """The environment's folder, which identifies it. Activating an active environment changes nothing."""
    deltas: tuple[Delta, ...]


def checked(activation: Activation) -> Activation:
    """The same, if shells can do it; a description may have been edited.

    Raises:
        IntegrityError: names all variables and values that they can't.
    """
    problems = [problem for delta in activation.deltas if (problem := _problem(delta)) is not None]
    if "\0" in activation.folder:
        problems.append("the folder's name contains a NUL character")
    if problems:
        raise IntegrityError(*(Problem(file=activation.folder, message=problem) for problem in problems))
    return activation


def _problem(delta: Delta) -> str | None:
    if NAME.fullmatch(delta.variable) is None:
        return f"{delta.variable!r} is not a valid environment variable name"
    if RESERVED.fullmatch(delta.variable):
        return f"{delta.variable} is reserved for activation; choose another name"
    if "\0" in delta.value:
        return f"the value of {delta.variable} contains a NUL character"
    return None


def entries(value: str, separator: str = ":") -> tuple[str, ...]:
    """The entries of a list that are not empty."""
    return tuple(entry for entry in value.split(separator) if entry)
