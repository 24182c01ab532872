"""What a platform folder of a package for run time holds: files only, since wheels have no links.

A shared library is there once, under its SONAME, which is what loaders ask for. A link to a program becomes a launcher
(the program may look at the name that it was called by), any other link to a file a copy. Links to folders stay out:
only the devel package has them.
"""

from __future__ import annotations

import posixpath
from typing import TYPE_CHECKING

import msgspec

from axletree.core.errors import IntegrityError, Problem
from axletree.package.sdk.links import relative
from axletree.package.sdk.plan import Item

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from axletree.binary.elf.facts import ElfFacts
    from axletree.package.sdk.entries import Entry
    from axletree.package.sdk.links import SdkTree


class Payload(msgspec.Struct, frozen=True, kw_only=True):
    """The files of one platform folder, before anything is known of the others."""

    items: tuple[Item, ...]
    """Sorted by path."""
    renamed: dict[str, str]
    """Path of a library in the tree -> its path here, where that is another."""
    notes: tuple[str, ...]


def is_library(facts: ElfFacts | None) -> bool:
    """Whether a file is a shared library that others may need."""
    return facts is not None and facts.kind == "shared" and (facts.interpreter is None or facts.soname is not None)


def is_program(facts: ElfFacts | None) -> bool:
    """Whether a file is a program that can be started."""
    return facts is not None and (facts.kind == "executable" or (facts.interpreter is not None and not facts.soname))


def library_place(path: str, facts: ElfFacts | None) -> str:
    """Where a library lies once its name is its SONAME: in the folder that it lies in. Other files stay."""
    if facts is None or not facts.soname or "/" in facts.soname or not is_library(facts):
        return path
    return posixpath.join(posixpath.dirname(path), facts.soname)


def lay_out_payloads(
    owned: Mapping[str, Sequence[Entry]],
    folders: Mapping[str, str],
    tree: SdkTree,
    facts: Mapping[str, ElfFacts],
) -> dict[str, Payload]:
    """The platform folders of packages for run time.

    Args:
        owned: package -> its entries.
        folders: package -> its platform folder.
        tree: the whole SDK.
        facts: where its content lies -> facts of each ELF file.

    Raises:
        IntegrityError: a link that leads nowhere, or two files for one place. Names all.
    """
    places = {
        entry.path: (folders[package], library_place(entry.path, facts.get(entry.source)))
        for package, entries in owned.items()
        for entry in entries
        if entry.kind == "file"
    }
    problems: list[Problem] = []
    payloads = {
        package: _Folder(package, folders[package], tree, facts, places, problems).payload(entries)
        for package, entries in owned.items()
    }
    if problems:
        hint = "a link that leads nowhere is broken for users: add what it leads to, or a [[drop]] that names it"
        raise IntegrityError(*problems, hint=hint)
    return payloads


class _Folder:
    """One platform folder in the making."""

    def __init__(
        self,
        package: str,
        folder: str,
        tree: SdkTree,
        facts: Mapping[str, ElfFacts],
        places: Mapping[str, tuple[str, str]],
        problems: list[Problem],
    ) -> None:
        self.package = package
        self.folder = folder
        self.tree = tree
        self.facts = facts
        self.places = places
        self.problems = problems
        self.notes: list[str] = []
        self.renamed: dict[str, str] = {}

    def payload(self, entries: Sequence[Entry]) -> Payload:
        items: dict[str, Item] = {}
        for entry in sorted(entries, key=lambda entry: entry.path):
            for item in self.items(entry):
                other = items.setdefault(item.path, item)
                if other is not item:
                    message = f"{other.entry.path} and {item.entry.path} both want to be {item.path}"
                    self.problems.append(Problem(file=self.package, message=message))
        return Payload(
            items=tuple(items[path] for path in sorted(items)), renamed=self.renamed, notes=tuple(self.notes)
        )

    def items(self, entry: Entry) -> Iterator[Item]:
        if entry.kind == "file":
            place = self.places[entry.path][1]
            if place != entry.path:
                self.renamed[entry.path] = place
            yield Item(path=place, entry=entry)
        elif entry.kind == "link":
            yield from self.link(entry)

    def link(self, entry: Entry) -> Iterator[Item]:
        real = self.tree.real(entry.path)
        if real is None:
            message = f"is a link to {entry.link}, which is not in the tree"
            self.problems.append(Problem(file=entry.path, key=entry.artifact, message=message))
            return
        target = self.tree.entries.get(real)
        if target is None or target.kind != "file":
            return
        found = self.facts.get(target.source)
        if found is not None and is_library(found) and found.soname:
            return  # under its SONAME it is there already
        if not is_program(found):
            yield Item(path=entry.path, entry=target)
        elif real in self.places:
            folder, place = self.places[real]
            way = relative(f"{folder}/{place}", beside=f"{self.folder}/{entry.path}")
            yield Item(path=entry.path, entry=target, role="launcher", launches=way)
        else:
            self.notes.append(f"{entry.path} leads to a program that only the devel package has: it is only there")
