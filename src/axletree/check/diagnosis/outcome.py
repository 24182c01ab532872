"""Whether anything failed: what build tools say when they end, as opposed to the words that they print on the way.

Words such as ``error`` are in the logs of successful builds, too: names of files, flags, feature probes. Statements of
how a process ended are not. They decide; a word never does.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Literal

import msgspec

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

_PROGRESS = re.compile(r"^\[ *(\d+)(?:/(\d+)\]|%\])")
_WORKING = re.compile(
    r"^\[ *\d+/\d+\] |^\[ *\d+%\] |^-- (?:Performing Test|Looking for|Check|Detecting)"
    r"|^\s*(?:Compiling|Building|Collecting|Downloading) "
    r"|^(?:\S*/)?(?:x86_64-linux-gnu-)?(?:g?cc|[cg]\+\+|clang\+*|nvcc|hipcc) -"
)
"""Lines that tools print while at work, never last."""

_LAST_WORD = re.compile(r"^error: ")
"""With this programs end that gave up, whatever went well before; indented lines may follow."""

_PROBE = re.compile(
    r"\b(?:conftest|_configtest|CMakeScratch|CMakeTmp|cmTC_\w+|CheckSymbolExists|CheckFunctionExists"
    r"|CheckIncludeFiles?|meson-private|sanitycheck\w*|testfile|feature_test)\b|/TryCompile-|Performing Test"
    r"|^-- |^\s*checking (?:for|whether|if)\b|\b[Ww]arning: "
    r"|^fatal: (?:not a git repository|No names found|no tag exactly matches)"
)
"""What feature probes, and git asked for a version, print whether or not it matters."""

_FORGIVEN = re.compile(
    r"\b(?:[Ff]all(?:s|ing)?[- ]?back|[Ii]gnor(?:ed|ing)|[Ss]kipp(?:ed|ing)|[Cc]ontinuing|[Rr]etry(?:ing)?|[Nn]on-fatal"
    r"|not fatal|[Ee]xpected (?:error|failure)|xfail|XFAIL|will be disabled|[Cc]aught|harmless|[Oo]ptional"
    r"|[Dd]isabl(?:ed|ing))\b"
)

_LISTED = re.compile(r"^\S+ -> \S+ \[?skipped\b")
"""What hipify prints of each file that has nothing to change."""


class Statement(msgspec.Struct, frozen=True, kw_only=True):
    """What a tool said of how something ended."""

    line: int
    failed: bool
    text: str


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """How a log ends."""

    ending: Ending
    said: Statement | None
    """The statement that decides."""
    lines: int
    """Lines of the log."""


def decide(statements: Sequence[Statement], tail: Sequence[str], lines: int) -> Outcome:
    """How a log ends.

    Args:
        statements: What was said, in order.
        tail: Its last lines.
        lines: How many it has.
    """
    made_good = recoveries(statements)
    failing = [said for said in statements if said.failed and not any(said.line in lines for lines in made_good)]
    if failing:
        return Outcome(ending="failed", said=failing[0], lines=lines)
    if statements and not statements[-1].failed and statements[-1].line >= lines - 1:
        return Outcome(ending="succeeded", said=statements[-1], lines=lines)
    last = next((line for line in reversed(tail) if line.strip()), "")
    progress = _PROGRESS.match(last)
    complete = progress is not None and (progress[1] == progress[2] or (not progress[2] and progress[1] == "100"))
    if complete:
        return Outcome(ending="succeeded", said=Statement(line=lines, failed=False, text=last), lines=lines)
    if progress is not None or _WORKING.search(last):
        return Outcome(ending="unfinished", said=None, lines=lines)
    if statements and not statements[-1].failed and not _gave_up(tail):
        return Outcome(ending="succeeded", said=statements[-1], lines=lines)
    return Outcome(ending="unknown", said=None, lines=lines)


def _gave_up(tail: Sequence[str]) -> bool:
    last = next((line for line in reversed(tail) if line.strip() and not line[0].isspace()), "")
    return _LAST_WORD.match(last) is not None


_PACKAGE = re.compile(r"(?:Failed building wheel for|Failed to build `?) *([\w.-]+)")
_PIP = re.compile(r"subprocess-exited-with-error|metadata-generation-failed|did not run successfully")
_DISCARDED = "WARNING: Discarding "
_BLOCK = 200
"""Lines that pip shows of a build that it gives up."""


def recoveries(statements: Sequence[Statement]) -> list[range]:
    """Lines about failures that were made good later, as when pip takes another version of a package."""
    found = []
    for said in statements:
        later = _recovery(said, statements) if said.failed else None
        if later is not None:
            found.append(range(said.line - (_BLOCK if _PACKAGE.search(said.text) else 5), later + 1))
    return found


def _recovery(said: Statement, statements: Sequence[Statement]) -> int | None:
    """The line in which the very package that failed is made, or given up for another version."""
    following = [other for other in statements if other.line > said.line and not other.failed]
    if _PIP.search(said.text):
        return next((other.line for other in following if _discards(other, said)), None)
    package = _PACKAGE.search(said.text)
    if package is None:
        return None
    name = re.escape(package[1].partition("==")[0]).replace("_", "[-_]").replace(r"\-", "[-_]")
    made = re.compile(rf"uccessfully .*\b{name}(?:-\d|\b)", re.IGNORECASE)
    return next((other.line for other in following if made.search(other.text)), None)


def _discards(other: Statement, said: Statement) -> bool:
    return other.text.startswith(_DISCARDED) and other.line - said.line < _BLOCK


def is_noise(lines: Sequence[str]) -> bool:
    """Whether lines of a match are of the sort that successful builds print, too."""
    return any(_PROBE.search(line) for line in lines)


def is_forgiven(lines: Sequence[str]) -> bool:
    """Whether lines around a match say that the program went on without."""
    return any(_FORGIVEN.search(line) and not _LISTED.search(line) for line in lines)
