"""Which match is the root cause: at one place the more specific one, and of the places the first that failed."""

from __future__ import annotations

from bisect import bisect_left
from itertools import pairwise
from typing import TYPE_CHECKING

import msgspec

from axletree.check.diagnosis.kind import GENERIC, Kind
from axletree.check.diagnosis.linear import expression
from axletree.check.diagnosis.outcome import recoveries, within

if TYPE_CHECKING:
    from collections.abc import Sequence

    from axletree.check.diagnosis.outcome import LogOutcome, Statement

_ENDS = expression(r"^FAILED: |make(?:\[\d+\])?: \*\*\* ")
"""Statements with which ninja and make begin, or end, what one command printed."""

_GAP = 25
"""Lines between matches of one place, at most."""

_TELLING = 9
"""Kinds less specific pass on what others said."""


class Candidate(msgspec.Struct, frozen=True, kw_only=True):
    """A match of a kind."""

    kind: Kind
    line: int
    """Where it begins."""
    own: int
    """The line that names the error."""
    excerpt: tuple[tuple[int, str], ...]
    """Line numbers and texts."""
    groups: dict[str, str]
    proven: bool
    """Whether the words beside it say that a process ended."""
    forgiven: bool
    """Whether the words around it say that the program went on."""


class _Last(msgspec.Struct, frozen=True, kw_only=True):
    """The last statements of either sort, by their lines."""

    failed: int | None
    succeeded: int | None


def rank(candidates: Sequence[Candidate], said: Sequence[Statement], outcome: LogOutcome) -> list[Candidate]:
    """The matches that count, the root cause first, each kind once; warnings behind errors."""
    made_good = recoveries(said)
    said = [statement for statement in said if not within(made_good, statement.line)]
    last = _Last(
        failed=max((statement.line for statement in said if statement.failed), default=None),
        succeeded=max((statement.line for statement in said if not statement.failed), default=None),
    )
    errors = [
        found
        for found in candidates
        if found.kind.severity == "error" and _counts(found, last, outcome) and not within(made_good, found.line)
    ]
    errors.sort(key=lambda found: (found.line, -found.kind.specific))
    places: list[list[Candidate]] = [errors[:1]] if errors else []
    ends = [statement.line for statement in said if _ENDS.search(statement.text)]
    for before, found in pairwise(errors):
        apart = bisect_left(ends, before.line) != bisect_left(ends, found.line)
        if found.line - before.line <= _GAP and not apart:
            places[-1].append(found)
        else:
            places.append([found])
    places = [_closest(place) for place in places]
    places.sort(key=lambda place: (_tier(place, said), min(found.line for found in place)))
    if any(found.kind.specific >= _TELLING for place in places for found in place):
        places = [place for place in places if any(found.kind.specific >= _TELLING for found in place)]
    warnings = sorted((found for found in candidates if found.kind.severity == "warning"), key=lambda found: found.line)
    chosen: dict[str, Candidate] = {}
    for found in (*(found for place in places for found in place), *warnings):
        chosen.setdefault(found.kind.id, found)
    return list(chosen.values())


def _closest(place: Sequence[Candidate]) -> list[Candidate]:
    """The matches of a place, the most specific first; generic ones only where there is nothing else."""
    ordered = sorted(place, key=lambda found: (-found.kind.specific, found.line))
    return [found for found in ordered if found.kind.specific > GENERIC] or ordered[:1]


def is_after(found: Candidate, outcome: LogOutcome) -> bool:
    """Whether an error comes after all that is said of how the log ends."""
    return found.kind.severity == "error" and outcome.said is not None and found.line > outcome.said.line


def _counts(found: Candidate, last: _Last, outcome: LogOutcome) -> bool:
    """Whether a match may be an error at all, given how the log ends."""
    if outcome.ending == "succeeded" or _went_on(found, last):
        generic = found.kind.specific <= GENERIC
        return found.proven and not found.forgiven and (not generic or is_after(found, outcome))
    return outcome.ending == "failed" or found.kind.specific > GENERIC or not found.forgiven


def _went_on(found: Candidate, last: _Last) -> bool:
    """Whether nothing failed at or after a match, and something succeeded after it."""
    failed = last.failed is not None and last.failed >= found.line - 5
    return not failed and last.succeeded is not None and last.succeeded >= found.line


def _tier(place: Sequence[Candidate], said: Sequence[Statement]) -> int:
    """0: a failure is stated after it; 1: its own words say so; 2: neither. What only wraps others comes behind."""
    line = min(found.line for found in place)
    wrapper = 3 * all(found.kind.specific < _TELLING for found in place)
    if not any(found.proven for found in place):
        return wrapper + 2
    at = bisect_left(said, line - 5, key=_line)
    return wrapper + (0 if at < len(said) and said[at].failed else 1)


def _line(statement: Statement) -> int:
    return statement.line
