"""Move what stays of a library's offload bundles together, so that the file gets as much smaller as code was dropped.

Bundles keep their order and their alignment, and so does the code in them; those that are compressed as a whole are
packed again. The wrappers' pointers follow, and the file loses the rest of the section
(:mod:`axletree.binary.elf.shrink`). All else keeps its address.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from axletree.binary.edits import Blank, Edit, EditedSource, Move, Put
from axletree.binary.elf.pointers import word_at
from axletree.binary.elf.shrink import plan_shrink
from axletree.binary.gpu import hip
from axletree.binary.gpu.registered import SECTION
from axletree.binary.gpu.repack import alignment, lay_out, repack_bundle
from axletree.binary.gpu.scan import GpuSection
from axletree.core.errors import IntegrityError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from axletree.binary.elf.shrink import Shrunk
    from axletree.binary.gpu.code import CodeEntry, Container
    from axletree.binary.gpu.registered import Registered
    from axletree.binary.source import Source

_UNTOLD = 20
"""Bytes of a compressed bundle of version 1: its header, as nothing tells where it ends."""


class Compaction(NamedTuple):
    """A library with its bundles moved together."""

    size: int
    """Bytes of the file."""
    saved: int
    """Bytes that it had more."""
    section: GpuSection
    """The section that holds the bundles, as it is then."""
    moves: tuple[Edit, ...]
    """What goes where; compressed bundles that lost entries are part of it, as they are packed anew."""
    puts: tuple[Edit, ...]
    """Headers and moved tables, to be written over the result of that."""
    pointers: tuple[Edit, ...]
    """Relocations, wrappers and symbols, to be written over both."""

    def source(self, original: Source) -> Source:
        """The file as it is then; nothing is held in memory but headers and bundles that were packed anew."""
        moved = EditedSource(original, self.moves, size=self.size)
        return EditedSource(EditedSource(moved, self.puts), self.pointers)


class _Bundle(NamedTuple):
    """A container at its new place."""

    container: Container
    offset: int
    size: int
    edits: tuple[Edit, ...]


def plan_compaction(source: Source, code: Registered, kept: Mapping[int, Collection[int]]) -> Compaction | str:
    """Plan to move together what stays; why that can't be done, or saves nothing, as words.

    Args:
        source: the library. Bundles that are compressed as a whole are read, and packed again without what goes.
        code: its bundles and all that points to them.
        kept: offset of a container -> indices of the entries that stay, beside the host's; containers that are not
            named stay whole.
    """
    section = code.image.sections[code.number]
    bundles: list[_Bundle] = []
    end = section.offset
    try:
        for container, following in with_following(code):
            address = section.addr + end - section.offset
            start = end + -address % alignment(code.address(container))
            indices = kept.get(container.offset, range(len(container.entries)))
            bundle = _place(source, container, indices, (start, following))
            bundles.append(bundle)
            end = start + bundle.size
            if end > section.file_end:
                return "its bundles would be larger after recompression"
        shrunk = plan_shrink(code.image, code.number, end - section.offset)
    except IntegrityError as error:
        return error.problems[0].message
    if isinstance(shrunk, str):
        return shrunk
    edits = [edit for bundle in bundles for edit in bundle.edits]
    return Compaction(
        size=shrunk.size,
        saved=shrunk.shift,
        section=GpuSection(SECTION, section.offset, end - section.offset),
        moves=(*_without_gaps(edits, section.offset, end), *shrunk.moves),
        puts=shrunk.puts,
        pointers=tuple(_pointer_edits(code, bundles, shrunk)),
    )


def with_following(code: Registered) -> Iterator[tuple[Container, int]]:
    """Containers with where the next one, or what lies behind the section, begins."""
    ends = [*(container.offset for container in code.containers[1:]), code.image.sections[code.number].file_end]
    return zip(code.containers, ends, strict=True)


def kept_entries(container: Container, kept: Collection[int] | None) -> tuple[CodeEntry, ...]:
    """The entries of a container that stay; all of them where ``kept`` is ``None``, the host's in any case."""
    return tuple(
        entry for index, entry in enumerate(container.entries) if kept is None or index in kept or entry.arch == "host"
    )


def _place(source: Source, container: Container, kept: Collection[int], at: tuple[int, int]) -> _Bundle:
    """A container at a new place.

    Args:
        source: the library.
        container: it.
        kept: indices of the entries that stay.
        at: that place, and where in the original it must have ended.
    """
    start, following = at
    entries = kept_entries(container, kept)
    if container.packing == "none":
        return _rebuilt(container, entries, start)
    if len(entries) < len(container.entries):
        data = repack_bundle(source, container, kept, following)
        return _Bundle(container, start, len(data), (Put(start, data),))
    size = container.size if container.size > _UNTOLD else following - container.offset
    return _Bundle(container, start, size, (Move(start, size, container.offset),))


def _rebuilt(container: Container, entries: Sequence[CodeEntry], start: int) -> _Bundle:
    layout = lay_out([hip.BundleRow(entry.offset - container.offset, entry.size, entry.id) for entry in entries])
    if layout is None:
        raise IntegrityError(f"code objects in the bundle at offset {container.offset} overlap")
    moves = [Move(start + place, size, container.offset + offset) for place, size, offset in layout.spans]
    return _Bundle(container, start, layout.size, (Put(start, layout.table), *moves))


def _without_gaps(edits: Sequence[Edit], position: int, end: int) -> Iterator[Edit]:
    """Edits in order, with zeros between them."""
    for edit in edits:
        if edit.offset > position:
            yield Blank(position, edit.offset - position)
        yield edit
        position = edit.end
    yield Blank(position, end - position)


def _pointer_edits(code: Registered, bundles: Sequence[_Bundle], shrunk: Shrunk) -> Iterator[Edit]:
    """Relocations, and what stands where they write: linkers differ in whether that is the same address or zero."""
    word = code.image.reader.structure("Q")
    section = code.image.sections[code.number]
    moved = {code.address(bundle.container): section.addr + bundle.offset - section.offset for bundle in bundles}
    for pointer in code.pointers:
        new = word.pack(moved[pointer.target])
        if pointer.addend is not None:
            yield Put(shrunk.follow(pointer.addend), new)
        if word_at(code.image, pointer.place) == pointer.target:
            yield Put(shrunk.follow(code.image.offset_of(pointer.place)), new)
    for offset, value in code.symbols:
        yield Put(shrunk.follow(offset), word.pack(moved[value]))
