"""Whether anything failed: what build tools say when they end, as opposed to the words that they print on the way.

Words such as ``error`` are in the logs of successful builds, too: names of files, flags, feature probes. Statements of
how a process ended are not. They decide; a word never does.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from typing import TYPE_CHECKING, Literal

import msgspec

from axletree.check.diagnosis.linear import expression

if TYPE_CHECKING:
    from collections.abc import Sequence

Ending = Literal["failed", "succeeded", "unfinished", "unknown"]
"""``unfinished``: it stops in the middle of the work; ``unknown``: it does not say, as an excerpt does not."""

FAILING: tuple[str, ...] = (
    r"^(?:\[\d+/\d+\] )?ninja: (?:build stopped|error: |fatal: )",
    r"^FAILED: (?:\[code=\d+\] )?\S",
    r"^(?:\S*[/-])?g?make(?:\[\d+\])?: \*\*\* ",
    r"^-- Configuring incomplete, errors occurred!",
    r"^\*\*\* CMake (?:build|configuration) failed",
    r"^[ \t]*(?:\S |error: |ERROR: )?(?:subprocess-exited-with-error|metadata-generation-failed)",
    r"^[ \t]*[^\s].* did not run successfully\.?$",
    r"^[ \t]*ERROR: (?:Failed building wheel|Failed to build|Could not build wheels|No matching distribution found)",
    r"^[ \t]*(?:error: )?(?:\S+ ){0,2}(?:Failed to build `|Build backend failed|No solution found when resolving)",
    r"\bCalledProcessError: Command ",
    r"^[ \t]*error: command '[^'\n]*' (?:failed|terminated)",
    r"\bRuntimeError: Error compiling objects for extension",
    r"^(?:Error: )?Process completed with exit code [1-9]",
    r"^ERROR: Job failed",
    r"^Finished: (?:FAILURE|ABORTED)",
    r"^Build step '.*' marked build as failure",
    r"\b(?:did not complete successfully: exit code: [1-9]|returned a non-zero code: [1-9])",
    r"^ERROR: failed to (?:solve|build)\b",
    r"^=+ .*\b\d+ (?:failed|errors?)\b.* in [\d.]+s",
    r"^FAILED \((?:failures|errors|unexpected successes)=",
    r"^\[  FAILED  \] \d+ tests?",
    r"^\d+% tests passed, [1-9]\d* tests? failed out of \d+",
    r"^ERROR Backend (?:subprocess|operation) (?:exited|failed)",
    r"^\S+: recipe for target '.*' failed",
    r"^\d+ errors? (?:generated|detected in the compilation)",
    r"^compilation terminated\b",
    r"\bld returned [1-9]\d* exit status|linker command failed with exit code",
    r"^error: (?:could not compile `|aborting due to )",
    r"^[ \t]*(?:\S+: )?line \d+: +\d+ (?:Killed|Segmentation fault|Aborted|Illegal instruction|Bus error)\b",
    r"^(?:Killed|Aborted|Segmentation fault|Bus error|Illegal instruction)(?: \(core dumped\))?$",
    r"^(?:\S+ )?(?:exited|finished|failed|ended) with (?:exit )?(?:code|status) [1-9]",
    r"\bFAILED after [\d.]+ (?:s|min|h)\b",
    r"^\d+ (?:stages? )?failed, ",
)
"""Statements that something ended in failure."""

SUCCEEDING: tuple[str, ...] = (
    r"^[ \t]*Successfully (?:built|installed|created|tagged) \S",
    r"^ninja: no work to do\.",
    r"^\[100%\] Built target ",
    r"^\[\d+/\d+\] Install the project\.\.\.",
    r"^-- Build files have been written to: ",
    r"^=+ (?:.*, )?\d+ passed\b(?!.*\b(?:failed|errors?)\b).*=*$",
    r"^\d+ passed\b(?!.*\b(?:failed|errors?)\b).* in [\d.]+s",
    r"^Ran \d+ tests? in [\d.]+s\n\nOK\b",
    r"^\[  PASSED  \] \d+ tests?",
    r"^100% tests passed",
    r"^WARNING: Discarding \S",
    r"^Finished: SUCCESS",
    r"^Job succeeded",
    r"^Process completed with exit code 0",
    r"^BUILD SUCCESSFUL",
    r"^Finished processing dependencies for ",
    r"^(?: \+ |Installed \d+ packages? in |Prepared \d+ packages? in |Built \S+\.(?:whl|tar\.gz))",
    r"^[ \t]*Finished `?\w+`? (?:profile|\[)",
    r"^removing build/bdist\.",
    r"^#\d+ (?:naming to|exporting to image|DONE )",
    r"^[ \t]*\S+\s+done in [\d.]+ ",
)
"""Statements that something ended well."""

_PROGRESS = expression(r"^\[ *(?P<done>\d+)(?:/(?P<all>\d+)\]|%\])")
_WORKING = expression(
    r"^\[ *\d+/\d+\] |^\[ *\d+%\] |^-- (?:Performing Test|Looking for|Check|Detecting)"
    r"|^\s*(?:Compiling|Building|Collecting|Downloading) "
    r"|^(?:\S*/)?(?:x86_64-linux-gnu-)?(?:g?cc|[cg]\+\+|clang\+*|nvcc|hipcc) -"
)
"""Lines that tools print while at work, never last."""

_LAST_WORD = expression(
    r"^(?:\S+[ :]+){0,3}(?:fatal |internal compiler )?(?:[Ee]rror|ERROR|FATAL|fatal)(?:\[E\d+\])?: "
    r"|^(?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception)(?::|$)|No space left on device|Disk quota exceeded"
)
"""With this programs end that gave up, whatever went well before; indented lines may follow."""
_LAST = 3
"""Lines at the end of a log that are its last words."""

_PROBE = expression(
    r"\b(?:conftest|_configtest|CMakeScratch|CMakeTmp|cmTC_\w+|CheckSymbolExists|CheckFunctionExists"
    r"|CheckIncludeFiles?|meson-private|sanitycheck\w*|testfile|feature_test)\b|/TryCompile-|Performing Test"
    r"|^-- |^\s*checking (?:for|whether|if)\b|\b[Ww]arning: "
    r"|^fatal: (?:not a git repository|No names found|no tag exactly matches)"
)
"""What feature probes, and git asked for a version, print whether or not it matters."""

_FORGIVEN = expression(
    r"\b(?:[Ff]all(?:s|ing)?[- ]?back|[Ii]gnor(?:ed|ing)|[Ss]kipp(?:ed|ing)|[Cc]ontinuing|[Rr]etry(?:ing)?|[Nn]on-fatal"
    r"|not fatal|[Ee]xpected (?:error|failure)|xfail|XFAIL|will be disabled|[Cc]aught|harmless|[Oo]ptional"
    r"|[Dd]isabl(?:ed|ing))\b"
)

_LISTED = expression(r"^\S+ -> \S+ \[?skipped\b")
"""What hipify prints of each file that has nothing to change."""


class Statement(msgspec.Struct, frozen=True, kw_only=True):
    """A tool's message about how something ended."""

    line: int
    failed: bool
    text: str


class LogOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """How a log ends."""

    ending: Ending
    said: Statement | None
    """The line that shows how the log ends."""
    lines: int
    """Lines of the log."""


def decide(statements: Sequence[Statement], tail: Sequence[str], lines: int) -> LogOutcome:
    """How a log ends.

    Args:
        statements: What was said, in order.
        tail: Its last lines.
        lines: How many it has.
    """
    made_good = recoveries(statements)
    failing = [said for said in statements if said.failed and not within(made_good, said.line)]
    if failing:
        return LogOutcome(ending="failed", said=failing[0], lines=lines)
    if statements and not statements[-1].failed and statements[-1].line >= lines - 1:
        return LogOutcome(ending="succeeded", said=statements[-1], lines=lines)
    last = next((line for line in reversed(tail) if line.strip()), "")
    progress = _PROGRESS.match(last)
    complete = progress is not None and progress.groups["done"] == progress.groups.get("all", "100")
    if complete:
        return LogOutcome(ending="succeeded", said=Statement(line=lines, failed=False, text=last), lines=lines)
    if progress is not None or _WORKING.search(last):
        return LogOutcome(ending="unfinished", said=None, lines=lines)
    if statements and not statements[-1].failed and not _gave_up(tail, lines - statements[-1].line):
        return LogOutcome(ending="succeeded", said=statements[-1], lines=lines)
    return LogOutcome(ending="unknown", said=None, lines=lines)


def _gave_up(tail: Sequence[str], after: int) -> bool:
    """Whether the last words of a log are an error; only as many lines count as come after the last success."""
    last = [line for line in tail[-after:] if line.strip() and not line[0].isspace()][-_LAST:]
    return any(_LAST_WORD.search(line) and not is_noise([line]) and not is_forgiven([line]) for line in last)


_PACKAGE = expression(r"(?:Failed building wheel for|Failed to build `?) *(?P<name>[\w.-]+)")
_PIP = expression(r"subprocess-exited-with-error|metadata-generation-failed|did not run successfully")
_DISCARDED = "WARNING: Discarding "
_MADE = "uccessfully "
_BLOCK = 200
"""Lines that pip shows of a build that it gives up."""
_PARTS = 10
"""Words of a package's name, at most."""


def recoveries(statements: Sequence[Statement]) -> list[range]:
    """Lines about failures that were made good later, as when pip takes another version of a package.

    Args:
        statements: In the order of their lines.

    Returns:
        Ranges in the order of their lines, none of which touches another: for :func:`within`.
    """
    good = [said for said in statements if not said.failed]
    names = {said.line: name for said in statements if said.failed and (name := _package(said.text))}
    made = _made_lines(frozenset(names.values()), good)
    found = []
    for said in statements:
        if not said.failed:
            continue
        name = names.get(said.line, "")
        later = _given_up(said, good) if _PIP.search(said.text) else _first_after(made.get(name, ()), said.line)
        if later is not None:
            found.append(range(said.line - (_BLOCK if name else 5), later + 1))
    return _united(found)


def within(ranges: Sequence[range], line: int) -> bool:
    """Whether a line is in one of some ranges that :func:`recoveries` found."""
    at = bisect_right(ranges, line, key=_begin)
    return at > 0 and line in ranges[at - 1]


def _package(text: str) -> str:
    """The package that failed, as :func:`_made_lines` spells it; empty where none is named."""
    found = _PACKAGE.search(text)
    return _spelled(found.groups["name"]) if found else ""


def _spelled(name: str) -> str:
    return name.lower().replace("_", "-")


def _made_lines(names: frozenset[str], good: Sequence[Statement]) -> dict[str, list[int]]:
    """Lines that say of a package that it is made; each line is read once, whatever the number of packages."""
    found: dict[str, list[int]] = {}
    for said in good if names else ():
        text = said.text.lower().partition(_MADE)[2]
        words = [(word.start(), word.end()) for word in re.finditer(r"\w+", text)]
        told = {_spelled(text[start:end]) for at, (start, _) in enumerate(words) for _, end in words[at : at + _PARTS]}
        for name in told & names:
            found.setdefault(name, []).append(said.line)
    return found


def _given_up(said: Statement, good: Sequence[Statement]) -> int | None:
    """The line in which pip gives up the version whose build failed."""
    at = bisect_right(good, said.line, key=_line)
    near = (other for other in good[at : at + _BLOCK] if other.line - said.line < _BLOCK)
    return next((other.line for other in near if other.text.startswith(_DISCARDED)), None)


def _first_after(lines: Sequence[int], line: int) -> int | None:
    at = bisect_right(lines, line)
    return lines[at] if at < len(lines) else None


def _united(ranges: Sequence[range]) -> list[range]:
    """The same lines, in ranges that do not touch."""
    united: list[range] = []
    for each in sorted(ranges, key=_begin):
        if united and each.start <= united[-1].stop:
            united[-1] = range(united[-1].start, max(united[-1].stop, each.stop))
        else:
            united.append(each)
    return united


def _begin(lines: range) -> int:
    return lines.start


def _line(said: Statement) -> int:
    return said.line


def is_noise(lines: Sequence[str]) -> bool:
    """Whether lines of a match are of the sort that successful builds print, too."""
    return any(_PROBE.search(line) for line in lines)


def is_forgiven(lines: Sequence[str]) -> bool:
    """Whether lines around a match say that the program went on without."""
    return any(_FORGIVEN.search(line) and not _LISTED.search(line) for line in lines)
