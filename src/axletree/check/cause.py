"""The root cause in a stage's log: the lines that name it, not those of the wrappers around it.

A failing build prints the one line that matters, then every layer above it adds its own: ninja, make, setuptools, the
PEP 517 hook, the shell. The earliest line of the most telling kind is taken, with what follows it.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

_LINES = 6
_WIDTH = 300

_ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])")
"""ECMA-48: control sequences (colours), operating system commands (links), and the short ones."""

_CONTROLS = re.compile(r"[\x00-\x08\x0a-\x1f\x7f-\x9f]")
_TOOL = r"(?:cc1(?:plus)?|lto1|collect2|as|nvcc|ptxas|hipcc|(?:[\w.]+-)*(?:g?cc|[cg]\+\+|clang(?:\+\+)?)(?:-\d+)?)"
_KINDS: tuple[tuple[str, ...], ...] = (
    # The machine: nothing else in the log matters then.
    (
        r"No space left on device|Disk quota exceeded",
        r"Killed signal terminated program|terminated with signal 9|internal compiler error: Killed",
        r"unable to execute command: Killed|line \d+: +\d+ Killed\b",
        r"virtual memory exhausted|Cannot allocate memory|^\s*MemoryError\b",
        r"(?i:(?:error|fatal|exception)\b.*\bout of memory\b|^out of memory\b)",
    ),
    # Patches, compilers, assemblers, linkers, what configures them, and what resolves requirements.
    (
        r"^Hunk #\d+ FAILED|can't find file to patch|malformed patch|Reversed \(or previously applied\) patch",
        r"^\s*[^\s:][^:]*:\d+(?::\d+)?: (?:fatal |internal compiler )?(?i:error):",
        r"^\s*[^\s(]+\(\d+\): (?:catastrophic )?error\b",
        rf"^\s*(?:\S*/)?{_TOOL}: (?:fatal |internal compiler )?error:",
        r"\b(?:nvcc|ptxas) fatal\b|\bnvlink error\b|\bfatal error:",
        r"undefined reference to|multiple definition of|relocation truncated to fit|recompile with -fPIC",
        r"\b(?:ld(?:\.\w+)?|mold): (?:cannot find|error:|fatal:|.*undefined)",
        r"\bCMake Error\b",
        r"^\s*error(?:\[E\d+\]): ",  # rustc
        r"^g?make(?:\[\d+\])?: \*\*\* (?!\[|Waiting)",
        r"(?:: |^)command not found|^\S*sh: \d+: .*: not found$|^\S*(?:sh|bash): line \d+: ",
        r"No solution found when resolving|Could not find a version that satisfies|^\s*The conflict is caused by:",
    ),
    # Tests: what pytest, unittest, GoogleTest and the C library say of the failing assertion.
    (
        r"^E\s{2,}\S",
        r"^(?:FAILED|ERROR) \S+",
        r"^(?:FAIL|ERROR): \w+ \(",
        r"^\[  FAILED  \]",
        r"\bAssertion [`'].*' failed",
        r"^Fatal Python error|Segmentation fault|^Aborted\b",
    ),
    # Python: the line that ends a traceback.
    (r"^\s*[A-Za-z_][\w.]*(?:Error|Exception|Interrupt|Exit|NotFound|Failure)(?::|$)",),
    (r"(?i:\berror:)", r"^ERROR\b", r"(?i:\bcannot\b.*\bfind\b)"),
)
_COMPILED = tuple(re.compile("|".join(kind)) for kind in _KINDS)

_WRAPPERS = re.compile(
    r"ninja: build stopped"
    r"|^g?make(\[\d+\])?: \*\*\* (\[|Waiting)"
    r"|CalledProcessError"
    r"|failed with exit (code|status)|exited with (code|status)|returned non-zero exit status"
    r"|ld returned \d+ exit status|was ended by (signal|SIG)"
    r"|compilation terminated"
    r"|RuntimeError: Error compiling objects"
    r"|BackendSubprocessExited|BuildBackendException"
    r"|error: (subprocess-exited-with-error|metadata-generation-failed)"
    r"|ERROR: Failed (building wheel|to build)"
    r"|^\s*(\[end of output\]|note: This |hint: See above|\S .* did not run successfully)"
    r"|Configuring incomplete, errors occurred"
    r"|^\*\*\* CMake (build|configuration) failed"
)
"""Lines of layers that only pass a failure on. They end what is being collected."""

_NEXT = re.compile(r"^\[\s*\d+/\d+\]|^\$ ")
"""The next step of ninja, or the next command: what follows belongs to something else."""
_PLACE = re.compile(r"^(patching|checking) file ")
"""Lines that say where the trouble after them is."""


def root_cause(lines: Iterable[str]) -> tuple[str, ...]:
    """The lines that name the root cause, at most six; empty when none is recognised.

    Args:
        lines: The log, line by line. Read once; memory does not grow with it.
    """
    found: dict[int, list[str]] = {}
    growing: list[int] = []
    place: str | None = None
    for raw in lines:
        line = _readable(raw)
        if not line or _WRAPPERS.search(line) or _NEXT.search(line):
            growing = []
            continue
        growing = [kind for kind in growing if len(found[kind]) < _LINES]
        for kind in growing:
            found[kind].append(line)
        if _PLACE.search(line):
            place = line
        kind = next((number for number, pattern in enumerate(_COMPILED) if pattern.search(line)), len(_COMPILED))
        if kind < len(_COMPILED) and kind not in found:
            found[kind] = [place, line] if place is not None and line.startswith("Hunk") else [line]
            growing.append(kind)
    return tuple(found[min(found)]) if found else ()


def _readable(raw: str) -> str:
    """A line as a terminal would show it, without colours or whatever else could steer a terminal."""
    line = _ESCAPES.sub("", raw).rstrip()
    last = line.rpartition("\r")[2]  # of a line that was written over
    return _CONTROLS.sub("", last).rstrip()[:_WIDTH]
