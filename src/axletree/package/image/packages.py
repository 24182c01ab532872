"""Package databases of images: which packages are installed, in one line each: ``NAME VERSION ARCHITECTURE``."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from axletree.package.image.apt import stanzas

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_NAME, _VERSION, _RELEASE, _EPOCH, _ARCHITECTURE = 1000, 1001, 1002, 1003, 1022
_TEXT, _INT32 = 6, 4
_ENTRY = struct.Struct(">4I")
_COUNTS = struct.Struct(">2I")


def dpkg_packages(text: str) -> tuple[str, ...]:
    """Packages of dpkg's ``status`` file. Those that were removed are none; half-installed ones say so."""
    return _sorted(_dpkg_line(fields) for fields in stanzas(text) if "Package" in fields and _is_there(fields))


def apk_packages(text: str) -> tuple[str, ...]:
    """Packages of Alpine's ``installed`` file."""
    found = []
    for paragraph in text.split("\n\n"):
        fields = {line[0]: line[2:].strip() for line in paragraph.splitlines() if line[1:2] == ":"}
        if "P" in fields:
            found.append(" ".join([fields["P"], fields.get("V", ""), fields.get("A", "")]))
    return _sorted(found)


def rpm_packages(headers: Iterable[bytes]) -> tuple[str, ...]:
    """Packages of RPM's database, from the header of each.

    Raises:
        ValueError: one is damaged.
    """
    return _sorted(_rpm_line(header) for header in headers)


def _is_there(fields: Mapping[str, str]) -> bool:
    return fields.get("Status", "installed").split()[-1:] not in (["config-files"], ["not-installed"])


def _dpkg_line(fields: Mapping[str, str]) -> str:
    state = fields.get("Status", "installed").split()[-1:]
    words = [fields["Package"], fields.get("Version", ""), fields.get("Architecture", "")]
    return " ".join([*words, *([] if state == ["installed"] else [f"({' '.join(state)})"])])


def _rpm_line(header: bytes) -> str:
    try:
        tags = _rpm_tags(header)
    except (struct.error, IndexError, UnicodeDecodeError) as error:
        raise ValueError(f"a damaged header: {error}") from error
    epoch = f"{tags[_EPOCH]}:" if _EPOCH in tags else ""
    version = f"{epoch}{tags.get(_VERSION, '')}-{tags.get(_RELEASE, '')}"
    return f"{tags.get(_NAME, '')} {version} {tags.get(_ARCHITECTURE, '')}".strip()


def _rpm_tags(header: bytes) -> dict[int, str]:
    """The few values of a header that name a package. A header is a table of entries, and the data that they mean."""
    entries, size = _COUNTS.unpack_from(header)
    data = header[_COUNTS.size + entries * _ENTRY.size :]
    if len(data) < size:
        raise ValueError("a header is cut off")
    found: dict[int, str] = {}
    for number in range(entries):
        tag, kind, offset, _ = _ENTRY.unpack_from(header, _COUNTS.size + number * _ENTRY.size)
        if tag in {_NAME, _VERSION, _RELEASE, _ARCHITECTURE} and kind == _TEXT:
            found[tag] = data[offset : data.index(b"\0", offset)].decode()
        elif tag == _EPOCH and kind == _INT32:
            found[tag] = str(struct.unpack_from(">I", data, offset)[0])
    return found


def _sorted(lines: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(set(lines)))
