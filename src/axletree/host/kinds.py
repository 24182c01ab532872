"""The kinds of failure that ship with Axletree."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from axletree.check.diagnosis.decode import decode_kinds
from axletree.core.errors import IntegrityError, Problem
from axletree.host.shipped_data import read_shipped

if TYPE_CHECKING:
    from axletree.check.diagnosis.kind import Kind


@cache
def read_kinds() -> tuple[Kind, ...]:
    """Every kind of the data files, in the order of the files' names and of their tables.

    Raises:
        HostError: the data files are missing or can't be read.
        IntegrityError: one is not in its form; names all that are wrong.
    """
    kinds: list[Kind] = []
    problems: list[Problem] = []
    for name, data in read_shipped("axletree.check/diagnosis/kinds", "*.toml"):
        try:
            kinds += decode_kinds(data, file=name)
        except IntegrityError as error:
            problems += error.problems
    if problems:
        raise IntegrityError(*problems)
    return tuple(kinds)
