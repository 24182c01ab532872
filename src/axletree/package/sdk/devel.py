"""The payload of the devel package: the whole SDK, with links to the files that packages for run time have already."""

from __future__ import annotations

import posixpath
from typing import TYPE_CHECKING

import msgspec

from axletree.core.errors import IntegrityError, Problem
from axletree.package.sdk.entries import SdkEntry
from axletree.package.sdk.links import SdkTree, folders_of, relative
from axletree.package.sdk.payload import RESERVED
from axletree.package.sdk.plan import DevelItem

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from axletree.binary.elf.edit import ElfChange
    from axletree.package.sdk.payload import LibraryPlaces, Payload


def list_devel(
    added: Sequence[SdkEntry],
    mirrored: Mapping[str, tuple[Sequence[SdkEntry], Payload]],
    devices: Iterable[str],
    tree: SdkTree,
    libraries: LibraryPlaces,
    *,
    root: str,
) -> tuple[DevelItem, ...]:
    """The members of the payload.

    Args:
        added: entries that the devel package owns.
        mirrored: platform folder -> the entries of its package, and its payload without what is for single GPUs.
        devices: paths of files that only packages for GPUs have: whoever expands the payload adds those that are there.
        tree: the whole SDK.
        libraries: where libraries of that tree lie.
        root: folder that the payload is expanded into, beside the platform folders.

    Raises:
        IntegrityError: a link that leads nowhere, or two members for one place. Names all.
    """
    return _Devel(set(devices), tree, libraries, root).members(added, mirrored)


class _Devel:
    def __init__(self, devices: set[str], tree: SdkTree, libraries: LibraryPlaces, root: str) -> None:
        self.devices = devices
        self.tree = tree
        self.libraries = libraries
        self.root = root
        self.found: dict[str, DevelItem] = {}
        self.inside: list[DevelItem] = []  # links that lead to other members
        self.problems: list[Problem] = []

    def members(
        self, added: Sequence[SdkEntry], mirrored: Mapping[str, tuple[Sequence[SdkEntry], Payload]]
    ) -> tuple[DevelItem, ...]:
        owned = [*added, *(entry for entries, _ in mirrored.values() for entry in entries)]
        links = {entry.path for entry in owned if entry.kind == "link" and not self.is_library_name(entry)}
        for folder, (_, payload) in mirrored.items():
            for item in payload.items:
                if item.path not in self.devices and item.path not in links:
                    way = relative(f"{folder}/{item.path}", beside=f"{self.root}/{item.path}")
                    self.add(DevelItem(path=item.path, kind="link", link=way))
        for entry in added:
            self.add_own(entry)
        for entry in owned:
            self.add_names(entry)
        folders = folders_of(self.found)
        self.check(folders)
        if self.problems:
            raise IntegrityError(
                *self.problems, hint="exclude the file from the package's claims, or add a [[drop]] for it"
            )
        empty = {folder: DevelItem(path=folder, kind="folder") for folder in folders}
        return tuple(item for _, item in sorted({**empty, **self.found}.items()))

    def is_library_name(self, entry: SdkEntry) -> bool:
        """Whether a link is the SONAME of a library, and so the place where the library itself lies from now on."""
        real = self.tree.real(entry.path)
        target = self.tree.entries.get(real) if real is not None else None
        return target is not None and self.libraries.of(target) == entry.path

    def add(self, item: DevelItem) -> None:
        if item.path in RESERVED:
            self.problems.append(
                Problem(file=item.path, message="the devel package reserves this path for its own file")
            )
        other = self.found.setdefault(item.path, item)
        if other != item:
            self.problems.append(
                Problem(file=item.path, message="the devel package would contain two different entries with this path")
            )

    def add_own(self, entry: SdkEntry) -> None:
        """A file or folder that only the devel package has."""
        if entry.kind == "folder":
            self.add(DevelItem(path=entry.path, kind="folder"))
        elif entry.kind == "file":
            self.add(DevelItem(path=self.libraries.of(entry), kind="file", entry=entry, executable=entry.executable))

    def add_names(self, entry: SdkEntry) -> None:
        """Further names of what is there: links as they are, and the former name of a library."""
        if entry.kind == "file":
            place = self.libraries.of(entry)
            if place != entry.path:
                self.add_link(entry.path, posixpath.basename(place))
        elif entry.kind == "link" and not self.is_library_name(entry):
            if self.tree.real(entry.path) is None:
                message = f"the path is a link to {entry.link}, which is not in the tree"
                self.problems.append(Problem(file=entry.path, key=entry.artifact, message=message))
            else:
                self.add_link(entry.path, entry.link)

    def add_link(self, path: str, target: str) -> None:
        item = DevelItem(path=path, kind="link", link=target)
        self.add(item)
        self.inside.append(item)

    def check(self, folders: set[str]) -> None:
        """Whether all members can be where they are, and all links lead to members."""
        for path in sorted(folders & self.found.keys()):
            if self.found[path].kind != "folder":
                self.problems.append(Problem(file=path, message="the path is both a folder and a file or link"))
        links = {item.path: item.link for item in self.inside}
        reached = SdkTree(
            SdkEntry(
                path=path,
                artifact="",
                component="dev",
                kind="link" if path in links else "file",
                link=links.get(path, ""),
            )
            for path in [*self.found, *(self.devices - self.found.keys())]
            if path in links or path not in folders
        )
        for path, target in links.items():
            if reached.real(path) is None:
                message = f"the path is a link to {target}, which is dropped or not in any mirrored package"
                self.problems.append(Problem(file=path, message=message))


def place_changes(items: Iterable[DevelItem], changes: Mapping[str, ElfChange]) -> tuple[DevelItem, ...]:
    """Members with the changes of their own ELF files."""
    return tuple(
        msgspec.structs.replace(item, change=changes[item.path]) if item.path in changes else item for item in items
    )
