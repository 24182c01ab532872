"""What apt is configured with, and what it tells of packages."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

_OPTION = re.compile(r'Acquire::(?:Check-\S+|https?::Proxy\S*) "[^"]+";')


def archive_line(sources: Iterable[tuple[str, str]]) -> str | None:
    """The first package archive that files of sources name, as a ``deb`` line begins: its options and its address.

    Args:
        sources: names and contents of ``sources.list`` and ``*.sources`` files.
    """
    for name, text in sources:
        if name.endswith(".sources"):
            for fields in stanzas(text):
                types, addresses = fields.get("Types", "deb").split(), fields.get("URIs", "").split()
                if addresses and "deb" in types and fields.get("Enabled", "yes") != "no":
                    signed = fields.get("Signed-By", "")
                    return f"[signed-by={signed}] {addresses[0]}" if signed.startswith("/") else addresses[0]
        for line in text.splitlines():
            words = line.split()
            if words[:1] == ["deb"] and len(words) > 2:
                end = next((at for at, word in enumerate(words) if at and word.endswith("]")), 0)
                return " ".join(words[1 : end + 2])
    return None


def acquire_options(dump: str) -> tuple[str, ...]:
    """How apt reaches archives, and whether it takes one whose date has passed: lines of ``apt-config dump``."""
    return tuple(line for line in dump.splitlines() if _OPTION.fullmatch(line))


def stanzas(text: str) -> Iterator[Mapping[str, str]]:
    """The paragraphs of a file in Debian's format: name of a field -> its first line."""
    for paragraph in re.split(r"\n\s*\n", text):
        pairs = (line.partition(":") for line in paragraph.splitlines() if line[:1] not in {"", "#", " ", "\t"})
        fields = {name: value.strip() for name, _, value in pairs}
        if fields:
            yield fields
