"""From a log to findings: matches of kinds, what the tools say of how they ended, then what of it is the root cause."""

from __future__ import annotations

from collections import Counter, deque
from typing import TYPE_CHECKING

import msgspec

from axletree.check.diagnosis.bringers import Bringers
from axletree.check.diagnosis.decode import PLACE
from axletree.check.diagnosis.enrich import enrich
from axletree.check.diagnosis.excerpt import MOST_SHOWN, begin, excerpt, following
from axletree.check.diagnosis.generic import GENERIC_KINDS
from axletree.check.diagnosis.in_stage import cpu_variant, fix_in_stage, stage_words
from axletree.check.diagnosis.kind import Kind
from axletree.check.diagnosis.likely import MOST, TELLING, is_loud, likely_lines, most_telling
from axletree.check.diagnosis.linear import expression
from axletree.check.diagnosis.log import read_blocks
from axletree.check.diagnosis.near import Around
from axletree.check.diagnosis.no_network import OFFLINE, is_local, no_network, wanted_by
from axletree.check.diagnosis.outcome import FAILING, SUCCEEDING, LogOutcome, Statement, decide, is_forgiven, is_noise
from axletree.check.diagnosis.rank import Candidate, is_after, rank
from axletree.check.diagnosis.scan import LogMatch, Scanner
from axletree.core.findings import Finding, LogLine

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from axletree.check.diagnosis.log import LogBlock
    from axletree.check.diagnosis.no_network import Wanted
    from axletree.core.setting import StageSetting
    from axletree.package.libraries.providers import Provider

UNKNOWN = "log/unknown"
"""What a failure that fits no kind goes by."""

_KILLERS = ("host/memory-kills", "host/memory-for-jobs", "host/memory-limit", "host/memory-too-little")
"""Rules that tell why a process was killed without a word."""

_TELLING = "telling"
_TAIL = 60
_KEPT = 20
"""Matches of one kind that are kept: the first ones."""
_STATEMENTS = 2000
_SERIES = 20
"""Statements of success in a row that are kept, and the last one."""
_WIDTH = 400
_COMMANDS = (b"$ ", b"+ ")
"""How lines begin that repeat a command, as ours and those of ``set -x``: it says what is to be done, not what was."""
_CONTROLS = dict.fromkeys(range(0x80, 0xA0))
"""Controls that only text has, not bytes: some terminals obey them."""

_Owner = Kind | bool | str
"""Whose an expression is: a kind's, a statement's (whether it is one of success), or :data:`_TELLING`."""


class Diagnosed(Finding, frozen=True, kw_only=True, omit_defaults=True):
    """A finding of a log; its rule is its kind, or ``log/unknown`` or ``log/unfinished`` if no kind matches."""

    line: int | None = None
    """Number of the line that shows it; ``None`` if no kind matches."""
    specific: int = 0
    """How specific its kind is, 0 to 100; 0 if no kind matches."""
    see: tuple[str, ...] = ()
    """Rules about hosts that may explain it."""
    host: tuple[Finding, ...] | None = None
    """Their findings about the host; ``None`` if no host was given."""


class Diagnosis(msgspec.Struct, frozen=True, kw_only=True):
    """What is to be said of a log."""

    outcome: LogOutcome
    findings: tuple[Diagnosed, ...]
    """The root cause first."""


def cause_lines(diagnosis: Diagnosis) -> tuple[str, ...]:
    """The lines that name the root cause of a failure, at most six; none where nothing looks like one."""
    told = _told(diagnosis)
    if told is None:
        return ()
    return tuple(line.text for line in told.lines if told.line is None or line.line >= told.line)[:MOST_SHOWN]


def error_line(diagnosis: Diagnosis) -> str | None:
    """The line that names the error of a failure; ``None`` where nothing looks like one."""
    lines, told = cause_lines(diagnosis), _told(diagnosis)
    return most_telling(lines) if told is None or told.rule == UNKNOWN else next(iter(lines), None)


def _told(diagnosis: Diagnosis) -> Diagnosed | None:
    """The finding that tells the failure: of a known kind, or that nothing is known but some lines."""
    return next((found for found in diagnosis.findings if found.severity == "error" or found.rule == UNKNOWN), None)


class _Seen:
    """What was taken in of a log so far; bounded, whatever its length."""

    def __init__(self) -> None:
        self.candidates: list[Candidate] = []
        self.counts: Counter[str] = Counter()
        self.statements: dict[int, Statement] = {}
        self.succeeded: Statement | None = None
        """The last statement of success."""
        self.series = 0
        """Statements of success since the last of a failure."""
        self.telling: list[list[tuple[int, str]]] = []
        """The first lines that look like a cause, each with those that belong to it."""
        self.telling_last: deque[list[tuple[int, str]]] = deque(maxlen=_KEPT)
        self.before: list[tuple[int, str]] = []
        """Lines before the first statement of a failure."""
        self.tail: deque[tuple[int, str]] = deque(maxlen=_TAIL)
        self.lines = 0


class Engine:
    """Kinds, made ready to be looked for."""

    def __init__(
        self, kinds: Iterable[Kind], *, providers: Iterable[Provider] = (), bringers: Bringers | None = None
    ) -> None:
        """Compile all expressions.

        Args:
            kinds: What is known.
            providers: Owners of shared libraries, for answers about libraries that no kind knows.
            bringers: The same for headers, libraries of the system and symbols.
        """
        patterns: list[tuple[_Owner, str]] = [
            (kind, pattern) for kind in (*kinds, *GENERIC_KINDS) for pattern in kind.patterns
        ]
        patterns += [(False, pattern) for pattern in FAILING]
        patterns += [(True, pattern) for pattern in SUCCEEDING]
        patterns += [(_TELLING, pattern) for pattern in TELLING]
        self._scanner: Scanner[_Owner] = Scanner(patterns)
        self._providers = tuple(providers)
        self._bringers = bringers or Bringers()

    def diagnose(self, chunks: Iterable[bytes], name: str = "log", *, setting: StageSetting | None = None) -> Diagnosis:
        """Read a log once and say what is in it.

        Args:
            chunks: The log, in pieces of any size.
            name: Its name, for findings to say where they are.
            setting: The stage that wrote it: what to do is then said as lines of its recipe.

        Raises:
            BinaryLogError: it is no text.
        """
        seen = _Seen()
        for block in read_blocks(chunks):
            seen.lines = block.first + block.own.stop - 1
            around = Around(block)
            failures = [hit.at for hit in self._scanner.scan(block) if _take(around, hit, seen)]
            if failures and not seen.before:
                seen.before = _numbered(block, range(max(0, min(failures) - _TAIL), min(failures) + 1))
            seen.tail.extend(_numbered(block, block.own[-_TAIL:]))
        said = [seen.statements[line] for line in sorted(seen.statements)]
        outcome = decide(said, [text for _, text in seen.tail], seen.lines)
        chosen = rank(seen.candidates, said, outcome)
        if outcome.ending == "succeeded" and any(is_after(candidate, outcome) for candidate in chosen):
            outcome = LogOutcome(ending="unknown", said=None, lines=outcome.lines)
        findings = [self._diagnosed(candidate, name) for candidate in chosen]
        if setting is not None:
            asked = [text for each in seen.candidates if each.kind.needs_network for _, text in each.excerpt]
            wanted = wanted_by([*asked, *(text for _, text in seen.tail)])
            findings = [
                _in_stage(found, candidate, setting, wanted) for found, candidate in zip(findings, chosen, strict=True)
            ]
        if not any(candidate.kind.severity == "error" for candidate in chosen):
            findings[:0] = _unknown(seen, outcome, name)
        return Diagnosis(outcome=outcome, findings=tuple(findings))

    def _diagnosed(self, candidate: Candidate, name: str) -> Diagnosed:
        kind, groups = candidate.kind, candidate.groups
        cause, fix = enrich(groups, specific=kind.specific, providers=self._providers, bringers=self._bringers)
        return Diagnosed(
            rule=kind.id,
            severity=kind.severity,
            where=f"{name}:{candidate.own}",
            message=_filled(kind.title, groups),
            cause=" ".join(part for part in (_filled(kind.cause, groups).strip(), cause) if part),
            fix="\n".join(part for part in (fix, _filled(kind.fix, groups).strip()) if part) or None,
            lines=_lines(candidate.excerpt),
            line=candidate.own,
            specific=kind.specific,
            see=kind.see,
        )


def _in_stage(found: Diagnosed, candidate: Candidate, setting: StageSetting, wanted: Wanted) -> Diagnosed:
    """A finding as a stage's report has it: what to do are lines of the recipe."""
    kind = candidate.kind
    if kind.needs_network and not setting.network and not is_local(line.text for line in found.lines):
        title, cause, fix = no_network(setting, wanted)
        return msgspec.structs.replace(found, rule=OFFLINE, message=title, cause=cause, fix=fix)
    if kind.needs_toolkit and setting.gpu == "cpu":
        cause, fix = cpu_variant(setting)
        return msgspec.structs.replace(found, cause=cause, fix=fix)
    fix = found.fix or ""
    if kind.fix_in_stage:
        before = fix.removesuffix(_filled(kind.fix, candidate.groups).strip())
        fix = before + _filled(kind.fix_in_stage, stage_words(setting, candidate.groups)).strip()
    return msgspec.structs.replace(found, fix=fix_in_stage(fix, setting) or None)


def _take(around: Around, hit: LogMatch[_Owner], seen: _Seen) -> bool:
    """Take in a match; whether it is a statement of a failure."""
    block = around.block
    line, owner = block.first + hit.at, hit.owner
    if block.lines[hit.at].startswith(_COMMANDS):
        return False
    if isinstance(owner, Kind):
        if seen.counts[owner.id] < _KEPT:
            candidate = _candidate(around, hit, owner)
            if candidate is not None:
                seen.counts[owner.id] += 1
                seen.candidates.append(candidate)
        return False
    if isinstance(owner, str):
        if len(seen.telling) < _KEPT:
            seen.telling.append(_numbered(block, following(block, hit.at)))
        else:
            seen.telling_last.append(_numbered(block, (hit.at,)))
        return False
    text = block.lines[hit.at].decode("utf-8", "replace")
    if owner:
        if seen.succeeded is not None and seen.series >= _SERIES:
            seen.statements.pop(seen.succeeded.line, None)
        seen.series += 1
        seen.succeeded = Statement(line=line, failed=False, text=text)
        seen.statements.setdefault(line, seen.succeeded)
    elif len(seen.statements) < _STATEMENTS:
        seen.statements[line] = Statement(line=line, failed=True, text=text)
        seen.series = 0
    return not owner


def _unknown(seen: _Seen, outcome: LogOutcome, name: str) -> Iterator[Diagnosed]:
    """What is said where no kind fits: that something failed, or that the log is cut off; nothing where all is well."""
    if outcome.ending == "succeeded":
        return
    failed_at = outcome.said.line if outcome.said else None
    others = [*seen.before, *seen.tail] if failed_at is not None else [line for line in seen.tail if is_loud(line[1])]
    telling = {told[0][0]: told for told in (*seen.telling, *seen.telling_last)}
    lines = likely_lines([told[0] for told in telling.values()], others, failed_at=failed_at)
    if outcome.ending == "unfinished":
        last = [line for line in seen.tail if line[1].strip()][-1:]
        yield Diagnosed(
            rule="log/unfinished",
            severity="warning",
            where=name,
            message="The log ends before the work is finished",
            cause="The last line shows work in progress, and the log does not show how it ended. The build is still "
            "running, the log is truncated, or the whole build was killed (because memory ran out or a time limit "
            "was reached), which leaves no message.",
            fix="Check whether the kernel killed the build:\n$ dmesg | grep -i -E 'killed process|out of memory'",
            see=_KILLERS,
            lines=_lines([*lines, *(line for line in last if line not in lines)]),
        )
    elif outcome.ending == "failed" or any(is_loud(text) for _, text in lines):
        failed = outcome.ending == "failed"
        more = sorted({line for number, _ in lines[:1] for line in telling.get(number, ())}.union(lines))
        yield Diagnosed(
            rule=UNKNOWN,
            severity="error" if failed else "warning",
            where=name,
            message="Unknown failure" if failed else "The log reports no failure, but these lines suggest one",
            cause="No rule recognizes this failure. The lines shown are the most likely to name its cause.",
            lines=_lines(more or [line for line in seen.before if line[1].strip()][-MOST:]),
        )


def _candidate(around: Around, hit: LogMatch[_Owner], kind: Kind) -> Candidate | None:
    """What a match is worth; ``None`` where its kind asks for more, or for less, around it."""
    low, high = hit.at - kind.window, hit.end + kind.window
    if not all(around.holds(expression(pattern), low, high) for pattern in kind.needs):
        return None
    if any(around.holds(expression(pattern), low, high) for pattern in kind.unless):
        return None
    block = around.block
    found = excerpt(block, hit.at, hit.end)
    return Candidate(
        kind=kind,
        line=block.first + hit.at,
        own=block.first + found.own,
        excerpt=tuple(_numbered(block, found.shown)),
        groups=hit.groups,
        proven=not is_noise(_window(block, begin(block, hit.at), hit.end)),
        forgiven=is_forgiven(_window(block, hit.at - 3, hit.end + 3)),
    )


def _window(block: LogBlock, low: int, high: int) -> list[str]:
    return [line.decode("utf-8", "replace") for line in block.lines[max(0, low) : high + 1]]


def _numbered(block: LogBlock, places: Iterable[int]) -> list[tuple[int, str]]:
    return [(block.first + at, block.lines[at].decode("utf-8", "replace")) for at in places]


def _lines(lines: Iterable[tuple[int, str]]) -> tuple[LogLine, ...]:
    readable = ((line, text.translate(_CONTROLS).rstrip()[:_WIDTH]) for line, text in lines)
    return tuple(LogLine(line=line, text=text) for line, text in readable if text)


def _filled(text: str, groups: dict[str, str]) -> str:
    """A text with what the match caught, on one line: tools wrap and indent what they list."""
    caught = {name: " ".join(map(str.strip, value.split("\n"))).strip() for name, value in groups.items()}
    return PLACE.sub(lambda place: caught.get(place[1]) or place[2] or place[1], text)
