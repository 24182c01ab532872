"""Take code out of containers, as edits of the file they lie in: nothing moves that something points to.

Containers keep their start, which the program registers, and their file keeps its size. Kept entries of a fat binary
move up, the container's size is rewritten and the rest of its bytes zeroed. An offload bundle gets a shorter table
(runtimes look entries up by their ids); kept code stays where it is, dropped code is zeroed.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from axletree.binary.edits import Blank, Move, Put
from axletree.binary.gpu import fatbin, hip
from axletree.core.errors import IntegrityError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from axletree.binary.edits import Edit
    from axletree.binary.gpu.code import Container


def thin_container(container: Container, kept: Collection[int]) -> tuple[Edit, ...]:
    """Edits after which a container holds only some of its entries.

    Args:
        container: intact, not packed as a whole.
        kept: indices of entries; of an offload bundle the host's is kept in any case.

    Raises:
        IntegrityError: it is damaged, or packed as a whole.
    """
    if container.damaged is not None or container.packing != "none":
        what = container.damaged or f"the offload bundle at offset {container.offset} is compressed"
        raise IntegrityError(what)
    if len(set(kept)) == len(container.entries):
        return ()
    if container.maker == "hip":
        return tuple(_thin_bundle(container, kept))
    return tuple(_thin_fatbin(container, kept))


def _thin_fatbin(container: Container, kept: Collection[int]) -> Iterator[Edit]:
    position = start = container.offset + fatbin.HEADER
    pending: Move | None = None
    for index in sorted(kept):
        entry = container.entries[index]
        if pending is not None and pending.source + pending.size == entry.offset:
            pending = Move(pending.offset, pending.size + entry.size, pending.source)
        else:
            if pending is not None and pending.offset != pending.source:
                yield pending
            pending = Move(position, entry.size, entry.offset)
        position += entry.size
    if pending is not None and pending.offset != pending.source:
        yield pending
    yield Put(container.offset + 8, struct.pack("<Q", position - start))
    yield Blank(position, container.end - position)


def _thin_bundle(container: Container, kept: Collection[int]) -> Iterator[Edit]:
    entries = [entry for index, entry in enumerate(container.entries) if index in set(kept) or entry.arch == "host"]
    rows = [hip.BundleRow(entry.offset - container.offset, entry.size, entry.id) for entry in entries]
    table = hip.render_table(rows)
    yield Put(container.offset, table)
    position = container.offset + len(table)
    for entry in sorted(entries, key=lambda entry: entry.offset):
        if entry.size:
            yield Blank(position, max(0, entry.offset - position))
            position = max(position, entry.offset + entry.size)
    yield Blank(position, max(0, container.end - position))
