"""What probes ask of ELF files: a name, the symbol versions of libstdc++."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from axletree.binary.elf.facts import is_elf, read_elf
from axletree.binary.elf.layout import read_links
from axletree.binary.source import BufferSource
from axletree.check.host.toolchain import Runtime
from axletree.core.errors import AxletreeError
from axletree.host.archive import map_file

if TYPE_CHECKING:
    from pathlib import Path

    from axletree.host.facts.access import Access


def read_soname(path: Path) -> str | None:
    """SONAME of a library; ``None`` where it is none, or can't be read."""
    try:
        return read_links(BufferSource(map_file(path)), name=str(path)).soname
    except AxletreeError:
        return None


def elf_class(path: Path) -> tuple[int, int] | None:
    """Class and machine of an ELF file, from its first bytes; ``None`` where it is none."""
    try:
        with path.open("rb") as stream:
            head = stream.read(20)
    except OSError:
        return None
    if len(head) < 20 or not is_elf(head):
        return None
    return head[4], int.from_bytes(head[18:20], "little" if head[5] == 1 else "big")


def cxx_runtime(access: Access, path: str, *, found_by: str) -> Runtime:
    """A libstdc++ with the newest symbol versions that it defines."""
    sources = {"path": found_by, "real": "by resolving symbolic links"}
    versions: tuple[str, ...] = ()
    how = "the file's symbol versions"
    try:
        versions = read_elf(map_file(access.path(path)), name=path).versions_defined
    except AxletreeError as error:
        how = f"reading the file: {error.problems[0].message}"
    return Runtime(
        path=path,
        real=access.real(path),
        glibcxx=newest(versions, "GLIBCXX_"),
        cxxabi=newest(versions, "CXXABI_"),
        sources={**sources, "glibcxx": how, "cxxabi": how},
    )


def newest(versions: tuple[str, ...], prefix: str) -> str | None:
    """The highest number among symbol versions that start so: ``GLIBCXX_3.4.9``, ``GLIBCXX_3.4.30`` -> ``3.4.30``."""
    numbers = [version.removeprefix(prefix) for version in versions if version.startswith(prefix)]
    plain = [number for number in numbers if re.fullmatch(r"\d+(\.\d+)*", number)]
    return max(plain, key=lambda number: [int(part) for part in number.split(".")], default=None)
