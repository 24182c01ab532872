"""CMakeCache.txt: read with types and lines, edited entry by entry, written back as it was but for the edits.

The format is that of CMake's cmCacheManager: ``KEY:TYPE=VALUE``, a key with a colon in double quotes, a value with
blanks at its ends in single quotes, ``//`` before the help of the next entry, ``#`` before comments. CMake writes the
file anew each time it runs, and runs when the file is newer than what it generated: an edit is how a configured tree is
changed without configuring it from nothing.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Literal, get_args

import msgspec

from axletree.core.errors import IntegrityError, Problem, UsageError, some_problems

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

CACHE_FILE = "CMakeCache.txt"

EntryType = Literal["BOOL", "STRING", "PATH", "FILEPATH", "INTERNAL", "STATIC", "UNINITIALIZED"]

FIXED = frozenset(
    {
        "CMAKE_CACHEFILE_DIR",
        "CMAKE_CACHE_MAJOR_VERSION",
        "CMAKE_CACHE_MINOR_VERSION",
        "CMAKE_CACHE_PATCH_VERSION",
        "CMAKE_CXX_COMPILER",
        "CMAKE_C_COMPILER",
        "CMAKE_CUDA_COMPILER",
        "CMAKE_GENERATOR",
        "CMAKE_GENERATOR_PLATFORM",
        "CMAKE_GENERATOR_TOOLSET",
        "CMAKE_HIP_COMPILER",
        "CMAKE_HOME_DIRECTORY",
        "CMAKE_TOOLCHAIN_FILE",
    }
)
"""What a configured tree can't change: CMake refuses it, or silently starts from nothing and forgets other entries."""

_TYPES: dict[str, EntryType] = {kind: kind for kind in get_args(EntryType)}
_ENTRY = re.compile(r'(?:"(?P<quoted>[^"]*)"|(?P<name>[^"=:][^=:]*)):(?P<type>[^=]*)=(?P<value>.*)', re.DOTALL)
_BLANKS = " \t\r"
_TRUE = frozenset({"1", "ON", "YES", "TRUE", "Y"})
_FALSE = frozenset({"", "0", "OFF", "NO", "FALSE", "N", "IGNORE"})
_PROPERTIES = ("ADVANCED", "MODIFIED", "STRINGS")
"""Kept as internal entries ``NAME-PROPERTY`` beside an entry."""
_INTERNAL_SECTION = "# INTERNAL cache entries"
_RULER = re.compile(r"#+\s*")
_SHOWN = 120  # characters of a malformed line in a message
_TOLD = 5  # such lines that are told one by one


class CacheEntry(msgspec.Struct, frozen=True, kw_only=True):
    """An entry of the cache."""

    name: str
    type: EntryType
    value: str
    line: int
    """Line number, starting at 1; 0 for an added entry."""
    help: str = ""
    """The comment above it."""


class Cache(msgspec.Struct, frozen=True, kw_only=True):
    """A cache: its lines, each with its end, and the entries in them."""

    lines: tuple[str, ...]
    entries: dict[str, CacheEntry]
    """By name; where a name stands twice, the last, as CMake takes it."""

    def get(self, name: str) -> str | None:
        """The value of an entry, or ``None`` where there is none."""
        entry = self.entries.get(name)
        return None if entry is None else entry.value

    def is_true(self, name: str) -> bool:
        """Whether CMake's ``if(NAME)`` holds; an entry that is not there does not."""
        return is_true(self.get(name) or "")


class CacheChange(msgspec.Struct, frozen=True, kw_only=True):
    """How an entry differs between two caches."""

    name: str
    old: str | None
    """``None`` for a new entry."""
    new: str | None
    """``None`` for a removed entry."""
    old_type: EntryType | None
    type: EntryType
    """Its current value; for a removed entry, its old value."""


def is_true(value: str) -> bool:
    """CMake's truth of a variable with this value: what is no false constant is true, also ``0.0`` or a path."""
    return not (value.upper() in _FALSE or is_missing(value))


def is_missing(value: str) -> bool:
    """Whether a search wrote that it found nothing."""
    return value == "NOTFOUND" or value.endswith("-NOTFOUND")


def parse_cache(text: str, *, file: str) -> Cache:
    """Read a cache.

    Args:
        text: content of ``CMakeCache.txt``.
        file: its name, for messages.

    Raises:
        IntegrityError: lines that are neither entry nor comment, or have a type that CMake does not know: the first of
            them, and how many more there are; or no line is an entry.
    """
    lines = tuple(re.findall(r"[^\n]*\n|[^\n]+", text))  # str.splitlines knows more ends than CMake
    entries: dict[str, CacheEntry] = {}
    problems: list[Problem] = []
    about = ""
    for number, line in enumerate(lines, 1):
        content = line.rstrip("\r\n").lstrip(_BLANKS)
        if content.startswith("//"):
            about += content[2:].replace("\\n", "\n", 1) if content.startswith("//\\n") else content[2:]
            continue
        found, about = about, ""
        if not content or content.startswith("#"):
            continue
        match = _ENTRY.fullmatch(content)
        if match is None or match["type"] not in _TYPES:
            problems.append(_malformed(match and match["type"], content, file, number))
            continue
        name, value = _name(match), _unquoted(match["value"])
        entries[name] = CacheEntry(name=name, type=_TYPES[match["type"]], value=value, line=number, help=found)
    if problems:
        raise IntegrityError(*_damage(problems, is_cache=bool(entries)))
    return Cache(lines=lines, entries=entries)


def _damage(problems: Sequence[Problem], *, is_cache: bool) -> Iterator[Problem]:
    """What to say of the lines that are wrong: another file would fill the screen with them."""
    if not is_cache:
        first = msgspec.structs.replace(
            problems[0], message="the file is not a CMake cache: no line has the form KEY:TYPE=VALUE"
        )
        yield msgspec.structs.replace(
            first, hint=f"specify a {CACHE_FILE} file or the build folder that CMake configured"
        )
        return
    yield from some_problems(problems, _TOLD, what="damaged line")


def _malformed(kind: str | None, content: str, file: str, number: int) -> Problem:
    if kind is None:
        what, hint = (
            "the line does not have the form KEY:TYPE=VALUE",
            "the file is damaged: configure the build folder again",
        )
    else:
        what, hint = f"unknown type {kind[:_SHOWN]!r}", f"types: {', '.join(sorted(_TYPES))}"
    return Problem(message=what, file=file, line=number, excerpt=content[:_SHOWN], hint=hint)


def _name(match: re.Match[str]) -> str:
    quoted: str | None = match["quoted"]
    return match["name"] if quoted is None else quoted


def _unquoted(value: str) -> str:
    value = value.rstrip(_BLANKS)
    return value[1:-1] if len(value) > 1 and value[0] == value[-1] == "'" else value


def render_cache(cache: Cache) -> str:
    """The text of a cache; that of the file where nothing was edited."""
    return "".join(cache.lines)


def edit_cache(cache: Cache, changes: Mapping[str, str | tuple[EntryType, str] | None], *, file: str = "") -> Cache:
    """Change entries.

    Args:
        cache: as it is.
        changes: name -> new value, which keeps the entry's type (a new entry is ``UNINITIALIZED``, as with ``-D``); or
            type and value; or ``None``, to remove it.
        file: name of the cache, for messages.

    Raises:
        UsageError: a value that its type does not take, a name that can't be one, or an entry that a configured tree
            can't change; all of them.
    """
    wanted = {name: _wanted(cache, name, change) for name, change in changes.items()}
    problems = [
        msgspec.structs.replace(problem, file=file or None)
        for name, change in wanted.items()
        for problem in _refusals(cache, name, change)
    ]
    if problems:
        raise UsageError(*problems)
    lines = list(cache.lines)
    dropped: set[int] = set()
    added: list[CacheEntry] = []
    for name, change in wanted.items():
        entry = cache.entries.get(name)
        if entry is None:
            added += [change] if change is not None else []
        elif change is None:
            dropped |= _lines_of(name, lines)
        elif (change.type, change.value) != (entry.type, entry.value):
            lines[entry.line - 1] = _rendered(change)
    kept = [line for number, line in enumerate(lines) if number not in dropped]
    return parse_cache("".join(_with_new(kept, added)), file=file or CACHE_FILE)


def _wanted(cache: Cache, name: str, change: str | tuple[EntryType, str] | None) -> CacheEntry | None:
    if change is None:
        return None
    known = cache.entries.get(name)
    kind, value = change if isinstance(change, tuple) else (known.type if known else "UNINITIALIZED", change)
    return CacheEntry(name=name, type=kind, value=value, line=known.line if known else 0)


def _refusals(cache: Cache, name: str, change: CacheEntry | None) -> Iterator[Problem]:
    if name != name.strip() or not name or any(mark in name for mark in '=\n\r"') or name.startswith("#"):
        yield Problem(message=f"{name!r} is not a valid cache entry name", key=name)
        return
    if name in FIXED and (change is None or change.value != cache.get(name)):
        yield Problem(
            message="the variable cannot be changed in a configured build folder",
            key=name,
            hint="remove the build folder and configure it again; CMake would start from scratch anyway",
        )
    if change is None:
        return
    if "\n" in change.value or "\r" in change.value:
        yield Problem(message="a value must be a single line", key=name, hint="separate list items with ';'")
    if change.type == "BOOL" and change.value.upper() not in _TRUE | _FALSE - {""} and not is_missing(change.value):
        yield Problem(message=f"{change.value!r} is not a valid BOOL", key=name, hint="use ON or OFF")


def _lines_of(name: str, lines: list[str]) -> set[int]:
    """The lines of an entry, of its properties and of the help above them, wherever they stand."""
    names = {name, *(f"{name}-{kind}" for kind in _PROPERTIES)}
    found: set[int] = set()
    for number, line in enumerate(lines):
        match = _ENTRY.fullmatch(line.rstrip("\r\n").lstrip(_BLANKS))
        if match is None or line.startswith(("#", "//")) or _name(match) not in names:
            continue
        first = number
        while first and lines[first - 1].startswith("//"):
            first -= 1
        found |= set(range(first, number + 1))
    return found


def _with_new(lines: list[str], added: list[CacheEntry]) -> list[str]:
    if not added:
        return lines
    outside = [_rendered(entry) for entry in added if entry.type not in {"INTERNAL", "STATIC"}]
    inside = [_rendered(entry) for entry in added if entry.type in {"INTERNAL", "STATIC"}]
    if lines and not lines[-1].endswith("\n"):
        lines = [*lines[:-1], f"{lines[-1]}\n"]
    at = next((n for n, line in enumerate(lines) if line.startswith(_INTERNAL_SECTION)), len(lines))
    while at and _RULER.fullmatch(lines[at - 1]):
        at -= 1
    return [*lines[:at], *outside, *lines[at:], *inside]


def _rendered(entry: CacheEntry) -> str:
    name, value = entry.name, entry.value
    if ":" in name or name.startswith("//"):
        name = f'"{name}"'
    if value and (value[0] in " \t" or value[-1] in " \t" or (value[0] == value[-1] == "'" and len(value) > 1)):
        value = f"'{value}'"
    return f"{name}:{entry.type}={value}\n"


def diff_caches(old: Cache, new: Cache) -> tuple[CacheChange, ...]:
    """The entries that differ in value or type, by name."""
    changes = []
    for name in sorted(old.entries.keys() | new.entries.keys()):
        before, after = old.entries.get(name), new.entries.get(name)
        if before is not None and after is not None and (before.type, before.value) == (after.type, after.value):
            continue
        known = after or old.entries[name]
        changes.append(
            CacheChange(
                name=name,
                old=old.get(name),
                new=new.get(name),
                old_type=before.type if before is not None else None,
                type=known.type,
            )
        )
    return tuple(changes)


def render_diff(changes: tuple[CacheChange, ...]) -> str:
    """A diff for people, two lines for each entry that is another one."""
    lines = []
    for change in changes:
        if change.old is not None:
            lines.append(f"-{change.name}:{change.old_type}={change.old}\n")
        if change.new is not None:
            lines.append(f"+{change.name}:{change.type}={change.new}\n")
    return "".join(lines)
