"""Files of several inputs as one tree: each path once for a GPU, or an error that names who brought it twice."""

from __future__ import annotations

import posixpath
from bisect import bisect_left
from typing import TYPE_CHECKING

import msgspec

from axletree.core.errors import IntegrityError, Problem, some_problems
from axletree.core.trees import is_safe_path, paths_above_others
from axletree.core.units import some_of
from axletree.package.sdk.artifact_name import base_target
from axletree.package.sdk.entries import GENERIC

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from axletree.package.sdk.entries import SdkEntry

_SHOWN = 3
_HINT = "leave out one of the two inputs"


def merge_entries(
    entries: Iterable[SdkEntry], *, same: Callable[[SdkEntry, SdkEntry], bool], note: Callable[[str], None]
) -> tuple[SdkEntry, ...]:
    """Entries sorted by path and target, each path once, or once for each GPU target.

    What artifacts for several targets bring alike is for all GPUs.

    Args:
        entries: of all inputs.
        same: whether two files have the same content; asked only where size and execute bit agree.
        note: told what was brought twice with the same content. The entry of the artifact whose name sorts first
            stays.

    Raises:
        IntegrityError: a path with different content for the same GPUs, or one that is a file here and a folder there.
            Names the first twenty with who brought them.
    """
    merging = _Merging(same)
    for entry in sorted(entries, key=_rank):
        merging.add(entry)
    merging.unite()
    found, problems = merging.found, merging.problems
    above = set(paths_above_others(found))
    paths = sorted(found)
    for path in sorted(path for path in above if found[path][0].kind != "folder"):
        first = found[path][0]
        below = found[paths[bisect_left(paths, f"{path}/")]][0]
        message = f"the path is a {first.kind} in {origin(first)} but a folder in {origin(below)}"
        problems.append(Problem(file=path, message=message))
    if problems:
        raise IntegrityError(*some_problems(problems), hint=_HINT)
    for (one, other), twice in sorted(merging.twice.items()):
        note(
            f"{one} and {other} both contain {some_of(sorted(twice), _SHOWN)}, with the same content; one copy is used"
        )
    return tuple(
        entry for path in paths if path not in above for entry in sorted(found[path], key=lambda entry: entry.target)
    )


class _Merging:
    """A tree in the making."""

    def __init__(self, same: Callable[[SdkEntry, SdkEntry], bool]) -> None:
        self.same = same
        self.found: dict[str, list[SdkEntry]] = {}
        self.known: dict[str, bool] = {}
        self.twice: dict[tuple[str, str], list[str]] = {}
        self.problems: list[Problem] = []

    def add(self, entry: SdkEntry) -> None:
        """Take an entry in beside those of its path that are for other GPUs."""
        there = self.found.setdefault(entry.path, [])
        first = next((each for each in there if _for_same(each, entry)), None)
        if first is None:
            there.append(entry)
        elif self.agree(first, entry):
            self.note(first, entry)
            if entry.target == GENERIC:
                there[:] = [msgspec.structs.replace(first, target=GENERIC)]
        else:
            message = f"the file is in both {origin(first)} and {origin(entry)}, with different content"
            self.problems.append(Problem(file=entry.path, message=message))

    def unite(self) -> None:
        """Make one of what all targets have alike. Links are alike where they lead to what is."""
        for path, (first, *others) in self.found.items():
            if others and self.alike(path):
                for other in others:
                    self.note(first, other)
        for path in [path for path, alike in self.known.items() if alike and len(self.found[path]) > 1]:
            self.found[path] = [msgspec.structs.replace(self.found[path][0], target=GENERIC)]

    def alike(self, path: str) -> bool:
        """Whether all GPUs have the same at a path."""
        if path not in self.found:
            return True  # a folder, or nothing for any of them
        if path not in self.known:
            self.known[path] = False  # of links in a circle
            first, *others = self.found[path]
            same = first.target == GENERIC or (bool(others) and all(self.agree(first, other) for other in others))
            if same and first.kind == "link" and others:
                same = self.alike(posixpath.normpath(posixpath.join(posixpath.dirname(path), first.link)))
            self.known[path] = same
        return self.known[path]

    def note(self, first: SdkEntry, other: SdkEntry) -> None:
        if first.kind != "folder":
            self.twice.setdefault((origin(first), origin(other)), []).append(first.path)

    def agree(self, one: SdkEntry, other: SdkEntry) -> bool:
        if (one.kind, one.link, one.size, one.executable) != (other.kind, other.link, other.size, other.executable):
            return False
        return one.kind != "file" or one.source == other.source or self.same(one, other)


def _for_same(one: SdkEntry, other: SdkEntry) -> bool:
    """Whether two entries are for the same GPUs, so that only one of them can be right."""
    return GENERIC in {one.target, other.target} or base_target(one.target) == base_target(other.target)


def origin(entry: SdkEntry) -> str:
    """The artifact that brought an entry, as its folder is called."""
    return f"{entry.artifact}_{entry.component}_{entry.target}"


def path_fault(path: str, link: str = "") -> str | None:
    """What is wrong with a path below a prefix, or with what a link there says; ``None`` where nothing is."""
    if not is_safe_path(path):
        return "the path is not allowed in packages or leads outside the tree"
    return "the link points outside the tree" if link and leaves_tree(path, link) else None


def leaves_tree(path: str, link: str) -> bool:
    """Whether a link at a path below a prefix leads out of it, as far as its text says."""
    target = posixpath.normpath(posixpath.join(posixpath.dirname(path), link))
    return link.startswith("/") or target == ".." or target.startswith("../") or "\0" in link or not is_text(link)


def is_text(name: str) -> bool:
    """Whether a name of the system is UTF-8; others can't be written anywhere."""
    return not any("\ud800" <= character <= "\udfff" for character in name)


def _rank(entry: SdkEntry) -> tuple[str, str, str, str, str]:
    return entry.path, entry.artifact, entry.component, entry.target, entry.source
