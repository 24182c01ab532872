"""What of a log is shown of an error: the lines that name it, those that belong to them, and where it comes from."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from axletree.check.diagnosis.likely import is_wrapper
from axletree.check.diagnosis.linear import expression

if TYPE_CHECKING:
    from collections.abc import Sequence

    from axletree.check.diagnosis.log import LogBlock

MOST_SHOWN = 6
"""Lines of an error and of what belongs to it."""
_FAR = 30
"""Lines that a compiler may print of how it came to a template, and lines of a traceback."""
_HEAD = 3
"""Lines after CMake's own first line in which a message may say what is known of it."""

_INDENT = expression(r"(?:E(?= ))?[ \t]*")
"""What is before the text of a line; pytest's ``E`` is part of it."""
_MORE = expression(
    r"\s*(?:>>>|-->|╰─▶) |\d+ out of \d+ hunks? FAILED|(?:---|\+\+\+) \S+$|@@ "
    r"|(?:\S*/)?cc1(?:plus)?: all warnings being treated as errors"
)
"""How lld, rustc and uv begin lines that say more; what patch, and a compiler told to be strict, add."""
_WHERE = expression(r"\S+: (?:In|At) [\w ]*(?:function|constructor|destructor|instantiation|lambda|scope)\b")
"""What GCC prints before errors of another function; alone it says nothing."""
_ERROR = expression(r"(?:[A-Za-z_][\w.]*Error|(?:[^\s:][^:\n]*:)?(?:\d+:){0,2} ?(?:fatal )?(?:error|ERROR)): ")
"""How lines begin that call themselves errors."""
_TEST = expression(r"^(?:FAILED|ERROR) (?P<place>\S+::\S+|\S+\.py)")
_UNITTEST = expression(r"^(?:FAIL|ERROR): \w+ \(")
_TITLE = expression(r"^_+ (?:ERROR (?:at (?:setup|teardown) of|collecting) )?(?P<title>\S+)(?: .*)? _+$")
"""How pytest begins what it prints of a test, or of a file that it cannot read."""
_SAID = expression(r"^E {2,}\S")


class Excerpt(msgspec.Struct, frozen=True, kw_only=True):
    """Lines of a block, by their places in it."""

    own: int
    """The line that names the error."""
    shown: tuple[int, ...]


def excerpt(block: LogBlock, first: int, last: int) -> Excerpt:
    """What is shown of a match that takes up the lines from ``first`` to ``last``."""
    lines = block.lines
    if lines[first].startswith(b"Traceback "):
        return Excerpt(own=last, shown=tuple(_end_of_traceback(first, last)))
    start = begin(block, first)
    shown = (*following(block, start, last), *_of_unittest(lines, start))
    said = _of_test(lines, start)
    if said:
        return Excerpt(own=said[0], shown=(*said, *shown)[:MOST_SHOWN])
    summary = _summary(lines, start)
    if summary:
        return Excerpt(own=start, shown=(*shown[: MOST_SHOWN - 1], *summary))
    return Excerpt(own=start, shown=(*_instantiated(lines, start), *shown))


def begin(block: LogBlock, first: int) -> int:
    """Where the message begins that a match is in: CMake's says only in its first line where."""
    above = range(first, max(-1, first - _HEAD - 1), -1)
    return next((at for at in above if b"CMake Error" in block.lines[at]), first)


def following(block: LogBlock, start: int, last: int | None = None) -> range:
    """A line, those up to ``last``, and those after them that belong to it."""
    lines = block.lines
    least = start if last is None else max(start, last)
    end = min(least, start + MOST_SHOWN - 1, len(lines) - 1)
    while end + 1 < min(len(lines), start + MOST_SHOWN) and _belongs(lines[end + 1], lines[start]):
        end += 1
    while end > least and _WHERE.match(lines[end]):
        end -= 1
    return range(start, end + 1)


def _end_of_traceback(first: int, last: int) -> range:
    """The last line says what happened, the two before it where."""
    return range(max(first, last - 2), last + 1)


def _belongs(line: bytes, first: bytes) -> bool:
    """Whether a line goes on with what another began: source lines and carets, notes of where, further errors."""
    if not line.strip() or is_wrapper(line.decode("utf-8", "replace")):
        return False
    further = _MORE.match(line) or _WHERE.match(line) or _ERROR.match(line)
    return further is not None or _indent(line) > _indent(first)


def _indent(line: bytes) -> int:
    found = _INDENT.match(line)
    return found.end if found else 0


def _instantiated(lines: Sequence[bytes], at: int) -> range:
    """Where the user's code asks for the template that an error is in; empty where there is none."""
    for above in range(at - 1, max(-1, at - _FAR), -1):
        line = lines[above]
        if b": error: " in line or not line.strip():
            break
        if b"required from here" in line or b"requested here" in line:
            return range(above, above + 1)
    return range(0)


def _of_test(lines: Sequence[bytes], at: int) -> range:
    """What pytest printed of the test that a line of its summary names; empty where that is not at hand."""
    test = _TEST.match(lines[at])
    if test is None:
        return range(0)
    place = test.groups["place"]
    began = next((above for above in range(at - 1, -1, -1) if _titles(lines[above], place)), at)
    first = next((place for place in range(began, at) if _SAID.match(lines[place])), at)
    end = first
    while end < min(at, first + MOST_SHOWN - 1) and _SAID.match(lines[end]):
        end += 1
    return range(first, end)


def _summary(lines: Sequence[bytes], at: int) -> range:
    """The line of pytest's summary that names the test which a line is from; empty where that is not at hand."""
    if not _SAID.match(lines[at]):
        return range(0)
    title = next((lines[above] for above in range(at - 1, -1, -1) if _title(lines[above])), b"")
    for place in range(at + 1, len(lines)):
        test = _TEST.match(lines[place]) if lines[place].startswith((b"FAILED ", b"ERROR ")) else None
        if test is not None and _titles(title, test.groups["place"]):
            return range(place, place + 1)
    return range(0)


def _title(line: bytes) -> str:
    """The test, with its classes, or the file that pytest begins to tell of; empty for other lines."""
    title = _TITLE.match(line) if line.startswith(b"_") else None
    return "" if title is None else title.groups["title"]


def _titles(line: bytes, place: str) -> bool:
    """Whether a line begins what pytest prints of a test, ``file::class::test[parameters]``, or of a file."""
    title = _title(line)
    if "::" not in place:
        return title == place
    test = place.partition("::")[2].partition("[")[0].rpartition("::")[2]
    return bool(title) and title.partition("[")[0].rpartition(".")[2] == test


def _of_unittest(lines: Sequence[bytes], at: int) -> range:
    """What ends the traceback of the test that a line of unittest names; empty where there is none."""
    if not _UNITTEST.match(lines[at]) or not lines[at + 2 : at + 3] or not lines[at + 2].startswith(b"Traceback "):
        return range(0)
    frames = range(at + 3, min(len(lines), at + _FAR))
    last = next((place for place in frames if not lines[place].startswith(b" ")), None)
    return range(0) if last is None else _end_of_traceback(at + 3, last)
