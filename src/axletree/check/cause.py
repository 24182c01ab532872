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

_ANSI = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")

_KINDS: tuple[tuple[str, ...], ...] = (
    # The machine: nothing else in the log matters then.
    (r"No space left on device", r"Killed signal terminated program", r"virtual memory exhausted", r"out of memory"),
    # Compilers, assemblers and linkers.
    (
        r"(?<!command )\bfatal error:",
        r"^[^\s:][^:]*:\d+(:\d+)?: error:",
        r"^[^\s(]+\(\d+\): error[: ]",
        r"\bnvcc fatal\b",
        r"undefined reference to",
        r"\bld(\.\w+)?: (cannot find|error:|.*undefined)",
        r"relocation truncated to fit",
        r"CMake Error",
        r"(: |^)command not found",
        r"^\S*(sh|bash): line \d+: ",
    ),
    # Tests: pytest's own account of the failing assertion.
    (r"^E\s{2,}\S", r"^(FAILED|ERROR) \S+", r"^Assertion `"),
    # Python: the line that ends a traceback.
    (r"^(?!subprocess\.CalledProcessError)[A-Za-z_][\w.]*(Error|Exception|Interrupt|Exit|Warning)\b(:|$)",),
    (r"\berror:", r"^ERROR\b", r"\bcannot\b.*\bfind\b"),
)
_WRAPPERS = re.compile(
    r"ninja: build stopped"
    r"|^(g?make)(\[\d+\])?: \*\*\*"
    r"|subprocess\.CalledProcessError"
    r"|error: command .* failed with exit"
    r"|error: subprocess-exited-with-error"
    r"|RuntimeError: Error compiling objects"
    r"|BackendSubprocessExited|exited with (code|status)|compilation terminated"
    r"|returned non-zero exit status"
    r"|^E\s+(where|and)\b"
)
_COMPILED = tuple(re.compile("|".join(f"(?:{pattern})" for pattern in kind), re.IGNORECASE) for kind in _KINDS)


def root_cause(lines: Iterable[str]) -> tuple[str, ...]:
    """The lines that name the root cause, at most six; empty when none is recognised.

    Args:
        lines: The log, line by line. Read once; memory does not grow with it.
    """
    found: dict[int, list[str]] = {}
    open_kinds: list[int] = []
    for raw in lines:
        line = _ANSI.sub("", raw).rstrip()[:_WIDTH]
        if not line or _WRAPPERS.search(line):
            open_kinds = []
            continue
        open_kinds = [kind for kind in open_kinds if len(found[kind]) < _LINES]
        for kind in open_kinds:
            found[kind].append(line)
        kind = next((number for number, pattern in enumerate(_COMPILED) if pattern.search(line)), None)
        if kind is not None and kind not in found:
            found[kind] = [line]
            open_kinds.append(kind)
    return tuple(found[min(found)]) if found else ()
