"""Where each file of a tree goes, and which names of one library become one.

Builds install a library under three names (``libx.so -> libx.so.2.6 -> libx.so.2.6.0``); archives that hold no links
turn them into three copies, of which a process that finds two loads two.
"""

from __future__ import annotations

import posixpath
import re
from typing import TYPE_CHECKING

import msgspec

from axletree.core.errors import IntegrityError, Problem
from axletree.core.trees import Entry, file_behind
from axletree.core.units import format_bytes
from axletree.package.partition import Claim, first_claims

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from axletree.binary.elf.facts import ElfFacts
    from axletree.core.trees import Tree
    from axletree.recipe.relocation import Relocate

_VERSIONED = re.compile(r"(.+?\.so)(?:\.\d[\w.+-]*)?")


class RelocatedTree(msgspec.Struct, frozen=True, kw_only=True):
    """A tree before and after."""

    entries: dict[str, Entry]
    """Path now -> the entry as it was, of files and empty folders."""
    links: dict[str, str]
    """Path now -> target now, of links that stay links."""
    moved: dict[str, str]
    """Path before -> path now, also of names that were given up for another."""
    folders: dict[str, str]
    """Folder before -> folder now, where files of it are kept."""
    spread: dict[str, tuple[str, ...]]
    """Folder before -> folders now, where several together have what it had, below the same relative paths."""
    names: dict[str, str]
    """File name or SONAME of a library that is kept once -> the name that is kept, where it is another."""
    sonames: dict[str, str]
    """Path now of a library that is kept once -> SONAME that it must have."""
    dropped: tuple[str, ...]
    """Paths before."""
    shared: tuple[str, ...]
    """Paths before of files that a sibling tree has in the same place: it brings them."""
    saved: int
    """Bytes of copies that are gone."""


def lay_out(
    tree: Tree, rules: Relocate, elfs: Mapping[str, ElfFacts], *, beside: Mapping[str, Entry] | None = None
) -> RelocatedTree:
    """Decide where everything goes.

    Args:
        tree: the tree.
        rules: what is placed, dropped and kept once.
        elfs: path -> facts, of its ELF files.
        beside: path -> entry of the trees that it is installed beside. What they have in the same place with the same
            content is theirs.

    Raises:
        IntegrityError: names of one library with different contents, a link to nothing or to what is dropped, two files
            in one place, also of a sibling tree, a rule that takes nothing. Names all.
    """
    return _Layouter(tree, rules, elfs, beside or {}).lay_out()


def unversioned(name: str) -> str | None:
    """``libx.so`` for ``libx.so.2.6.0``; ``None`` for what is no name of a shared library."""
    found = _VERSIONED.fullmatch(name)
    return found[1] if found else None


class _Layouter:
    def __init__(self, tree: Tree, rules: Relocate, elfs: Mapping[str, ElfFacts], beside: Mapping[str, Entry]) -> None:
        self.beside = beside
        self.shared: list[str] = []
        self.entries = {entry.path: entry for entry in tree.entries}
        self.rules = rules
        self.elfs = elfs
        self.problems: list[Problem] = []
        self.moved: dict[str, str] = {}
        self.names: dict[str, str] = {}
        self.sonames: dict[str, str] = {}
        self.saved = 0

    def lay_out(self) -> RelocatedTree:
        dropped = set(_taken(self.rules.drop, self.entries))
        kept = [path for path in self.entries if path not in dropped]
        groups: dict[tuple[str, str], list[str]] = {}
        for path in self.singles(kept):
            folder, name = posixpath.split(path)
            if (base := unversioned(name)) is not None:
                groups.setdefault((folder, base), []).append(path)
        entries: dict[str, Entry] = {}
        for (folder, base), paths in groups.items():
            self.unite(folder, base, paths, dropped, entries)
        united = {path for paths in groups.values() for path in paths}
        for path in kept:
            if path not in united and self.entries[path].kind != "link":
                self.put(path, self.placed(path), entries)
        folders = self.folders(kept)
        self.unused_places(folders)
        links = dict(self.links(kept, united, folders, entries))
        if self.problems:
            raise IntegrityError(*self.problems)
        return RelocatedTree(
            entries=entries,
            links=links,
            moved=self.moved,
            folders=folders,
            spread=self.spread(folders),
            names=self.names,
            sonames=self.sonames,
            dropped=tuple(sorted(dropped)),
            shared=tuple(sorted(self.shared)),
            saved=self.saved,
        )

    def singles(self, kept: Sequence[str]) -> tuple[str, ...]:
        """What is to be kept once; a pattern that takes nothing at all is a mistake of who wrote it."""
        for number, pattern in enumerate(self.rules.single):
            if not _taken((pattern,), kept):
                message = f"the pattern matches nothing: the tree has no path like {pattern}"
                self.problems.append(Problem(key=f"single[{number}]", message=message))
        return _taken(self.rules.single, kept)

    def placed(self, path: str) -> str:
        """A path in the new layout: the longest folder that is placed decides."""
        fitting = [folder for folder in self.rules.place if path == folder or path.startswith(f"{folder}/")]
        folder = max(fitting, key=len, default="." if "." in self.rules.place else None)
        if folder is None:
            return path
        rest = path if folder == "." else path[len(folder) + 1 :]
        return posixpath.normpath(posixpath.join(self.rules.place[folder], rest))

    def unite(self, folder: str, base: str, paths: list[str], dropped: set[str], entries: dict[str, Entry]) -> None:
        """Keep one of the names of one library."""
        files: dict[str, str] = {}  # name -> the file that it leads to
        for path in paths:
            end = file_behind(path, self.entries)
            if end is None or end in dropped:
                target = self.entries[path].target
                fate = "is dropped" if end in dropped else "does not lead to a file in the tree"
                self.problems.append(Problem(file=path, message=f"the path is a link to {target}, which {fate}"))
            else:
                files[path] = end
        ends = {end: self.entries[end] for end in files.values()}
        if not ends:
            return
        if len({entry.blob for entry in ends.values()}) > 1:
            shown = ", ".join(f"{path} ({format_bytes(entry.size)})" for path, entry in sorted(ends.items()))
            hint = "drop the names left over from another build, or remove the library from `single`"
            message = f"files of the same library have different contents: {shown}"
            self.problems.append(Problem(file=posixpath.join(folder, base), message=message, hint=hint))
            return
        kept = max(sorted(ends), key=lambda path: ends[path].executable)
        facts = self.elfs.get(kept)
        if facts is None or facts.kind != "shared":
            message = "the file is not a shared library, so its names cannot be merged"
            self.problems.append(Problem(file=kept, message=message, hint="remove the library from `single`"))
            return
        name = base if self.rules.names == "plain" else (facts.soname or base)
        target = self.placed(posixpath.join(folder, name))
        self.put(kept, target, entries)
        for path in paths:
            self.moved[path] = target
        if facts.soname is not None:
            self.sonames[target] = name
        old = {posixpath.basename(path) for path in paths} | {facts.soname or name}
        self.names |= {each: name for each in old if each != name}
        self.saved += sum(self.entries[path].size for path in paths) - ends[kept].size

    def put(self, path: str, target: str, entries: dict[str, Entry]) -> None:
        entry = self.entries[path]
        self.moved[path] = target
        theirs = self.beside.get(target)
        if theirs is not None and theirs.blob == entry.blob:
            self.shared.append(path)
            return
        if theirs is not None:
            message = "the file would overwrite a file with different content in a sibling tree"
            self.problems.append(Problem(file=path, key=target, message=message, hint="add the path to `drop`"))
        other = entries.setdefault(target, entry)
        if (other.blob, other.executable) != (entry.blob, entry.executable):
            message = f"the file would overwrite {other.path} with different content"
            self.problems.append(Problem(file=path, key=target, message=message))

    def folders(self, kept: Iterable[str]) -> dict[str, str]:
        found: dict[str, str] = {}
        for path in kept:
            folder = path if self.entries[path].kind == "directory" else posixpath.dirname(path)
            while folder and folder not in found:
                found[folder] = self.placed(folder)
                folder = posixpath.dirname(folder)
        return found

    def spread(self, folders: Mapping[str, str]) -> dict[str, tuple[str, ...]]:
        """Folders whose subfolders were placed elsewhere, under their own names: first where these went."""
        found: dict[str, tuple[str, ...]] = {}
        for folder, now in folders.items():
            roots: dict[str, None] = {}
            for below, place in self.rules.place.items():
                rest = below[len(folder) + 1 :]
                if below.startswith(f"{folder}/") and f"/{place}".endswith(f"/{rest}"):
                    roots.setdefault(posixpath.normpath(place[: len(place) - len(rest)] or "."))
            if roots.keys() - {now}:
                start = "" if now == "." else f"{now}/"
                own = any(path.startswith(start) for path in self.moved.values())
                found[folder] = (*roots, now) if own and now not in roots else (*roots,)
        return found

    def unused_places(self, folders: Mapping[str, str]) -> None:
        for folder in self.rules.place:
            if folder not in folders and folder != ".":
                message = "the pattern matches nothing: the tree has no such folder, or everything in it is dropped"
                self.problems.append(Problem(key=f"place.{folder}", message=message))

    def links(
        self, kept: Iterable[str], united: set[str], folders: Mapping[str, str], entries: Mapping[str, Entry]
    ) -> Iterator[tuple[str, str]]:
        """Other links, changed so that they lead to what they led to."""
        for path in kept:
            entry = self.entries[path]
            if entry.kind != "link" or path in united:
                continue
            place = self.placed(path)
            end = posixpath.normpath(posixpath.join(posixpath.dirname(path), entry.target or ""))
            new = self.moved.get(file_behind(path, self.entries) or end, folders.get(end))
            if new is None:
                message = f"the path is a link to {entry.target}, which is not kept"
                self.problems.append(Problem(file=path, message=message, hint="add the path to `drop`"))
            elif place in entries:
                self.problems.append(Problem(file=path, key=place, message="the link has the same path as a file"))
            else:
                self.moved[path] = place
                yield place, posixpath.relpath(f"/{new}", f"/{posixpath.dirname(place)}")


def _taken(patterns: tuple[str, ...], paths: Iterable[str]) -> tuple[str, ...]:
    """Those of some paths that any of the patterns fits."""
    listed = tuple(paths)
    return tuple(
        path
        for path, number in zip(listed, first_claims(listed, [Claim(files=patterns)]), strict=True)
        if number is not None
    )
