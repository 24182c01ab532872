"""Files of several inputs as one tree: each path once, or an error that names who brought it twice."""

from __future__ import annotations

import posixpath
from typing import TYPE_CHECKING

from axletree.core.errors import IntegrityError, Problem
from axletree.core.trees import is_safe_path, paths_above_others
from axletree.core.units import some_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from axletree.package.sdk.entries import Entry

_SHOWN = 3
_MOST_PROBLEMS = 20
_HINT = "leave one of the two inputs out; of code for several GPU families, read one family at a time"


def merge_entries(
    entries: Iterable[Entry], *, same: Callable[[Entry, Entry], bool], note: Callable[[str], None]
) -> tuple[Entry, ...]:
    """Entries sorted by path, each path once.

    Args:
        entries: of all inputs.
        same: whether two files have the same content; asked only where size and execute bit agree.
        note: told what was brought twice with the same content. The entry of the artifact whose name sorts first
            stays.

    Raises:
        IntegrityError: a path with different content, or one that is a file here and a folder there. Names the first
            twenty with who brought them.
    """
    found: dict[str, Entry] = {}
    twice: dict[tuple[str, str], list[str]] = {}
    problems: list[Problem] = []
    for entry in sorted(entries, key=_rank):
        first = found.setdefault(entry.path, entry)
        if first is entry or first.kind == entry.kind == "folder":
            continue
        if _agree(first, entry, same):
            twice.setdefault((origin(first), origin(entry)), []).append(entry.path)
        else:
            message = f"is brought by {origin(first)} and by {origin(entry)}, with different content"
            problems.append(Problem(file=entry.path, message=message))
    above = set(paths_above_others(found))
    for path in sorted(path for path in above if found[path].kind != "folder"):
        below = next(entry for entry in sorted(found.values(), key=_rank) if entry.path.startswith(f"{path}/"))
        kind = "a file" if found[path].kind == "file" else "a link"
        message = f"is {kind} in {origin(found[path])}, and a folder in {origin(below)}"
        problems.append(Problem(file=path, message=message))
    if problems:
        more = len(problems) - _MOST_PROBLEMS
        told = [Problem(message=f"and {more:,} more")] if more > 0 else []
        raise IntegrityError(*problems[:_MOST_PROBLEMS], *told, hint=_HINT)
    for (one, other), paths in sorted(twice.items()):
        note(f"{one} and {other} both bring {some_of(sorted(paths), _SHOWN)}, with the same content: taken once")
    return tuple(found[path] for path in sorted(found) if path not in above)


def origin(entry: Entry) -> str:
    """The artifact that brought an entry, as its folder is called."""
    return f"{entry.artifact}_{entry.component}_{entry.target}"


def path_fault(path: str, link: str = "") -> str | None:
    """What is wrong with a path below a prefix, or with what a link there says; ``None`` where nothing is."""
    if not is_safe_path(path):
        return "has a name that no package can hold, or that leads out of the tree"
    return "is a link that leads out of the tree" if link and leaves_tree(path, link) else None


def leaves_tree(path: str, link: str) -> bool:
    """Whether a link at a path below a prefix leads out of it, as far as its text says."""
    target = posixpath.normpath(posixpath.join(posixpath.dirname(path), link))
    return link.startswith("/") or target == ".." or target.startswith("../") or "\0" in link or not is_text(link)


def is_text(name: str) -> bool:
    """Whether a name of the system is UTF-8; others can't be written anywhere."""
    return not any("\ud800" <= character <= "\udfff" for character in name)


def _rank(entry: Entry) -> tuple[str, str, str, str, str]:
    return entry.path, entry.artifact, entry.component, entry.target, entry.source


def _agree(one: Entry, other: Entry, same: Callable[[Entry, Entry], bool]) -> bool:
    if (one.kind, one.link, one.size, one.executable) != (other.kind, other.link, other.size, other.executable):
        return False
    return one.kind != "file" or one.source == other.source or same(one, other)
