"""The content of an SDK's files on their way into wheels: straight from the tree, with edits applied as they go by."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from axletree.binary.edits import Edit, EditedSource, iter_source
from axletree.binary.elf.edit import plan_edit
from axletree.binary.elf.verify import verify_edit
from axletree.host.sdk.launcher import aim, compile_launcher
from axletree.host.sources import FileSource
from axletree.package.gpu.arch import parse_gpu
from axletree.package.gpu.thin import ThinRules, thin_file

if TYPE_CHECKING:
    from collections.abc import Iterator

    from axletree.binary.elf.edit import ElfChange
    from axletree.host.sdk.facts import SdkFacts
    from axletree.package.sdk.entries import Entry
    from axletree.package.sdk.plan import DevelItem, Item


class FileContent(msgspec.Struct, frozen=True, kw_only=True):
    """A file of the tree as it will be."""

    source: str
    size: int
    """Bytes, once edited."""
    edits: tuple[tuple[Edit, ...], ...] = ()
    """One set after the other."""

    def chunks(self) -> Iterator[bytes]:
        """The content, in pieces.

        Raises:
            HostError: the file can't be read.
        """
        with FileSource(self.source) as source:
            edited: FileSource | EditedSource = source
            for edits in self.edits:
                edited = EditedSource(edited, edits)
            yield from iter_source(edited)


class Bytes(msgspec.Struct, frozen=True, kw_only=True):
    """Content that was made."""

    data: bytes

    @property
    def size(self) -> int:
        """Bytes."""
        return len(self.data)

    def chunks(self) -> Iterator[bytes]:
        """All of it."""
        yield self.data


class Contents:
    """The contents of all packages of an SDK."""

    def __init__(self, facts: SdkFacts, environ: dict[str, str]) -> None:
        """Read from an SDK whose files were looked at."""
        self._facts = facts
        self._environ = environ
        self._launcher = b""
        self.notes: list[str] = []

    def of_item(self, item: Item) -> FileContent | Bytes:
        """A file of a platform folder.

        Raises:
            HostError: the file can't be read, or no launcher can be compiled.
            IntegrityError: its ELF header can't be changed.
        """
        if item.role == "launcher":
            self._launcher = self._launcher or compile_launcher(self._environ)
            return Bytes(data=aim(self._launcher, item.launches))
        return self._file(item.entry, item.change, item.thin)

    def of_devel(self, item: DevelItem) -> FileContent:
        """A file that only the devel package has.

        Raises:
            HostError: the file can't be read.
            IntegrityError: its ELF header can't be changed.
        """
        assert item.entry is not None  # noqa: S101 (files have one)
        return self._file(item.entry, item.change, ())

    def _file(self, entry: Entry, change: ElfChange | None, targets: tuple[str, ...]) -> FileContent:
        if change is None and not targets:
            return FileContent(source=entry.source, size=entry.size)
        with FileSource(entry.source) as source:
            steps: list[tuple[Edit, ...]] = []
            if targets:
                rules = ThinRules(gpus=tuple(map(parse_gpu, targets)), allow_missing=True)
                steps.append(thin_file(self._facts.devices[entry.source].code, rules, name=entry.path).edits)
            if change is not None:
                edits = plan_edit(source, change, name=entry.path)
                verify_edit(source, EditedSource(source, edits), change, name=entry.path)
                steps.append(edits)
            edited: FileSource | EditedSource = source
            for edits in steps:
                edited = EditedSource(edited, edits)
            return FileContent(source=entry.source, size=edited.size, edits=tuple(steps))
