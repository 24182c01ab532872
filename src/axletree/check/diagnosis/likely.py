"""The honest answer: of a failure that no kind knows, the lines that most likely name it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from axletree.check.diagnosis.linear import expression
from axletree.check.diagnosis.outcome import is_forgiven

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

TELLING: tuple[str, ...] = (
    r"^[ \t]*[^\s:()][^:()\n]*:\d+(?::\d+)?: (?:fatal |internal compiler )?error: ",
    r"^[ \t]*[^\s(]+\(\d+\): (?:catastrophic |fatal )?error\b",
    r"undefined reference to|multiple definition of|\bcannot find -l",
    r"^[ \t]*(?:CMake Error|\S+: (?:fatal |internal compiler )?error:|error(?:\[E\d+\])?:|nvcc fatal|ptxas fatal)",
    r"^E {2,}\S[^\n]*(?:Error|assert)",
    r"^[ \t]*(?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception|NotFound|Failure|Unavailable)(?::|$)",
)
"""What lines look like that name a cause; looked for in the whole log."""

_WORDS = (
    (4, expression("|".join(f"(?:{pattern})" for pattern in TELLING))),
    (3, expression(r"(?i)\berror\b.*:|\b(?:fatal|exception|panic(?:ked)?)\b|^\S*error\b")),
    (3, expression(r"(?i)No such file or directory|Permission denied|not found|cannot|could not|unable to")),
    (2, expression(r"(?i)\b(?:failed|failure|refused|denied|abort(?:ed|ing)?|invalid|missing|undefined)\b")),
)
_WRAPPER = expression(
    r"ninja: build stopped|make(?:\[\d+\])?: \*\*\* |CalledProcessError|failed with exit (?:code|status)"
    r"|exited with (?:code|status)|returned non-zero exit status|ld returned \d+ exit|compilation terminated"
    r"|Error compiling objects|BackendSubprocessExited|BuildBackendException|subprocess-exited-with-error"
    r"|metadata-generation-failed|Failed (?:building wheel|to build)|did not run successfully|note: This (?:error|is)"
    r"|Configuring incomplete|^\*\*\* CMake|^FAILED: |Process completed with exit code|did not complete successfully"
    r"|^error: aborting due to |^\[ *\d+(?:/\d+|%)\]|^-- |PASSED|XFAIL|^[ \t]*File \"|(?<!\[)-Werror|\b[Ww]arning:"
    r"|\b0 (?:errors|failed)"
)
"""Lines that only pass a failure on, or name none."""

_LOUD = expression(r"(?i)^[ \t]*(?:\S+[ :]+){0,3}(?:error|fatal|panic|exception)\b ?[:!]")

MOST = 3
"""Lines that are shown."""


def is_wrapper(line: str) -> bool:
    """Whether a line only passes a failure on."""
    return _WRAPPER.search(line) is not None


def is_loud(line: str) -> bool:
    """Whether a line calls itself an error, rather than to speak of one."""
    return _LOUD.search(line) is not None and not is_forgiven([line])


def most_telling(lines: Iterable[str]) -> str | None:
    """The line that most likely names an error, the first of equals; ``None`` where none speaks of one."""
    return max(filter(_weight, lines), key=_weight, default=None)


def _weight(line: str) -> int:
    """How likely a line names an error; 0 where it does not, or only passes one on."""
    return 0 if is_wrapper(line) else next((weight for weight, word in _WORDS if word.search(line)), 0)


def likely_lines(
    telling: Iterable[tuple[int, str]], tail: Iterable[tuple[int, str]], *, failed_at: int | None
) -> Sequence[tuple[int, str]]:
    """At most three lines, in the order of the log; none where nothing looks like an error.

    Args:
        telling: Lines that match :data:`TELLING`, with their numbers.
        tail: The last lines of the log, and those before the first statement of a failure.
        failed_at: Line of the first statement of a failure.
    """
    lines = dict([*tail, *telling])
    scored: list[tuple[int, int, int, str]] = []
    for number, text in lines.items():
        weight = _weight(text)
        if not weight:
            continue
        # What stands before the first failure, and near it, is what failed.
        distance = number - failed_at if failed_at is not None else 0
        behind = distance > 0
        scored.append((behind, -weight, abs(distance) if failed_at is not None else -number, text))
    scored.sort()
    wanted = {text for *_, text in scored[:MOST]}
    chosen: dict[str, int] = {}
    for number, text in sorted(lines.items()):
        if text in wanted:
            chosen.setdefault(text, number)
    return [(number, text) for text, number in chosen.items()]
