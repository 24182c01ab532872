"""Read the GPU code of files that lie on disk or, compressed, in a wheel."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING, NamedTuple

from axletree.binary.elf.facts import is_elf, read_host_facts
from axletree.binary.gpu.scan import DeviceScanner, GpuSection, SectionCode, read_containers
from axletree.binary.zip.directory import DEFLATED
from axletree.binary.zip.members import PassingMember

if TYPE_CHECKING:
    from axletree.binary.elf.facts import ElfFacts
    from axletree.binary.source import Source
    from axletree.binary.zip.directory import ZipEntry

_HEAD = 1024
"""Compressed bytes that surely give the first four: the code tables of a deflate block take up to 300."""
_SAMPLE_EVERY, _SAMPLE = 1 << 20, 1 << 14
"""Of each MiB so many bytes are compressed, to estimate what all would come to."""


class DeviceFile(NamedTuple):
    """An ELF file and its GPU code."""

    path: str
    """In the wheel."""
    size: int
    facts: ElfFacts
    code: tuple[SectionCode, ...]
    """Those that hold GPU code."""
    ratios: tuple[tuple[int, float], ...]
    """(offset, deflated size by size) of samples."""

    def ratio(self, section: GpuSection) -> float:
        """What part of its size a section has once deflated, by samples."""
        end = section.offset + section.size
        near = [ratio for offset, ratio in self.ratios if section.offset - _SAMPLE_EVERY < offset < end]
        return sum(near) / len(near) if near else 1.0


class _Sampler:
    """Compresses a little of each MiB that goes by."""

    def __init__(self) -> None:
        self.ratios: list[tuple[int, float]] = []
        self._next = _SAMPLE_EVERY // 2

    def feed(self, offset: int, chunk: bytes) -> None:
        if offset + len(chunk) > self._next:
            start = max(0, self._next - offset)
            sample = chunk[start : start + _SAMPLE]
            self.ratios.append((offset + start, min(1.0, len(zlib.compress(sample)) / len(sample))))
            self._next = offset + start + _SAMPLE_EVERY


def is_elf_member(view: memoryview, entry: ZipEntry) -> bool:
    """Whether a member begins as an ELF file does; what can't be inflated does not."""
    head = view[entry.data : entry.data + min(entry.compressed, _HEAD)]
    if entry.method != DEFLATED:
        return is_elf(bytes(head[:4]))
    try:
        return is_elf(zlib.decompressobj(-zlib.MAX_WBITS).decompress(head, 4))
    except zlib.error:
        return False


def read_member_code(view: memoryview, entry: ZipEntry, *, archive: str, sample: bool = False) -> DeviceFile:
    """Read an ELF member in one pass.

    Raises:
        IntegrityError: the member is damaged, or is no sound ELF file.
    """
    scanner, sampler = DeviceScanner(), _Sampler()

    def watch(offset: int, chunk: bytes) -> None:
        scanner.feed(offset, chunk)
        if sample:
            sampler.feed(offset, chunk)

    member = PassingMember(view, entry, archive=archive, watch=watch)
    facts, places = read_host_facts(member, name=entry.name)
    member.finish()
    code = scanner.containers(places, source=member)
    return DeviceFile(entry.name, entry.size, facts, code, tuple(sampler.ratios))


def read_file_code(source: Source, *, name: str, sample: bool = False) -> DeviceFile:
    """Read an ELF file on disk; only headers are touched, and samples where asked for.

    Raises:
        IntegrityError: it is no sound ELF file.
    """
    facts, places = read_host_facts(source, name=name)
    code = tuple(read_containers(source, GpuSection(*place)) for place in places)
    sampler = _Sampler()
    for offset in range(_SAMPLE_EVERY // 2, source.size, _SAMPLE_EVERY) if sample else ():
        sampler.feed(offset, source.read(offset, _SAMPLE))
    return DeviceFile(name, source.size, facts, code, tuple(sampler.ratios))
