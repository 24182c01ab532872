"""Finding the prefix that files were built for, while their content goes by.

A file that holds it is *text* if it has no NUL byte at all, else *binary*; installers replace it in a text by a prefix
of any length, in a binary only by one that is no longer, padding the C string with NULs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from axletree.package.conda.model import FileMode

MIN_BINARY = 255
"""Bytes that a placeholder in a binary needs, so that real prefixes fit into its place."""


class PrefixSearch:
    """Looks for one placeholder in one file; give it all chunks in order."""

    def __init__(self, placeholder: bytes) -> None:
        """Search for these bytes."""
        self._wanted = placeholder
        self._tail = b""
        self._found = False
        self._binary = False

    def feed(self, chunk: bytes | memoryview) -> None:
        """Look at the next piece; a placeholder across two pieces is found as well."""
        data = bytes(chunk)
        if not self._binary:
            self._binary = b"\0" in data
        if not self._found:
            keep = len(self._wanted) - 1
            self._found = self._wanted in data or self._wanted in self._tail + data[:keep]
            self._tail = (self._tail + data)[-keep:] if len(data) < keep else data[-keep:]

    @property
    def mode(self) -> FileMode | None:
        """How the placeholder must be replaced; ``None`` where the file has none."""
        if not self._found:
            return None
        return "binary" if self._binary else "text"


def holds_prefix(data: bytes, placeholder: str | None) -> bool:
    """Whether content that is in memory holds a placeholder."""
    return placeholder is not None and placeholder.encode() in data
