"""What the ELF files of an SDK say, read from their headers: a library of a gigabyte costs a few milliseconds."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from axletree.binary.elf.facts import ElfFacts, is_elf
from axletree.core.errors import IntegrityError
from axletree.host.sources import DiskSource
from axletree.package.gpu.read import read_file_code

if TYPE_CHECKING:
    from collections.abc import Iterable

    from axletree.package.sdk.entries import SdkEntry

_SMALLEST = 52
"""Bytes of the smallest ELF header."""


class SdkFacts(msgspec.Struct, frozen=True, kw_only=True):
    """ELF files of an SDK, by where their content lies."""

    elfs: dict[str, ElfFacts]
    code: dict[str, tuple[str, ...]]
    """Architectures of the GPU code in those that hold any."""
    unread: tuple[str, ...]
    """What is wrong with files that look like ELF files and can't be read; they are packed as they are."""


def read_sdk_facts(entries: Iterable[SdkEntry]) -> SdkFacts:
    """Read the headers of all ELF files among entries.

    Raises:
        HostError: a file can't be read.
    """
    elfs: dict[str, ElfFacts] = {}
    code: dict[str, tuple[str, ...]] = {}
    unread: list[str] = []
    for entry in entries:
        if entry.kind != "file" or entry.size < _SMALLEST:
            continue
        with DiskSource(entry.source) as source:
            if not is_elf(source.read(0, 4)):
                continue
            try:
                file = read_file_code(source, name=entry.path)
            except IntegrityError as error:
                unread.append(str(error))
                continue
        elfs[entry.source] = file.facts
        archs = {each.arch for part in file.code for one in part.containers for each in one.entries} - {"host"}
        if archs:
            code[entry.source] = tuple(sorted(archs))
    return SdkFacts(elfs=elfs, code=code, unread=tuple(unread))
