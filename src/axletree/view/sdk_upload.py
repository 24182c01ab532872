"""The packages of an SDK in a store, as text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from axletree.core.units import format_bytes, plural
from axletree.view.sdk_install import Installable, at_install_lines, wheel_lines
from axletree.view.tables import printable, render_table

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from axletree.package.closure import Offer

_MOST = 2
"""Indexes whose commands are all shown."""


class Uploaded(Protocol):
    """A package in the store."""

    @property
    def path(self) -> str:
        """Relative to the store."""

    @property
    def size(self) -> int:
        """Bytes."""

    @property
    def state(self) -> str:
        """``new`` or ``there``."""


class Index(Installable, Protocol):
    """An index of the store."""

    @property
    def url(self) -> str:
        """Of its root."""

    @property
    def at_install(self) -> bool:
        """Whether its selector chooses where it is installed."""

    @property
    def variable(self) -> str:
        """That names a family for it."""

    @property
    def wheels(self) -> Sequence[Offer]:
        """That it lists."""


def uploaded_text(
    files: Sequence[Uploaded],
    indexes: Sequence[Index],
    *,
    store: str,
    folder: str,
    page: str,
    dry_run: bool,
    notes: Sequence[str],
    width: int,
) -> str:
    """A table of packages, and how to install them; of many indexes only where they are, and the page that tells."""
    rows = [(file.path.removeprefix(f"{folder}/"), format_bytes(file.size), file.state) for file in files]
    new = [file for file in files if file.state == "new"]
    what = f"{plural(len(new), 'package')} ({format_bytes(sum(file.size for file in new))})"
    done = f"{'would put' if dry_run else 'put'} {what} into {store}/{folder}"
    lines = [render_table(("package", "size", "state"), rows, width=width, right=(1,)), done]
    lines += [f"note: {printable(note)}" for note in notes]
    if len(indexes) > _MOST:
        lines += [f"{index.default_family}: {index.url}/simple" for index in indexes]
        lines.append(f"how to install: {store}/{folder}/{page}")
    else:
        lines += [line for index in indexes for line in _commands(index)]
    return "\n".join(lines)


def install_page(indexes: Sequence[Index]) -> str:
    """The same instructions as a page of Markdown."""
    parts = [f"# Install {indexes[0].sdk} {indexes[0].version}" if indexes else "# Install"]
    for index in indexes:
        for line in _commands(index):
            command = line.startswith("  ")
            parts.append(f"    {line.strip()}" if command else f"\n{line[:1].upper()}{line[1:]}\n")
    return "\n".join(parts) + "\n"


def _commands(index: Index) -> Iterator[str]:
    if index.at_install:
        return at_install_lines(index, place=f"{index.url}/index.html", variable=index.variable)
    return wheel_lines(index, index.wheels)
