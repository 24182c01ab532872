"""From a log to findings: matches of kinds, what the tools say of how they ended, then what of it is the root cause."""

from __future__ import annotations

import re
from collections import deque
from typing import TYPE_CHECKING

import msgspec

from axletree.check.diagnosis.decode import PLACE
from axletree.check.diagnosis.kind import Kind  # noqa: TC001 (a field's type)
from axletree.check.diagnosis.log import read_blocks
from axletree.check.diagnosis.outcome import FAILING, SUCCEEDING, Outcome, Statement, decide, is_forgiven, is_noise
from axletree.check.diagnosis.rank import Candidate, rank
from axletree.check.diagnosis.scan import Hit, Scanner

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from axletree.check.diagnosis.log import Block

_TAIL = 60
_KEPT = 20
"""Matches of one kind that are kept: the first ones."""
_STATEMENTS = 2000
_EXCERPT = 6
_WIDTH = 400


class EvidenceLine(msgspec.Struct, frozen=True, kw_only=True):
    """A line of the log."""

    line: int
    """Its number in the raw log, counted from 1."""
    text: str


class Diagnosed(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that a log says."""

    rule: str
    severity: str
    title: str
    cause: str
    fix: str
    evidence: tuple[EvidenceLine, ...]


class Diagnosis(msgspec.Struct, frozen=True, kw_only=True):
    """What is to be said of a log."""

    outcome: Outcome
    findings: tuple[Diagnosed, ...]
    """The root cause first."""


class Engine:
    """Kinds, made ready to be looked for."""

    def __init__(self, kinds: Iterable[Kind]) -> None:
        """Compile all expressions of the kinds."""
        patterns: list[tuple[Kind | bool, str]] = [(kind, pattern) for kind in kinds for pattern in kind.patterns]
        patterns += [(False, pattern) for pattern in FAILING]
        patterns += [(True, pattern) for pattern in SUCCEEDING]
        self._scanner: Scanner[Kind | bool] = Scanner(patterns)

    def diagnose(self, chunks: Iterable[bytes]) -> Diagnosis:
        """Read a log once and say what is in it.

        Args:
            chunks: The log, in pieces of any size.

        Raises:
            BinaryLogError: it is no text.
        """
        candidates: list[Candidate] = []
        counts: dict[str, int] = {}
        statements: dict[int, Statement] = {}
        tail: deque[str] = deque(maxlen=_TAIL)
        lines = 0
        for block in read_blocks(chunks):
            lines = block.first + block.own.stop - 1
            tail.extend(_text(block, at) for at in block.own[-_TAIL:])
            for hit in self._scanner.scan(block):
                if isinstance(hit.owner, bool):
                    if len(statements) < _STATEMENTS:
                        line = block.first + hit.at
                        statements[line] = Statement(line=line, failed=not hit.owner, text=_text(block, hit.at))
                elif counts.get(hit.owner.id, 0) < _KEPT:
                    candidate = _candidate(block, hit, hit.owner)
                    if candidate is not None:
                        counts[hit.owner.id] = counts.get(hit.owner.id, 0) + 1
                        candidates.append(candidate)
        said = [statements[line] for line in sorted(statements)]
        outcome = decide(said, tail, lines)
        return Diagnosis(
            outcome=outcome, findings=tuple(_diagnosed(candidate) for candidate in rank(candidates, said, outcome))
        )


def _text(block: Block, at: int) -> str:
    return block.lines[at].decode("utf-8", "replace")


def _window(block: Block, low: int, high: int) -> list[str]:
    return [line.decode("utf-8", "replace") for line in block.lines[max(0, low) : high + 1]]


def _candidate(block: Block, hit: Hit[Kind | bool], kind: Kind) -> Candidate | None:
    """What a match is worth; ``None`` where its kind asks for more, or for less, around it."""
    if kind.needs or kind.unless:
        around = "\n".join(_window(block, hit.at - kind.window, hit.end + kind.window))
        if not all(re.search(pattern, around, re.MULTILINE) for pattern in kind.needs):
            return None
        if any(re.search(pattern, around, re.MULTILINE) for pattern in kind.unless):
            return None
    start = next((at for at in range(hit.at, max(-1, hit.at - 4), -1) if b"CMake Error" in block.lines[at]), hit.at)
    end = min(max(hit.end, hit.at), start + _EXCERPT - 1, len(block.lines) - 1)
    return Candidate(
        kind=kind,
        line=block.first + hit.at,
        excerpt=tuple((block.first + at, _text(block, at)[:_WIDTH]) for at in range(start, end + 1)),
        groups=hit.groups,
        proven=not is_noise(_window(block, start, hit.end)),
        forgiven=is_forgiven(_window(block, hit.at - 3, hit.end + 3)),
    )


def _diagnosed(candidate: Candidate) -> Diagnosed:
    kind = candidate.kind
    return Diagnosed(
        rule=kind.id,
        severity=kind.severity,
        title=_filled(kind.title, candidate.groups),
        cause=_filled(kind.cause, candidate.groups),
        fix=_filled(kind.fix, candidate.groups).strip(),
        evidence=tuple(EvidenceLine(line=line, text=text.rstrip()) for line, text in _trimmed(candidate.excerpt)),
    )


def _trimmed(excerpt: Sequence[tuple[int, str]]) -> Iterator[tuple[int, str]]:
    """An excerpt without empty lines."""
    return ((line, text) for line, text in excerpt if text.strip())


def _filled(text: str, groups: dict[str, str]) -> str:
    """A text with what the match caught."""
    return PLACE.sub(lambda place: groups.get(place[1], place[2] or f"({place[1]})"), text)
