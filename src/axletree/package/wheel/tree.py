"""Facts of the ELF files in an unpacked tree: an installed distribution, a build's output, a folder of libraries."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from axletree.binary.elf.facts import read_elf
from axletree.binary.formats import HEAD, code_format
from axletree.binary.source import BufferSource
from axletree.core.errors import IntegrityError
from axletree.package.wheel.scan import ElfMember

if TYPE_CHECKING:
    from collections.abc import Iterable

    from axletree.binary.source import Source


class TreeScan(msgspec.Struct, frozen=True, kw_only=True):
    """All that is known of a tree's machine code."""

    elfs: tuple[ElfMember, ...] = ()
    """In the order of the files."""
    damaged_elfs: tuple[tuple[str, str], ...] = ()
    """(path, what is wrong) of files that begin as ELF files and are none."""
    others: tuple[tuple[str, str], ...] = ()
    """(path, ``mach-o`` or ``pe``) of code of other systems."""


def scan_tree(files: Iterable[tuple[str, Source | bytes | memoryview]]) -> TreeScan:
    """Read the headers and tables of each file that is machine code; nothing else is touched.

    Args:
        files: path from the root of the tree -> content; what is no machine code is passed over.
    """
    elfs: list[ElfMember] = []
    damaged: list[tuple[str, str]] = []
    others: list[tuple[str, str]] = []
    for path, content in files:
        source = BufferSource(content) if isinstance(content, bytes | memoryview) else content
        kind = code_format(source.read(0, HEAD))
        if kind == "elf":
            try:
                elfs.append(ElfMember(path=path, facts=read_elf(source, name=path)))
            except IntegrityError as error:
                damaged.append((path, error.problems[0].message))
        elif kind:
            others.append((path, kind))
    return TreeScan(elfs=tuple(elfs), damaged_elfs=tuple(damaged), others=tuple(others))
