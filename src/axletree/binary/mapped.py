"""Memory of mapped files: what was read once need not stay in it."""

from __future__ import annotations

import mmap

FORGET_EVERY = 4 << 20
"""Bytes after which a reader should forget what lies behind it."""

_PAGE = mmap.PAGESIZE
_AROUND = 1 << 18
"""Bytes before a range to forget as well: what is read again, as the kernel maps pages before the one in use, too."""
_ADVICE = getattr(mmap, "MADV_DONTNEED", None)


def forget(buffer: bytes | memoryview, start: int = 0, end: int | None = None) -> None:
    """Let the pages of a range go, where the buffer is a whole file mapped for reading; else do nothing.

    The content is the same as before; reading it again takes the pages from the file. Without this, a process that
    reads an archive from front to back holds all of it in the end.
    """
    view = memoryview(buffer)
    mapping = view.obj
    if _ADVICE is None or not isinstance(mapping, mmap.mmap) or not view.readonly or view.nbytes != len(mapping):
        return
    first = max(0, start - _AROUND) // _PAGE * _PAGE
    end = view.nbytes if end is None else end
    if end > first:
        mapping.madvise(_ADVICE, first, end - first)
