"""Find the GPU code of a file: while its content streams past once, or by random access to its headers.

A stream does not say where its GPU sections lie before its end is reached (ELF's section table is there), so headers of
all containers are read as they pass, and what turns out to lie elsewhere is dropped. The bodies of containers, nine
tenths of such files, are skipped. Damage is a fact of a section, never an exception.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from axletree.binary.gpu import fatbin, hip
from axletree.binary.gpu.code import TOO_MANY, ByteRange, Container, DeviceCode, DeviceSection, ReadLimit

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from axletree.binary.gpu.code import Form, Packing, Reading
    from axletree.binary.source import Source

SECTIONS = frozenset({".nv_fatbin", "__nv_relfatbin", ".hip_fatbin"})
"""Sections that hold containers. ``.nvFatBinSegment`` and ``.hipFatBinSegment`` only point to them."""

_NVIDIA = re.compile(re.escape(fatbin.MAGIC), re.DOTALL)  # 3.4 GB/s, where bytes.find does 2
_READERS = {
    fatbin.MAGIC[:4]: fatbin.read_fatbin,
    hip.MAGIC[:4]: hip.read_bundle,
    hip.PACKED_MAGIC: hip.read_packed_bundle,
}
_ALIGNMENTS = {fatbin.MAGIC[:4]: fatbin.ALIGNMENT, hip.MAGIC[:4]: 1, hip.PACKED_MAGIC: hip.ALIGNMENT}
"""Of what offset a container begins at a multiple."""
_OVERLAP = 31
"""Bytes of a chunk that are kept while the next begin of a container is looked for: the longest magic less one."""
_PADDING = 4096
"""Most bytes between two containers."""
_PIECE = 1 << 20
_AHEAD = 256
"""Bytes that are read at once: the headers of a container and of its first entry, and what stands before them."""
_FALSE_COST = 50
"""What a false magic number takes from the budget: real files have few, a hostile one could be full of them."""

_Key = tuple[str, "Form", "Packing"]


class GpuSection(NamedTuple):
    """A section of a file."""

    name: str
    offset: int
    size: int


class SectionCode(NamedTuple):
    """The containers of one section."""

    section: GpuSection
    containers: tuple[Container, ...]
    damaged: str | None


class DeviceScanner:
    """Reads the headers of containers while a file goes by: :meth:`feed` it in order, then :meth:`finish`."""

    def __init__(self) -> None:
        """Begin at offset 0."""
        self._budget = ReadLimit()
        self._found: list[Container] = []
        self._search = 0
        """Where the next container may begin."""
        self._reading: Reading
        self._need: ByteRange | None = None
        """What ``_reading`` waits for; ``None`` while the next container is looked for."""
        self._end = 0
        """Bytes that went by."""
        self._carry = b""
        """Bytes before the present chunk that are still needed."""

    @property
    def inside(self) -> bool:
        """Whether it waits for more of a container; else chunks that can't hold GPU code may be left out."""
        return self._need is not None

    def feed(self, offset: int, chunk: bytes) -> None:
        """Take the next chunk; ``offset`` is where it begins in the file."""
        if offset != self._end:  # something was left out
            self._carry, self._search = b"", max(self._search, offset)
        self._end = offset + len(chunk)
        self._consume(offset, chunk, last=False)

    def _consume(self, offset: int, chunk: bytes, *, last: bool) -> None:
        end = self._end
        while not self._budget.spent:
            if self._need is None:
                start = self._find(offset, chunk)
                if start is None:
                    self._keep(offset, chunk, max(self._search, end - _OVERLAP))
                    return
                self._begin(start, self._slice(offset, chunk, start, 4))
            elif self._need.offset + self._need.size > end and not last:
                self._keep(offset, chunk, self._needed_from(self._need.offset))
                return
            else:
                self._advance(self._slice(offset, chunk, self._need.offset, self._need.size))

    def finish(
        self, sections: Sequence[tuple[str, int, int]], *, source: Source | None = None
    ) -> tuple[DeviceSection, ...]:
        """The GPU code of the sections (name, offset, size) that can hold some, see :data:`SECTIONS`.

        Args:
            sections: as the section table of the file says.
            source: the same file for random access. It is needed only where bytes outside of the sections looked
                like a container that reaches into them; without it such a section counts as damaged.
        """
        return tuple(summarise(code) for code in self.containers(sections, source=source))

    def containers(
        self, sections: Sequence[tuple[str, int, int]], *, source: Source | None = None
    ) -> tuple[SectionCode, ...]:
        """As :meth:`finish`, with each container and its entries."""
        self._consume(self._end, b"", last=True)
        result = []
        for section in (GpuSection(*fields) for fields in sections):
            inside = [found for found in self._found if section.offset <= found.offset < section.offset + section.size]
            if source is not None and section.size and (not inside or inside[0].offset != section.offset):
                result.append(read_containers(source, section))
            else:
                result.append(_check(section, inside, self._budget))
        return tuple(result)

    def _begin(self, start: int, magic: bytes) -> None:
        self._budget.spend()
        self._search = start + 1
        self._reading = _read(magic, start, self._budget)
        self._need = next(self._reading)

    def _advance(self, data: bytes) -> None:
        try:
            self._need = self._reading.send(data)
        except StopIteration as stop:
            self._need = None
            container: Container | None = stop.value
            if container is None:
                self._budget.spend(_FALSE_COST)
            else:
                self._found.append(container)
                self._search = container.end

    def _needed_from(self, position: int) -> int:
        """Where carried bytes begin: what turns out to be no container, after its first header at most, is searched."""
        return min(position, self._search) if position - self._search < fatbin.HEADER else position

    def _find(self, offset: int, chunk: bytes) -> int | None:
        start = self._search - offset
        if start < 0:
            joint = self._carry + chunk[:_OVERLAP]
            before = len(self._carry)
            found = _first(joint, offset - before, max(0, start + before))
            if found is not None and found < offset:
                return found
        return _first(chunk, offset, max(0, start))

    def _slice(self, offset: int, chunk: bytes, start: int, size: int) -> bytes:
        first = start - offset
        if first >= 0:
            return chunk[first : first + size]
        joint = self._carry[len(self._carry) + first :][:size]
        return joint + chunk[: size - len(joint)]

    def _keep(self, offset: int, chunk: bytes, start: int) -> None:
        start, end = max(start, offset - len(self._carry)), offset + len(chunk)
        self._carry = self._slice(offset, chunk, start, end - start) if start < end else b""


def _read(magic: bytes, offset: int, budget: ReadLimit) -> Reading:
    """Read a container, and look at what follows it."""
    container = yield from _READERS[magic](offset, budget)
    if container is None or container.damaged is not None:
        return container
    behind = yield ByteRange(container.end, fatbin.ALIGNMENT)
    return container._replace(loose=bool(behind.strip(b"\0")) and behind[:4] not in _READERS)


def _first(data: bytes, offset: int, start: int) -> int | None:
    """Where in the file the first container may begin that ``data`` (at ``offset``) shows from index ``start`` on."""
    best = len(data)
    start = min(start, best)  # a container may claim to end beyond what an index can be
    found = _NVIDIA.search(data, start)
    while found is not None and (offset + found.start()) % fatbin.ALIGNMENT:
        found = _NVIDIA.search(data, found.start() + 1)
    if found is not None:
        best = found.start()
    plain = data.find(hip.MAGIC, start, best)
    if plain >= 0:
        best = plain
    for index in range(start + -(offset + start) % hip.ALIGNMENT, min(best, len(data) - 3), hip.ALIGNMENT):
        if data.startswith(hip.PACKED_MAGIC, index):
            best = index
            break
    return offset + best if best < len(data) else None


def read_containers(source: Source, section: GpuSection) -> SectionCode:
    """The containers of one section, by random access: only pages with headers are touched."""
    budget, found = ReadLimit(), list[Container]()
    position, end = section.offset, min(section.offset + section.size, source.size)
    read = _read_ahead(source)
    while position < end:
        magic = read(position, 4)
        begins = magic in _READERS and position % _ALIGNMENTS[magic] == 0
        container = None
        if begins:
            if not budget.spend():
                break
            container = _run(_read(magic, position, budget), read)
        if container is not None:
            found.append(container)
            position = container.end
            if container.damaged:
                break
            continue
        if begins:
            budget.spend(_FALSE_COST)
        following = _search_section(source, position + begins, end)
        if following is None:
            break
        position = following
    return _check(section, found, budget)


def _read_ahead(source: Source) -> Callable[[int, int], bytes]:
    """Read a source (offset, size) such that several small reads side by side cost one; nothing is behind its end."""
    start, piece = 0, b""

    def read(offset: int, size: int) -> bytes:
        nonlocal start, piece
        if not start <= offset <= start + len(piece) - size:
            start, piece = offset, source.read(offset, max(size, _AHEAD)) if offset < source.size else b""
        return piece[offset - start : offset - start + size]

    return read


def _run(reading: Reading, read: Callable[[int, int], bytes]) -> Container | None:
    try:
        need = next(reading)
        while True:
            need = reading.send(read(need.offset, need.size))
    except StopIteration as stop:
        container: Container | None = stop.value
        return container


def _search_section(source: Source, position: int, end: int) -> int | None:
    while position < end:
        piece = source.read(position, min(_PIECE, end - position))
        found = _first(piece, position, 0)
        if found is not None:
            return found
        position += max(1, len(piece) - _OVERLAP) if position + len(piece) < end else len(piece)
    return None


def _check(section: GpuSection, containers: Sequence[Container], budget: ReadLimit) -> SectionCode:
    """Containers must fill their section, but for padding and what thinning has zeroed."""
    end = section.offset + section.size
    position, loose, damaged = section.offset, True, None
    for container in containers:
        damaged = _gap(position, container.offset, loose=loose)
        if damaged is None and container.end > end:
            damaged = f"the container at offset {container.offset} extends past its section"
        damaged = damaged or container.damaged
        if damaged is not None:
            break
        # Version 1 of compressed bundles does not tell where it ends.
        position, loose = container.end, container.loose and container.packing == "none"
    else:
        damaged = _gap(position, end, loose=loose)
    if damaged is not None and budget.spent:
        damaged = TOO_MANY
    return SectionCode(section, tuple(containers), damaged)


def _gap(position: int, following: int, *, loose: bool) -> str | None:
    if loose and following - position >= _PADDING:
        return f"{following - position} bytes at offset {position} are not in any container"
    return None


def read_device(source: Source, sections: Sequence[tuple[str, int, int]]) -> tuple[DeviceSection, ...]:
    """The GPU code of sections (name, offset, size) that can hold some, by random access."""
    return tuple(summarise(read_containers(source, GpuSection(*fields))) for fields in sections)


def summarise(code: SectionCode) -> DeviceSection:
    """Counts and bytes by architecture, form and packing."""
    totals: dict[_Key, list[int]] = {}
    for container in code.containers:
        seen = set()
        for entry in container.entries:
            if entry.arch == "host":
                continue
            key = (entry.arch, entry.form, entry.packing)
            total = totals.setdefault(key, [0, 0, 0, 0])
            total[0] += 1
            total[1] += entry.size
            total[2] += entry.unpacked
            total[3] += key not in seen
            seen.add(key)
    name = code.section.name
    rows = tuple(
        DeviceCode(
            section=name,
            arch=arch,
            form=form,
            packing=packing,
            count=count,
            size=size,
            unpacked=unpacked,
            containers=containers,
        )
        for (arch, form, packing), (count, size, unpacked, containers) in sorted(totals.items(), key=_order)
    )
    return DeviceSection(
        section=name, containers=len(code.containers), size=code.section.size, code=rows, damaged=code.damaged
    )


def _order(item: tuple[_Key, list[int]]) -> tuple[object, ...]:
    (arch, form, packing), _ = item
    numbers = tuple(int(part) for part in re.findall(r"\d+", arch)) if arch.startswith(("sm_", "compute_")) else ()
    return (form, numbers, arch, packing)
