"""Kinds from the text of a TOML file, with everything that is wrong in it."""

from __future__ import annotations

import re
import tomllib
from typing import TYPE_CHECKING

import msgspec

from axletree.check.diagnosis.in_stage import STAGE_WORDS
from axletree.check.diagnosis.kind import MAX_WINDOW, Kind
from axletree.check.diagnosis.linear import expression
from axletree.check.diagnosis.literals import MIN_LENGTH, required_texts
from axletree.core.errors import IntegrityError, Problem
from axletree.core.shipped import shipped_list

if TYPE_CHECKING:
    from collections.abc import Iterator

PLACE = re.compile(r"(?<![$\w{])\{([a-z_]+)(?:\|([^{}\n]*))?\}")
"""A named group in a text. ``${HOME}`` is none, nor is what holds a capital letter."""


def decode_kinds(data: bytes, *, file: str) -> tuple[Kind, ...]:
    """The kinds of one file, in its order.

    Args:
        data: TOML: tables ``[[kind]]``.
        file: Its name, for messages; without its suffix it is the stage of all kinds in it.

    Raises:
        IntegrityError: it is not in its form; names every kind that is wrong.
    """
    try:
        table = tomllib.loads(data.decode("utf-8"))
        if table.keys() - {"kind"}:
            raise IntegrityError(Problem(file=file, message="the file contains keys other than 'kind'"))
        kinds = msgspec.convert(table.get("kind", []), tuple[Kind, ...])
    except (ValueError, msgspec.ValidationError) as error:
        raise IntegrityError(Problem(file=file, message=f"the file is not a valid list of kinds: {error}")) from error
    problems = [
        Problem(file=file, key=kind.id, message=message)
        for kind in kinds
        for message in _faults(kind, file.rpartition("/")[2].removesuffix(".toml"))
    ]
    names = [kind.id for kind in kinds]
    problems += [
        Problem(file=file, key=name, message="the kind is defined twice") for name in names if names.count(name) > 1
    ]
    if problems:
        raise IntegrityError(*problems)
    return kinds


FAILURE_KINDS = shipped_list("*.toml", decode_kinds, folder="axletree.check/diagnosis/kinds")
"""The kinds that ship."""


def _faults(kind: Kind, stage: str) -> Iterator[str]:
    if kind.stage != stage or not re.fullmatch(rf"{stage}/[a-z0-9]+(-[a-z0-9]+)*", kind.id):
        yield f"stage must be {stage!r} and the id must have the form {stage}/NAME (found stage {kind.stage!r})"
    if not 0 <= kind.specific <= 100:
        yield "specific must be between 0 and 100"
    if not 0 <= kind.window <= MAX_WINDOW:
        yield f"window must be between 0 and {MAX_WINDOW} lines"
    if not kind.patterns or not kind.samples:
        yield "the kind needs at least one pattern and one sample"
    broken = False
    for pattern in (*kind.patterns, *kind.needs, *kind.unless):
        try:
            expression(pattern)
        except ValueError as error:
            broken = True
            yield f"{pattern!r} cannot be searched in bounded time: {error}"
    if broken:
        return
    for pattern in kind.patterns:
        if not required_texts(pattern):
            yield f"{pattern!r} has no literal text of at least {MIN_LENGTH} characters that every match contains"
    yield from _unknown_groups(kind)


def _unknown_groups(kind: Kind) -> Iterator[str]:
    groups = [expression(pattern).names for pattern in kind.patterns]
    in_stage = [place for place in PLACE.findall(kind.fix_in_stage) if place[0] not in STAGE_WORDS]
    for name, words in (*PLACE.findall(f"{kind.cause}\n{kind.fix}\n{kind.title}"), *in_stage):
        if not any(name in named for named in groups):
            yield f"{{{name}}} is not a named group in any pattern"
        elif not words and not all(name in named for named in groups):
            yield f"{{{name}}} is a named group in only some of the patterns; write {{{name}|words}}"
