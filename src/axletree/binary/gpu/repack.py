"""Compressed offload bundles with fewer entries: unpacked, filtered and packed again while the content goes by.

The head keeps its version, as runtimes differ in which they know, and the method; see :mod:`axletree.binary.gpu.hip`
for the format. Its hash is the first half of the MD5 sum of the plain bundle, which readers don't insist on.
"""

from __future__ import annotations

import hashlib
import struct
import zlib
from typing import IO, TYPE_CHECKING, NamedTuple, cast

from axletree.binary.gpu import hip
from axletree.core.errors import IntegrityError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from axletree.binary.gpu.code import Container
    from axletree.binary.source import Source

_LEVEL = 3
"""Of zstd, as clang's default."""
_PIECE = 1 << 20
_HEADS = {1: struct.Struct("<4s2H IQ"), 2: struct.Struct("<4s2H IIQ"), 3: struct.Struct("<4s2H QQQ")}
_LARGEST = 1 << 34
"""Most bytes of an unpacked bundle."""


class BundleLayout(NamedTuple):
    """Where the entries of a plain bundle lie."""

    table: bytes
    size: int
    spans: tuple[tuple[int, int, int], ...]
    """(offset in the bundle, bytes, offset in the original) of each piece of code, sorted."""


def lay_out(rows: Sequence[hip.BundleRow]) -> BundleLayout | None:
    """A bundle of some rows of another: close together, each as aligned as it was; ``None`` where they overlap.

    An empty row, as the host's is, is said to lie where code begins.
    """
    position = len(hip.render_table(rows))
    places: dict[tuple[int, int], int] = {}
    end = 0
    for offset, size in sorted({(row.offset, row.size) for row in rows if row.size}):
        if offset < end:
            return None
        end = offset + size
        position += -position % alignment(offset)
        places[offset, size] = position
        position += size
    first = min(places.values(), default=position)
    table = hip.render_table([row._replace(offset=places.get((row.offset, row.size), first)) for row in rows])
    return BundleLayout(table, position, tuple((place, size, offset) for (offset, size), place in places.items()))


def alignment(number: int) -> int:
    """What a place is aligned to, up to what bundles and code need."""
    return min(hip.ALIGNMENT, number & -number) or hip.ALIGNMENT


def repack_bundle(source: Source, container: Container, kept: Collection[int], following: int) -> bytes:
    """A compressed bundle with some of its entries; the host's stays in any case.

    Args:
        source: the file.
        container: compressed as a whole.
        kept: indices of entries.
        following: where it must have ended, for heads that do not tell.

    Raises:
        IntegrityError: it does not unpack to what its head says, or contains overlapping code.
    """
    version, method, unpacked, stream = _open(source, container, following)
    head, rows = _read_table(stream, container)
    chosen = [row for index, row in enumerate(rows) if index in kept or hip.arch_of(row.id) == "host"]
    layout = lay_out(chosen)
    if layout is None:
        raise _damaged(container, "contains overlapping code")
    packer, digest = _Packer(method, layout.size), hashlib.md5(usedforsecurity=False)
    parts: list[bytes] = []
    for piece in _plain(layout, head, stream, unpacked, container):
        digest.update(piece)
        parts.append(packer.compress(piece))
    body = b"".join([*parts, packer.flush()])
    form = _HEADS[version]
    total = form.size + len(body)
    told = int.from_bytes(digest.digest()[:8], "little")
    sizes = (layout.size,) if version == 1 else (total, layout.size)
    if version < 3 and max(sizes) >> 32:
        raise _damaged(container, "is too large for its format version")
    return form.pack(hip.PACKED_MAGIC, version, method, *sizes, told) + body


def unpacked_digests(source: Source, container: Container, following: int) -> tuple[tuple[str, int, bytes], ...]:
    """(id, bytes, SHA-256) of each entry of a compressed bundle.

    Raises:
        IntegrityError: as :func:`repack_bundle`.
    """
    *_, unpacked, stream = _open(source, container, following)
    head, rows = _read_table(stream, container)
    sums = [hashlib.sha256() for _ in rows]
    position = 0
    for piece in _chain(head, stream):
        for row, digest in zip(rows, sums, strict=True):
            start, end = max(row.offset, position), min(row.offset + row.size, position + len(piece))
            if start < end:
                digest.update(piece[start - position : end - position])
        position += len(piece)
    if position != unpacked or any(row.offset + row.size > position for row in rows):
        raise _damaged(container, f"decompresses to {position} bytes instead of {unpacked}")
    return tuple((row.id, row.size, digest.digest()) for row, digest in zip(rows, sums, strict=True))


def _open(source: Source, container: Container, following: int) -> tuple[int, int, int, Iterator[bytes]]:
    """(version, method, unpacked size, unpacked content in pieces) of a compressed bundle."""
    magic = source.read(container.offset, 8)
    version, method = struct.unpack("<2H", magic[4:8]) if len(magic) == 8 else (0, 0)
    form = _HEADS.get(version)
    if form is None or not magic.startswith(hip.PACKED_MAGIC):
        raise _damaged(container, "has an unknown version")
    *_, unpacked, _ = form.unpack(source.read(container.offset, form.size))
    end = container.end if version > 1 else following
    if unpacked > _LARGEST:
        raise _damaged(container, f"declares an implausible uncompressed size of {unpacked} bytes")
    stream = _unpack(source, (container.offset + form.size, end), (method, unpacked), container)
    return version, method, unpacked, stream


def _unpack(source: Source, span: tuple[int, int], kind: tuple[int, int], container: Container) -> Iterator[bytes]:
    """The content of a stream of some method, which is told to have so many bytes once unpacked."""
    import zstandard  # noqa: PLC0415 (see hip.py)

    content, (method, unpacked) = _Span(source, *span), kind
    try:
        if method:
            zstd = zstandard.ZstdDecompressor(max_window_size=hip.WINDOW).stream_reader(cast("IO[bytes]", content))
            while unpacked > 0 and (data := zstd.read(min(_PIECE, unpacked))):
                yield data
                unpacked -= len(data)
            return
        plain = zlib.decompressobj()
        while not plain.eof and (data := plain.unconsumed_tail or content.read(_PIECE)):
            yield plain.decompress(data, _PIECE)
    except (zstandard.ZstdError, zlib.error) as error:
        raise _damaged(container, f"cannot be decompressed ({error})") from error


class _Span:
    """A range of a source as a file."""

    def __init__(self, source: Source, start: int, end: int) -> None:
        self._source, self._position, self._end = source, start, end

    def read(self, size: int) -> bytes:
        """The next bytes."""
        data = self._source.read(self._position, max(0, min(size, self._end - self._position)))
        self._position += len(data)
        return data


def _read_table(stream: Iterator[bytes], container: Container) -> tuple[bytes, tuple[hip.BundleRow, ...]]:
    """What was read of the plain bundle, and its table."""
    head = b""
    for piece in stream:
        head += piece
        rows = hip.parse_table(head)
        if rows is not None:
            return head, rows
        if len(head) > _PIECE:
            break
    raise _damaged(container, "does not decompress to a bundle")


def _chain(head: bytes, stream: Iterator[bytes]) -> Iterator[bytes]:
    yield head
    yield from stream


def _plain(
    layout: BundleLayout, head: bytes, stream: Iterator[bytes], unpacked: int, container: Container
) -> Iterator[bytes]:
    """The new bundle, from the old one's content."""
    yield layout.table
    written, position, pending = len(layout.table), 0, list(layout.spans)
    for piece in _chain(head, stream):
        end = position + len(piece)
        while pending and pending[0][2] < end:
            place, size, offset = pending[0]
            start, stop = max(offset, position), min(offset + size, end)
            if start == offset:
                yield bytes(place - written)
                written = place
            yield piece[start - position : stop - position]
            written += stop - start
            if stop < offset + size:
                break
            del pending[0]
        position = end
    if position != unpacked or pending:
        raise _damaged(container, f"decompresses to {position} bytes instead of {unpacked}")


class _Packer:
    """What packs a bundle again."""

    def __init__(self, method: int, size: int) -> None:
        import zstandard  # noqa: PLC0415 (see hip.py)

        self._zlib = zlib.compressobj() if method == 0 else None
        self._zstd = zstandard.ZstdCompressor(level=_LEVEL).compressobj(size=size)

    def compress(self, data: bytes) -> bytes:
        """Packed bytes, as far as there are any."""
        return self._zstd.compress(data) if self._zlib is None else self._zlib.compress(data)

    def flush(self) -> bytes:
        """The rest."""
        return self._zstd.flush() if self._zlib is None else self._zlib.flush()


def _damaged(container: Container, message: str) -> IntegrityError:
    return IntegrityError(f"the compressed offload bundle at offset {container.offset} {message}")
