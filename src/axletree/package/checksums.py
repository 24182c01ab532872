"""``SHA256SUMS``: digests of files in a folder, as ``sha256sum`` writes and checks them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from axletree.core.errors import IntegrityError, Problem, PublishError

if TYPE_CHECKING:
    from collections.abc import Mapping

CHECKSUMS = "SHA256SUMS"
_LINE = re.compile(r"([0-9a-f]{64}) [ *](.+)")


def render_checksums(files: Mapping[str, str]) -> bytes:
    """The file for some names and their SHA-256 digests (hexadecimal), sorted by name."""
    return "".join(f"{files[name]}  {name}\n" for name in sorted(files)).encode()


def read_checksums(data: bytes, *, file: str = CHECKSUMS) -> dict[str, str]:
    """Name -> digest.

    Raises:
        IntegrityError: a line that is none of this form.
    """
    found: dict[str, str] = {}
    for line in data.decode("utf-8", "replace").splitlines():
        match = _LINE.fullmatch(line)
        if match is None:
            raise IntegrityError(Problem(file=file, message=f"the line is not valid in SHA256SUMS: {line[:80]!r}"))
        found[match[2]] = match[1]
    return found


def merge_checksums(present: Mapping[str, str], new: Mapping[str, str]) -> dict[str, str]:
    """The files of a folder after others were added.

    Raises:
        PublishError: a file of the same name with other content is there; names all of them.
    """
    problems = [
        Problem(
            file=name,
            message=(
                f"the file already exists with different content (sha256 {present[name][:16]}..., now {digest[:16]}...)"
            ),
            hint="change the version or local label of the new file, or remove the old one",
        )
        for name, digest in new.items()
        if present.get(name, digest) != digest
    ]
    if problems:
        raise PublishError(*problems)
    return {**present, **new}
