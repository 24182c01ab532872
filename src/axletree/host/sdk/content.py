"""The content of an SDK's files on their way into wheels: straight from the tree, with edits applied as they go by."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from axletree.binary.edits import Edit, EditedSource, iter_source
from axletree.binary.elf.edit import plan_edit
from axletree.binary.elf.verify import verify_edit
from axletree.binary.zip.deflate import BLOCK
from axletree.host.sdk.launcher import aim, compile_launcher
from axletree.host.sources import DiskSource
from axletree.package.gpu.compact import Thinning, thin_library

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from axletree.binary.elf.edit import ElfChange
    from axletree.package.sdk.entries import SdkEntry
    from axletree.package.sdk.plan import DevelItem, PlatformFile


class FileContent(msgspec.Struct, frozen=True, kw_only=True):
    """A file of the tree as it will be."""

    source: str
    size: int
    """Bytes, once edited."""
    thinning: Thinning | None = None
    """What is done to its GPU code."""
    edits: tuple[Edit, ...] = ()
    """What is done to its header after that."""

    def chunks(self) -> Iterator[bytes]:
        """The content, in pieces.

        Raises:
            HostError: the file can't be read.
        """
        with DiskSource(self.source) as source:
            thin = self.thinning.source(source) if self.thinning is not None else source
            yield from iter_source(EditedSource(thin, self.edits) if self.edits else thin, chunk=BLOCK)


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

    def __init__(self, environ: Mapping[str, str]) -> None:
        """Take a C compiler from variables, where one is needed."""
        self._environ = environ
        self._launcher = b""
        self.notes: list[str] = []

    def of_item(self, item: PlatformFile) -> FileContent | Bytes:
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

    def _file(self, entry: SdkEntry, change: ElfChange | None, targets: tuple[str, ...]) -> FileContent:
        if change is None and not targets:
            return FileContent(source=entry.source, size=entry.size)
        name = entry.path
        with DiskSource(entry.source) as original:
            if targets:
                thin = thin_library(original, name=name, gpus=targets, change=change, allow_missing=True)
                self.notes += [f"{name} for {', '.join(targets)}: {note}" for note in thin.notes]
                return FileContent(source=entry.source, size=thin.size, thinning=thin.thinning, edits=thin.edits)
            assert change is not None  # noqa: S101 (else there is nothing to do)
            edits = plan_edit(original, change, name=name)
            edited = EditedSource(original, edits)
            verify_edit(original, edited, change, name=name)
            return FileContent(source=entry.source, size=edited.size, edits=edits)
