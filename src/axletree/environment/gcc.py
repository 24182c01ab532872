"""What compilers say of their search with ``-v -H``: gcc, clang, and nvcc and hipcc, which call them.

The form is gcc's ("Preprocessor Options", "Options Controlling the Preprocessor" in its manual); clang prints the same.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_QUOTE = '#include "..." search starts here:'
_ANGLE = "#include <...> search starts here:"
_END = "End of search list."
_HEADER = re.compile(r"(\.+) (?!\.)(.+)")
_ENTERED = re.compile(r'# \d+ "((?:[^"\\]|\\.)*)" 1\b')
_DUPLICATE = re.compile(r'ignoring duplicate directory "(.*)"')
_SYSTEM = "as it is a non-system directory that duplicates a system directory"
_ABSENT = re.compile(r'ignoring nonexistent directory "(.*)"')
_LIBRARIES = re.compile(r"^libraries: =?(.*)$", re.MULTILINE)
_NAMED = " (framework directory)"


class SearchList(msgspec.Struct, frozen=True, kw_only=True):
    """Where one pass of a compiler looks for headers."""

    quote: tuple[str, ...] = ()
    """Folders that only ``#include "..."`` looks into, first of all."""
    angle: tuple[str, ...] = ()
    """Folders in order, as printed."""
    moved: tuple[str, ...] = ()
    """Folders that were asked for by ``-I`` or a variable, and only count where the compiler has them itself."""
    absent: tuple[str, ...] = ()
    """Folders that do not exist."""


class Header(msgspec.Struct, frozen=True, kw_only=True):
    """A header that was read."""

    depth: int
    """1: by the source itself."""
    path: str


def search_lists(text: str) -> tuple[SearchList, ...]:
    """The search lists of all passes, in the order in which they ran."""
    return tuple(_lists(text.splitlines()))


def _lists(lines: Sequence[str]) -> Iterator[SearchList]:
    moved: list[str] = []
    absent: list[str] = []
    folders: dict[str, list[str]] = {_QUOTE: [], _ANGLE: []}
    part: str | None = None
    before = ""
    for line in lines:
        text = line.strip()
        if text in folders:
            part = text
        elif text == _END:
            quote, angle = (tuple(folders[key]) for key in (_QUOTE, _ANGLE))
            yield SearchList(quote=quote, angle=angle, moved=tuple(dict.fromkeys(moved)), absent=tuple(absent))
            moved, absent, folders, part = [], [], {_QUOTE: [], _ANGLE: []}, None
        elif part is not None and line.startswith(" "):
            folders[part].append(text.removesuffix(_NAMED))
        elif found := _ABSENT.match(text):
            absent.append(found[1])
        elif text == _SYSTEM and (found := _DUPLICATE.match(before)):
            moved.append(found[1])
        before = text


def library_folders(text: str) -> tuple[str, ...] | None:
    """Where the driver looks for libraries, by ``-print-search-dirs``, as printed; ``None`` where it does not say."""
    found = _LIBRARIES.search(text)
    return tuple(filter(None, found[1].split(":"))) if found else None


def headers_read(text: str) -> tuple[Header, ...]:
    """Headers in the order in which they were first opened, of all passes one after the other."""
    found = (_HEADER.fullmatch(line.rstrip()) for line in text.splitlines())
    return tuple(Header(depth=len(each[1]), path=each[2]) for each in found if each is not None)


def headers_entered(preprocessed: str) -> tuple[str, ...]:
    """Headers in the order in which they were entered, by the line markers of ``-E``'s output.

    Unlike ``-H`` this has what is included before the source's first line, as nvcc and hipcc do. See "Preprocessor
    Output" in the manual of GNU cpp.
    """
    found = (_ENTERED.match(line) for line in preprocessed.splitlines() if line.startswith("# "))
    paths = (each[1].replace('\\"', '"').replace("\\\\", "\\") for each in found if each is not None)
    return tuple(dict.fromkeys(path for path in paths if not path.startswith("<")))


def name_in(path: str, folders: Sequence[str]) -> tuple[str, str] | None:
    """(folder, name as an ``#include`` has it) of a header, for the deepest folder that holds it."""
    holding = [folder for folder in folders if path.startswith(folder.rstrip("/") + "/")]
    if not holding:
        return None
    folder = max(holding, key=len)
    return folder, path[len(folder.rstrip("/")) + 1 :]
