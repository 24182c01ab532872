"""The packages of an SDK that were built, as text. Callers give values; nothing here knows where they came from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from axletree.core.units import format_bytes
from axletree.view.tables import plural, printable, render_table

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_NOTES = 10


class Built(Protocol):
    """A wheel that was built."""

    @property
    def file(self) -> str:
        """Its name."""

    @property
    def size(self) -> int:
        """Bytes."""

    @property
    def files(self) -> int:
        """Files of the SDK in it."""

    @property
    def installed(self) -> int:
        """Bytes of these."""

    @property
    def targets(self) -> Sequence[str]:
        """GPUs that it is for."""

    @property
    def system(self) -> Sequence[str]:
        """Libraries that hosts must bring."""


def built_text(
    wheels: Sequence[Built], *, out: str, dropped: int, notes: Sequence[str], install: Sequence[str], width: int
) -> str:
    """A table of wheels, what hosts must bring, and how to install them."""
    rows = [
        (
            wheel.file,
            f"{wheel.files:,}",
            format_bytes(wheel.size),
            format_bytes(wheel.installed),
            ", ".join(wheel.targets),
        )
        for wheel in wheels
    ]
    headers = ("wheel", "files", "download", "installed", "GPUs")
    table = render_table(headers, rows, width=width, right=(1, 2, 3))
    return "\n".join(
        [table, *_more(wheels, dropped, notes), f"wrote {plural(len(wheels), 'wheel')} to {out}", *install]
    )


def _more(wheels: Sequence[Built], dropped: int, notes: Sequence[str]) -> Iterator[str]:
    if dropped:
        yield f"dropped by the manifest: {plural(dropped, 'file')}"
    system = sorted({soname for wheel in wheels for soname in wheel.system})
    if system:
        yield f"hosts must provide: {', '.join(map(printable, system))}"
    yield from (f"note: {printable(note)}" for note in notes[:_NOTES])
    if len(notes) > _NOTES:
        yield f"and {plural(len(notes) - _NOTES, 'more note')}; --json has all"
