"""The kinds of failure that ship with Axletree."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING

from axletree.check.diagnosis.decode import decode_kinds
from axletree.core.errors import HostError, IntegrityError, Problem

if TYPE_CHECKING:
    from axletree.check.diagnosis.kind import Kind


@cache
def read_kinds() -> tuple[Kind, ...]:
    """Every kind of the data files, in the order of the files' names and of their tables.

    Raises:
        HostError: the data files are missing or can't be read.
        IntegrityError: one is not in its form; names all that are wrong.
    """
    folder = files("axletree.check") / "diagnosis" / "kinds"
    try:
        found = sorted((file.name, file.read_bytes()) for file in folder.iterdir() if file.name.endswith(".toml"))
    except OSError as error:
        raise HostError(f"the kinds of failure can't be read: {error}", hint="reinstall axletree") from error
    if not found:
        raise HostError("the kinds of failure are missing", hint="reinstall axletree")
    kinds: list[Kind] = []
    problems: list[Problem] = []
    for name, data in found:
        try:
            kinds += decode_kinds(data, file=name)
        except IntegrityError as error:
            problems += error.problems
    if problems:
        raise IntegrityError(*problems)
    return tuple(kinds)
