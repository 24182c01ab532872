"""What the dynamic symbols of an ELF file tie it to: CPython, torch, and which ``std::string``.

Libraries have 100,000 symbols, so nothing is done for each of them that a search over the string table can do. Names
are compared as offsets of strings: a mangled name is never the tail of another one.
"""

from __future__ import annotations

import re
from array import array
from typing import TYPE_CHECKING, NamedTuple

from axletree.binary.elf.dynamic import read_string, read_symbols

if TYPE_CHECKING:
    from collections.abc import Callable

    from axletree.binary.elf.dynamic import Dynamic
    from axletree.binary.elf.tables import ElfLayout, Reader

_MODULE = (b"PyInit_", b"PyInitU_")
_FOREIGN = re.compile(
    rb"(_?Py)|(aoti_torch_|torch_)"
    # special names (vtable, typeinfo, thunk, guard ...), names local to a function, then the nested name itself
    rb"|(_Z(?:GV|GR|T[VTISWHC]|T[hv]n?\d+_(?:n?\d+_)?)?Z*N[rVKRO]*(?:3c10|2at|5torch|6caffe2))"
    # all that libcuda, libnvcuvid and libnvidia-ml of NVIDIA's driver 580 export
    rb"|(cu(?:[A-Z]|dbg|vid)|nvml[A-Z]|NvTool[A-Z]|__std_\d)"
)
_PYTHON, _SHIM, _TORCH_CXX, _DRIVER = 1, 2, 3, 4
"""The groups of it."""
_MANGLED_TOKEN = re.compile(rb"Ss|S[0-9A-Z]*_|T[0-9]*_|L[a-z]n?\d+E|[AThv]n?\d+_|[CD]\d|(\d{1,4})")
_COMPATIBLE = b"_ZNSs4_Rep20_S_empty_rep_storageE"
"""What the compilers of older systems link into everything, whichever strings it uses."""
_MAX_HITS = 200_000
"""Most names of one kind that are counted."""


class SymbolUse(NamedTuple):
    """Names and counts; see :class:`~axletree.binary.elf.facts.ElfFacts` and ``AbiUse`` for their meaning."""

    python_symbols: tuple[str, ...] = ()
    python_modules: tuple[str, ...] = ()
    torch_cxx: int = 0
    torch_shims: int = 0
    cxx11: int = 0
    old_strings: int = 0
    driver_symbols: tuple[str, ...] = ()


def read_symbol_use(reader: Reader, layout: ElfLayout, dynamic: Dynamic) -> SymbolUse:
    """What the symbols of a file tie it to.

    Raises:
        IntegrityError: the table of symbols does not fit into the file, or its names are crafted to take forever.
    """
    strings = dynamic.strings
    new = _names_with(strings, b"cxx11")
    old = _names_with(strings, b"Ss", keep=_has_old_string)
    init = _names_with(strings, b"PyInit")
    counted, defined = new | old, new | old | init
    undefined, exported, optional = array("I"), array("I"), array("I")
    modules: set[str] = set()
    for names, words, section, binding, weak in read_symbols(reader, layout, dynamic):
        for name, word in zip(names, words, strict=True):
            if not word & section:
                bound = word & binding
                if bound == weak:  # used only where it is there
                    optional.append(name)
                elif bound:
                    undefined.append(name)
            elif name in defined:
                if name in counted and word & binding not in (0, weak):
                    exported.append(name)
                if name in init and strings.startswith(_MODULE, name):
                    modules.add(read_string(reader, dynamic, name).partition("_")[2])
    kinds: list[list[int]] = [[], [], [], [], []]
    for name in undefined:
        found = _FOREIGN.match(strings, name)
        if found is not None:
            kinds[found.lastindex or 0].append(name)
    for name in optional:
        found = _FOREIGN.match(strings, name)
        if found is not None and found.lastindex == _DRIVER:
            kinds[_DRIVER].append(name)
    both = undefined + exported
    return SymbolUse(
        python_symbols=tuple(sorted({read_string(reader, dynamic, name) for name in kinds[_PYTHON]})),
        python_modules=tuple(sorted(modules)),
        torch_cxx=len(kinds[_TORCH_CXX]),
        torch_shims=len(kinds[_SHIM]),
        cxx11=sum(map(new.__contains__, both)),
        old_strings=sum(map(old.__contains__, both)),
        driver_symbols=tuple(sorted({read_string(reader, dynamic, name) for name in kinds[_DRIVER]})),
    )


def _names_with(strings: bytes, part: bytes, *, keep: Callable[[bytes], bool] | None = None) -> set[int]:
    """Offsets of the strings that hold a part, each looked at once."""
    found: set[int] = set()
    search = re.compile(re.escape(part)).search  # twice as fast as bytes.find
    end = 0
    for _ in range(_MAX_HITS):
        hit = search(strings, end)
        if hit is None:
            break
        start = strings.rfind(b"\0", end, hit.start()) + 1 or end
        end = strings.find(b"\0", hit.end())
        if end < 0:
            break
        if keep is None or keep(strings[start:end]):
            found.add(start)
    return found


def _has_old_string(name: bytes) -> bool:
    """Whether a mangled name has the substitution ``Ss``; in the text of an identifier it means nothing."""
    if not name.startswith(b"_Z") or name == _COMPATIBLE:
        return False
    position = 2
    while (token := _MANGLED_TOKEN.search(name, position)) is not None:
        if token[0] == b"Ss":
            return True
        position = token.end() + (int(token[1]) if token[1] else 0)
    return False
