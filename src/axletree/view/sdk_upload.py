"""The packages of an SDK in a store, as text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from axletree.core.units import format_bytes, plural
from axletree.view.sdk_install import at_install_lines, wheel_lines
from axletree.view.tables import printable, render_table

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from axletree.report.sdk import UploadedIndex, UploadReport

_MOST = 2
"""Indexes whose commands are all shown."""


def uploaded_text(report: UploadReport, *, store: str, page: str, width: int) -> str:
    """A table of packages, and how to install them; of many indexes only where they are, and the page that tells."""
    rows = [(file.path.removeprefix(f"{report.folder}/"), format_bytes(file.size), file.state) for file in report.files]
    new = [file for file in report.files if file.state == "new"]
    what = f"{plural(len(new), 'package')} ({format_bytes(sum(file.size for file in new))})"
    place = f"{store}/{report.folder}"
    done = f"{'would put' if report.dry_run else 'put'} {what} into {place}"
    lines = [render_table(("package", "size", "state"), rows, width=width, right=(1,)), done]
    lines += [f"note: {printable(note)}" for note in report.notes]
    if len(report.indexes) > _MOST:
        lines += [f"{index.default_family}: {index.url}/simple" for index in report.indexes]
        lines.append(f"how to install: {place}/{page}")
    else:
        lines += [line for index in report.indexes for line in _commands(index)]
    return "\n".join(lines)


def install_page(indexes: Sequence[UploadedIndex]) -> str:
    """The same instructions as a page of Markdown."""
    parts = [f"# Install {indexes[0].sdk} {indexes[0].version}" if indexes else "# Install"]
    for index in indexes:
        for line in _commands(index):
            command = line.startswith("  ")
            parts.append(f"    {line.strip()}" if command else f"\n{line[:1].upper()}{line[1:]}\n")
    return "\n".join(parts) + "\n"


def _commands(index: UploadedIndex) -> Iterator[str]:
    if index.at_install:
        return at_install_lines(index, place=f"{index.url}/index.html", variable=index.variable)
    return wheel_lines(index, index.wheels)
