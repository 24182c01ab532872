"""What was laid out or fetched of an SDK, as text. Callers give values; nothing here knows where they came from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from axletree.core.units import format_bytes
from axletree.view.tables import plural, render_table

if TYPE_CHECKING:
    from collections.abc import Sequence


class Laid(Protocol):
    """An artifact that was written."""

    @property
    def name(self) -> str:
        """Of its folder or archive."""

    @property
    def files(self) -> int:
        """Files and links."""

    @property
    def size(self) -> int:
        """Bytes of its files."""

    @property
    def packed(self) -> int:
        """Bytes of its archive, or 0."""


class Brought(Protocol):
    """An archive that was fetched."""

    @property
    def filename(self) -> str:
        """Its name."""

    @property
    def size(self) -> int:
        """Bytes."""

    @property
    def state(self) -> str:
        """``fetched`` or ``there``."""


def laid_out_text(artifacts: Sequence[Laid], folder: str, *, linked: int, copied: int, width: int) -> str:
    """A table of artifacts, and what it cost."""
    packed = any(artifact.packed for artifact in artifacts)
    headers = ("artifact", "files", "bytes", *(("archive",) if packed else ()))
    rows = [
        (
            artifact.name,
            f"{artifact.files:,}",
            format_bytes(artifact.size),
            *((format_bytes(artifact.packed),) if packed else ()),
        )
        for artifact in artifacts
    ]
    files, size = sum(artifact.files for artifact in artifacts), sum(artifact.size for artifact in artifacts)
    lines = [render_table(headers, rows, width=width, right=range(1, len(headers)))]
    total = f"{folder}: {plural(len(artifacts), 'artifact')}, {plural(files, 'file')}, {format_bytes(size)}"
    if packed:
        total += f", {format_bytes(sum(artifact.packed for artifact in artifacts))} packed"
    lines.append(total)
    if linked:
        lines.append(f"{plural(linked, 'file')} are hard links to the input: a change to one changes both")
    if copied:
        lines.append(f"{plural(copied, 'file')} had to be copied, as hard links are not possible there")
    return "\n".join(lines)


def fetched_text(files: Sequence[Brought], folder: str, *, run_id: str, width: int) -> str:
    """A table of archives, and where they are."""
    rows = [(file.filename, format_bytes(file.size), file.state) for file in files]
    new = [file.size for file in files if file.state == "fetched"]
    total = f"run {run_id} -> {folder}: {plural(len(files), 'archive')}, all verified"
    return "\n".join(
        (
            render_table(("archive", "bytes", ""), rows, width=width, right=(1,)),
            f"{total}; {len(new):,} fetched ({format_bytes(sum(new))}), {len(files) - len(new):,} already there",
        )
    )
