"""Inflating the members of archives (RFC 1951) in pieces, strictly: a stream ends where the archive says, or it fails.

ISA-L inflates faster than zlib and zlib-ng; it can't copy its state, so what must go back uses
:class:`~axletree.binary.zip.members.MemberSource`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from isal.igzip_lib import DECOMP_DEFLATE, IgzipDecompressor, IsalError

from axletree.binary.mapped import FORGET_EVERY, forget

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from axletree.core.errors import IntegrityError

_Error: type[Exception] = IsalError  # type: ignore[assignment]  # its stub says that it is an exception, not a class
CHUNK = 1 << 18
"""Most bytes that one step yields; what looks at them next (CRC, hash, search) finds them in the CPU's cache."""
_FEED = 1 << 17
_ENDS_EARLY = "the deflate stream ends before the declared size"
_ENDS_ELSEWHERE = "the deflate stream does not end at the declared size"


def inflate(
    buffer: memoryview, start: int, end: int, *, size: int, failed: Callable[[str], IntegrityError]
) -> Iterator[bytes]:
    """The content of a raw deflate stream, in pieces of at most :data:`CHUNK` bytes.

    Args:
        buffer: the whole archive; where it is a mapped file, pages that were read are given back.
        start: where the stream begins in it.
        end: where it must end.
        size: bytes that it must give; never are more than that handed on.
        failed: makes the error to raise.

    Raises:
        IntegrityError: the stream is damaged, or is longer or shorter than declared on either side.
    """
    inflater = IgzipDecompressor(DECOMP_DEFLATE)
    position = forgotten = start
    missing = size
    while not inflater.eof:
        feed: bytes | memoryview = b""
        if inflater.needs_input:
            feed = buffer[position : min(position + _FEED, end)]
            position += len(feed)
            if not feed:
                raise failed(_ENDS_EARLY)
            if position - forgotten > FORGET_EVERY:
                forget(buffer, forgotten, position)
                forgotten = position
        try:
            # One byte more than is missing: without it, the end of the stream would not be seen.
            chunk = inflater.decompress(feed, min(CHUNK, missing + 1))
        except _Error as error:
            raise failed(f"the deflate stream is damaged ({error})") from error
        missing -= len(chunk)
        if missing < 0:
            break
        if chunk:
            yield chunk
    if missing or position < end or inflater.unused_data:
        raise failed(_ENDS_ELSEWHERE)


def inflate_at_once(packed: memoryview, size: int, failed: Callable[[str], IntegrityError]) -> bytes:
    """The whole content of a raw deflate stream; as :func:`inflate`, for what is small.

    Raises:
        IntegrityError: as :func:`inflate`.
    """
    inflater = IgzipDecompressor(DECOMP_DEFLATE)
    try:
        content = inflater.decompress(packed, size + 1)
    except _Error as error:
        raise failed(f"the deflate stream is damaged ({error})") from error
    if not inflater.eof and len(content) <= size:
        raise failed(_ENDS_EARLY)
    if len(content) != size or inflater.unused_data:
        raise failed(_ENDS_ELSEWHERE)
    return content
