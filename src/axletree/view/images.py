"""Images as text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from axletree.core.units import format_bytes, format_duration, plural
from axletree.view.tables import printable, render_table

if TYPE_CHECKING:
    from axletree.report.images import ListedImages, MadeImages, RemovedImages

SHORT = 12
"""Digits of an id that people see."""


def made_text(report: MadeImages) -> str:
    """Each image with its system and its size."""
    lines: list[str] = []
    for image in report.images:
        lines.append(f"{image.name}  {image.id[:SHORT]}  {_system(image.system, image.glibc)}")
        parts = [plural(image.files, "file"), format_bytes(image.size)]
        parts += [plural(image.debs, "Debian package")] if image.debs else []
        lines.append(f"  {', '.join(parts)}, in {image.root}")
    return printable("\n".join(lines))


def listed_text(report: ListedImages, *, now: float, width: int) -> str:
    """A table of images."""
    if not report.images:
        return "no images in the store; make one: axletree image make bookworm"
    rows = [
        [
            image.id[:SHORT],
            _system(image.system, image.glibc),
            format_bytes(image.size),
            f"{format_duration(max(0.0, now - image.used))} ago",
            image.made_from,
        ]
        for image in report.images
    ]
    return render_table(["ID", "SYSTEM", "SIZE", "USED", "MADE FROM"], rows, width=width, right=[2])


def removed_text(report: RemovedImages) -> str:
    """Which ones are gone."""
    lines = [f"removed {image.id[:SHORT]} ({image.made_from}): {format_bytes(image.freed)}" for image in report.images]
    return printable("\n".join(lines) or "no images to remove")


def _system(name: str, glibc: str | None) -> str:
    return f"{name}, glibc {glibc}" if glibc else name
