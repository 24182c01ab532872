"""What a platform folder of a package for run time holds: files only, since wheels have no links.

A shared library is there once, under the name that it is loaded by, which is its SONAME for most. A link to a program
becomes a launcher (the program may look at the name that it was called by), any other link to a file a copy. Links to
folders stay out: only the devel package has them.
"""

from __future__ import annotations

import posixpath
from typing import TYPE_CHECKING

import msgspec

from axletree.core.errors import IntegrityError, Problem
from axletree.package.sdk.links import relative
from axletree.package.sdk.plan import PlatformFile
from axletree.package.sdk.shipped import FILE

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from axletree.binary.elf.facts import ElfFacts
    from axletree.package.sdk.entries import SdkEntry
    from axletree.package.sdk.links import SdkTree


_DANGLING = "add the link's target to a package, or add a [[drop]] for the link, which would be broken for users"
_TWICE = "exclude one of the two from its claim, or list it in a [[drop]]"
RESERVED = frozenset({"__init__.py", FILE})
"""What is at the root of a platform folder, and of the expanded devel package, beside the SDK's files."""


class Payload(msgspec.Struct, frozen=True, kw_only=True):
    """The files of one platform folder, before anything is known of the others."""

    items: tuple[PlatformFile, ...]
    """Sorted by path."""
    notes: tuple[str, ...]


def is_library(facts: ElfFacts | None) -> bool:
    """Whether a file is a shared library that others may need."""
    return facts is not None and facts.kind == "shared" and not is_program(facts)


def is_program(facts: ElfFacts | None) -> bool:
    """Whether a file is a program that can be started; a library that says who it is when started is none."""
    if facts is None or facts.kind not in {"executable", "shared"}:
        return False
    return facts.kind == "executable" or facts.static_program or (facts.interpreter is not None and not facts.soname)


class LibraryPlaces:
    """Where the libraries of a tree lie in packages: in their folder, under the name that they are loaded by.

    That is the SONAME where something of that name is beside the library or leads to it, where its file has that name
    and a number, or where others ask for it and nothing else is called so. Plugins and extension modules of Python are
    opened by the name of their file, whatever SONAME their build gave them.
    """

    def __init__(self, tree: SdkTree, facts: Mapping[str, ElfFacts], asked: Collection[str]) -> None:
        """Look at the links of a tree.

        Args:
            tree: the whole SDK.
            facts: where its content lies -> facts of each ELF file.
            asked: SONAMEs that libraries and programs of the SDK need or open.
        """
        self._tree = tree
        self._facts = facts
        names = {posixpath.basename(path) for path in tree.entries}
        self._unserved = {soname for soname in asked if soname not in names}
        self._links = {
            (tree.real(path), posixpath.basename(path)) for path, entry in tree.entries.items() if entry.kind == "link"
        }

    def of(self, entry: SdkEntry) -> str:
        """The path of a file below its platform folder."""
        facts = self._facts.get(entry.source)
        soname = facts.soname if is_library(facts) and facts is not None else None
        if not soname or "/" in soname:
            return entry.path
        folder, name = posixpath.split(entry.path)
        place = posixpath.join(folder, soname)
        asked_for = (
            place in self._tree.entries
            or (entry.path, soname) in self._links
            or name.startswith(f"{soname}.")
            or soname in self._unserved
        )
        return place if asked_for else entry.path

    def under_soname(self, entry: SdkEntry) -> bool:
        """Whether a library lies under its SONAME: nobody misses its other names then."""
        facts = self._facts.get(entry.source)
        return is_library(facts) and facts is not None and posixpath.basename(self.of(entry)) == facts.soname


def lay_out_payloads(
    owned: Mapping[str, Sequence[SdkEntry]],
    folders: Mapping[str, str],
    tree: SdkTree,
    facts: Mapping[str, ElfFacts],
    libraries: LibraryPlaces,
) -> dict[str, Payload]:
    """The platform folders of packages for run time.

    Args:
        owned: package -> its entries.
        folders: package -> its platform folder.
        tree: the whole SDK.
        facts: where its content lies -> facts of each ELF file.
        libraries: where libraries of that tree lie.

    Raises:
        IntegrityError: a link that leads nowhere, or two files for one place. Names all.
    """
    places = {
        entry.path: (folders[package], libraries.of(entry))
        for package, entries in owned.items()
        for entry in entries
        if entry.kind == "file"
    }
    problems: list[Problem] = []
    payloads = {
        package: _Folder(package, folders[package], tree, facts, libraries, places, problems).payload(entries)
        for package, entries in owned.items()
    }
    if problems:
        raise IntegrityError(*problems)
    return payloads


class _Folder:
    """One platform folder in the making."""

    def __init__(
        self,
        package: str,
        folder: str,
        tree: SdkTree,
        facts: Mapping[str, ElfFacts],
        libraries: LibraryPlaces,
        places: Mapping[str, tuple[str, str]],
        problems: list[Problem],
    ) -> None:
        self.package = package
        self.folder = folder
        self.tree = tree
        self.facts = facts
        self.libraries = libraries
        self.places = places
        self.problems = problems
        self.notes: list[str] = []

    def payload(self, entries: Sequence[SdkEntry]) -> Payload:
        items: dict[str, PlatformFile] = {}
        for entry in sorted(entries, key=lambda entry: entry.path):
            for item in self.items(entry):
                if item.path in RESERVED:
                    message = "the package reserves this path for its own file"
                    self.problems.append(Problem(file=item.path, key=item.entry.artifact, message=message, hint=_TWICE))
                other = items.setdefault(item.path, item)
                if other is not item:
                    message = f"{other.entry.path} and {item.entry.path} would both become {item.path}"
                    self.problems.append(Problem(file=self.package, message=message, hint=_TWICE))
        return Payload(items=tuple(items[path] for path in sorted(items)), notes=tuple(self.notes))

    def items(self, entry: SdkEntry) -> Iterator[PlatformFile]:
        if entry.kind == "file":
            yield PlatformFile(path=self.places[entry.path][1], entry=entry)
        elif entry.kind == "link":
            yield from self.link(entry)

    def is_script(self, entry: SdkEntry, target: SdkEntry) -> bool:
        """Whether a link is the name of a script among programs: scripts look for their parts where they really lie."""
        return target.executable and target.source not in self.facts and "bin" in entry.path.split("/")[:-1]

    def link(self, entry: SdkEntry) -> Iterator[PlatformFile]:
        real = self.tree.real(entry.path)
        if real is None:
            message = f"the path is a link to {entry.link}, which is not in the tree"
            self.problems.append(Problem(file=entry.path, key=entry.artifact, message=message, hint=_DANGLING))
            return
        target = self.tree.entries.get(real)
        if target is None or target.kind != "file":
            return
        if self.libraries.under_soname(target):
            return
        if not is_program(self.facts.get(target.source)) and not self.is_script(entry, target):
            yield PlatformFile(path=entry.path, entry=target)
        elif real in self.places:
            folder, place = self.places[real]
            way = relative(f"{folder}/{place}", beside=f"{self.folder}/{entry.path}")
            yield PlatformFile(path=entry.path, entry=target, role="launcher", launches=way)
        else:
            self.notes.append(
                f"{entry.path} links to a program in the devel package, so only that package contains the link"
            )
