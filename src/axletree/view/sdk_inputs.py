"""What was laid out or fetched of an SDK, as text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from axletree.core.units import format_bytes, plural
from axletree.view.tables import printable, render_table

if TYPE_CHECKING:
    from axletree.report.sdk import Fetched, LaidOut


def laid_out_text(report: LaidOut, *, width: int) -> str:
    """A table of artifacts, and what it cost."""
    artifacts = report.artifacts
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
    total = f"{report.folder}: {plural(len(artifacts), 'artifact')}, {plural(files, 'file')}, {format_bytes(size)}"
    if packed:
        total += f", {format_bytes(sum(artifact.packed for artifact in artifacts))} packed"
    lines.append(total)
    if report.linked:
        linked = plural(report.linked, "file")
        lines.append(f"{linked} hard-linked to the input: changing one changes the other")
    if report.copied:
        lines.append(f"{plural(report.copied, 'file')} had to be copied because hard links are not possible there")
    lines += [f"note: {printable(note)}" for note in report.notes]
    return "\n".join(lines)


def fetched_text(report: Fetched, *, width: int) -> str:
    """A table of archives, and where they are."""
    rows = [(file.filename, format_bytes(file.size), file.state) for file in report.files]
    new = [file.size for file in report.files if file.state == "fetched"]
    total = f"run {report.run_id} -> {report.folder}: {plural(len(report.files), 'archive')}, all verified"
    return "\n".join(
        (
            render_table(("archive", "bytes", ""), rows, width=width, right=(1,)),
            (
                f"{total}; {len(new):,} fetched ({format_bytes(sum(new))}), {len(report.files) - len(new):,} "
                "already present"
            ),
        )
    )
