"""The names in a file's dynamic symbol table: what it needs from other files, and what it offers them.

:mod:`axletree.binary.elf.facts` counts such names on its way; here they are kept, for those who compare files.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from axletree.binary.elf.dynamic import read_dynamic, read_dynamic_values
from axletree.binary.elf.dynamic import read_symbols as read_pieces
from axletree.binary.elf.tables import Reader, read_head, read_sections

if TYPE_CHECKING:
    from collections.abc import Callable

    from axletree.binary.source import Source

_MAX_NAME = 1 << 16
_MAX_BYTES = 64 << 20
"""Most bytes of names that are kept of one file; libtorch_cpu has 5 MB."""


class Symbols(NamedTuple):
    """Names of dynamic symbols, without versions."""

    undefined: frozenset[bytes] = frozenset()
    """Those that another file must bring; weak ones, which may stay undefined, are left out."""
    optional: frozenset[bytes] = frozenset()
    """The weak ones: they are taken from another file if one has them."""
    exported: frozenset[bytes] = frozenset()
    """Those that other files can use."""


def read_symbols(source: Source, *, name: str, wanted: Callable[[bytes], object] | None = None) -> Symbols:
    """The dynamic symbols of an ELF file; none of a file without a dynamic section.

    Args:
        source: the file.
        name: what errors call it.
        wanted: whether a name is kept; all are where it is left out.

    Raises:
        IntegrityError: the file is no ELF file, its tables contradict each other or its size, or its names take more
            memory than those of any real file.
    """
    reader = Reader(source, name)
    layout = read_head(reader)
    values = read_dynamic_values(reader, layout)  # before the sections: the content may go by only once
    layout = read_sections(reader, layout)
    dynamic = read_dynamic(reader, layout, values)
    if dynamic is None:
        return Symbols()
    strings, kept = dynamic.strings, 0
    undefined: set[bytes] = set()
    optional: set[bytes] = set()
    exported: set[bytes] = set()
    for names, words, section, binding, weak in read_pieces(reader, layout, dynamic):
        for offset, word in zip(names, words, strict=True):
            bound = word & binding
            if not offset or not bound:
                continue
            end = strings.find(b"\0", offset, offset + _MAX_NAME)
            if end < 0:
                raise reader.error(f"a symbol's name is outside its string table, or longer than {_MAX_NAME} bytes")
            symbol = strings[offset:end]
            if wanted is None or wanted(symbol):
                (exported if word & section else optional if bound == weak else undefined).add(symbol)
                kept += len(symbol)
                if kept > _MAX_BYTES:
                    raise reader.error(f"the symbol names take up more than {_MAX_BYTES >> 20} MB")
    return Symbols(frozenset(undefined), frozenset(optional), frozenset(exported))
