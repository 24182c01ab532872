"""Parallel deflate with the same bytes for any number of threads.

Content is cut into blocks of a fixed size. Each block is compressed on its own, with the last 32 KiB of the block
before as its dictionary and a byte-aligned end, so that the pieces joined are one ordinary deflate stream (RFC 1951)
which costs about 0.1 % more than one made in a single run.
"""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

BLOCK = 4 << 20
"""Bytes of a block. A part of the result: changing it changes archives."""

COMPRESSOR = f"zlib {zlib.ZLIB_RUNTIME_VERSION}, blocks of {BLOCK} bytes"
"""What the bytes of an archive depend on besides its content and level."""

_WINDOW = 32 << 10


class Block(NamedTuple):
    """A piece of content to compress."""

    data: bytes
    dictionary: bytes
    """The end of the block before, empty for the first."""
    last: bool


def cut(chunks: Iterable[bytes]) -> Iterator[Block]:
    """Cut chunks of any sizes into blocks; there is always at least one, and exactly one is the last."""
    pending = bytearray()
    dictionary = b""
    for chunk in chunks:
        pending += chunk
        while len(pending) > BLOCK:  # a full block waits for more: only then it is not the last
            data = bytes(pending[:BLOCK])
            del pending[:BLOCK]
            yield Block(data, dictionary, last=False)
            dictionary = data[-_WINDOW:]
    yield Block(bytes(pending), dictionary, last=True)


def deflate(block: Block, level: int) -> bytes:
    """Compress a block to its piece of the stream."""
    if block.dictionary:
        packer = zlib.compressobj(level, zlib.DEFLATED, -zlib.MAX_WBITS, 9, zlib.Z_DEFAULT_STRATEGY, block.dictionary)
    else:
        packer = zlib.compressobj(level, zlib.DEFLATED, -zlib.MAX_WBITS, 9)
    return packer.compress(block.data) + packer.flush(zlib.Z_FINISH if block.last else zlib.Z_SYNC_FLUSH)
