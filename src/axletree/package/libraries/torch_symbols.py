"""Whether the torch that a wheel will meet exports what the wheel's files take from it.

torch's C++ interface changes with each release: a function that lost an argument is another symbol, and the import
fails with ``undefined symbol``. Which undefined symbols are torch's business is told from their names (Itanium C++ ABI,
chapter 5.1, "External Names"): entities of torch's namespaces, instances of ``std`` and pybind11 templates over them,
and the functions of its C interfaces.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import msgspec

from axletree.binary.cpp.demangle import demangle
from axletree.binary.elf.facts import is_elf, read_elf
from axletree.binary.elf.symbols import read_symbols
from axletree.binary.zip.directory import read_directory
from axletree.binary.zip.members import PassingMember, read_member
from axletree.core.errors import IntegrityError, Problem

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from axletree.binary.elf.facts import ElfFacts
    from axletree.binary.elf.symbols import Symbols
    from axletree.binary.source import Source

LIBRARIES = "torch/lib/"
"""Where torch keeps its libraries below site-packages."""
VERSION_MODULE = "torch/version.py"
_MAX_MODULE = 1 << 20
_MAX_READ = 2000
"""Most missing symbols that are read as C++, each in a tenth of a millisecond; nobody reads more of them."""

_SPACES = rb"(?:2at|3c10|4c10d|5torch|6caffe2|10onnx_torch)"
_SPECIAL = rb"_Z(?:T[VTISWHC]|G[VR]|T[hv]n?\d+_(?:n?\d+_)?)?Z*"
"""What stands before the name of a vtable, a typeinfo, a guard variable, a thunk, or something inside a function."""
_OWN = re.compile(
    _SPECIAL
    + rb"(?:[PRKO]*N[rVK]*[RO]?"
    + _SPACES
    + rb"|\d+TH[CDP]{0,3}[A-Z])|aoti_torch_|torch_[a-z]|TH[CDP]{1,3}[A-Z]"
)
_CARRIER = re.compile(_SPECIAL + rb"(?:[PRKO]*N[rVK]*[RO]?)?(?:S[tabsiod]|9__gnu_cxx|8pybind11)")
_SCOPES = re.compile(rb"_ZN[rVK]*[RO]?")
_LENGTH = re.compile(rb"[1-9]\d{0,3}")
_MENTION = re.compile(rb"(?<!\d)" + _SPACES)
_FAMILY = re.compile(
    r"lib(?:torch|torch_(?:cpu|cuda|cuda_cpp|cuda_cu|cuda_linalg|python|hip|xpu|xpu_ops\w*|global_deps|nvshmem)"
    r"|c10|c10_(?:cuda|hip|xpu)|caffe2_\w+|shm)\.so"
)
_VERSION = re.compile(rb"""^__version__\s*(?::\s*\w+\s*)?=\s*['"]([^'"\s]{1,100})['"]""", re.MULTILINE)
_MAX_INSTEAD = 5


class TorchExports(msgspec.Struct, frozen=True, kw_only=True):
    """What a torch offers to those who link to it."""

    origin: str
    """The wheel or the folder it was read from, as messages call it."""
    version: str
    """Of its own version module, with the local label (``2.14.1+cu130``); empty where it does not tell."""
    machine: str | None
    """``x86_64``."""
    libraries: frozenset[str]
    """File names of its libraries."""
    symbols: frozenset[bytes]
    """All names that any of them exports."""


class MissingSymbol(msgspec.Struct, frozen=True, kw_only=True):
    """A symbol that files take from torch and that this torch does not export."""

    symbol: str
    """As it is in the files."""
    text: str
    """As C++; the same as ``symbol`` if it is not a C++ name or cannot be read."""
    files: tuple[str, ...]
    """The files that need it, sorted."""
    instead: tuple[str, ...] = ()
    """Functions that this torch exports with the same name and different parameters."""


class TorchMatch(msgspec.Struct, frozen=True, kw_only=True):
    """Comparison of a wheel's files with one torch."""

    origin: str
    version: str
    symbols: int
    """Number of symbols that the files need from torch."""
    missing: tuple[MissingSymbol, ...] = ()
    """Sorted by name."""
    absent: dict[str, tuple[str, ...]] = {}
    """Library that this torch does not have -> files that need it, sorted."""
    other_machine: tuple[str, ...] = ()
    """Files for a different machine than this torch; their symbols were not compared."""


def is_torch_symbol(name: bytes) -> bool:
    """Whether an undefined symbol is one that torch must bring, by its name alone."""
    if _OWN.match(name):
        return True
    return _CARRIER.match(name) is not None and _MENTION.search(name) is not None


def is_torch_library(soname: str) -> bool:
    """Whether a SONAME is one of torch's own."""
    return _FAMILY.fullmatch(soname) is not None


def wheel_exports(buffer: bytes | memoryview, *, filename: str) -> TorchExports:
    """What the torch in a wheel exports. Each library is inflated once.

    Raises:
        IntegrityError: the archive is damaged or unsafe, or holds no torch with ELF libraries.
    """
    entries = [entry for entry in read_directory(buffer, archive=filename) if not entry.directory]
    module = next((entry for entry in entries if entry.name == VERSION_MODULE), None)
    version = read_version(read_member(buffer, module, archive=filename, limit=_MAX_MODULE)) if module else ""

    def libraries() -> Iterator[tuple[str, Source]]:
        for entry in entries:
            name = entry.name.removeprefix(LIBRARIES)
            if name == entry.name or ".so" not in name or "/" in name:
                continue
            source = PassingMember(buffer, entry, archive=filename)
            yield name, source
            source.finish()

    return collect_exports(libraries(), origin=filename, version=version)


def collect_exports(libraries: Iterable[tuple[str, Source]], *, origin: str, version: str) -> TorchExports:
    """The exports of torch's libraries together.

    Args:
        libraries: file name and content of each; what is no ELF file is passed over.
        origin: what messages call this torch.
        version: of its version module.

    Raises:
        IntegrityError: a library is damaged, or none is an ELF file.
    """
    names: set[str] = set()
    symbols: set[bytes] = set()
    machine: str | None = None
    for name, source in libraries:
        if not is_elf(source.read(0, 4)):
            continue
        names.add(name)
        symbols |= read_symbols(source, name=name).exported
        machine = machine or read_elf(source, name=name).architecture
    if not names:
        message = f"the path contains no torch libraries to compare with: no ELF files in {LIBRARIES}"
        hint = "specify a Linux torch wheel, or an environment with torch installed"
        raise IntegrityError(Problem(file=origin, message=message, hint=hint))
    return TorchExports(
        origin=origin, version=version, machine=machine, libraries=frozenset(names), symbols=frozenset(symbols)
    )


def read_version(module: bytes) -> str:
    """The version that torch's own module states, or an empty text."""
    found = _VERSION.search(module)
    return found[1].decode("utf-8", "replace") if found else ""


def match_torch(
    buffer: bytes | memoryview, elfs: Mapping[str, ElfFacts], torch: TorchExports, *, filename: str
) -> TorchMatch:
    """Compare the files of a wheel with a torch.

    What another file of the wheel exports is not missing. Only files that are linked to torch or name its symbols are
    read, and the others only where something is missing.

    Args:
        buffer: the wheel.
        elfs: path -> facts of its ELF files, from a scan of it.
        torch: the torch that it will meet.
        filename: what errors call the wheel.

    Raises:
        IntegrityError: the archive or one of the files is damaged.
    """
    entries = {entry.name: entry for entry in read_directory(buffer, archive=filename)}
    users = {path for path, facts in elfs.items() if _uses_torch(facts)}
    others = {path for path in users if elfs[path].architecture != torch.machine}

    def read(path: str) -> Symbols:
        source = PassingMember(buffer, entries[path], archive=filename)
        found = read_symbols(source, name=path, wanted=is_torch_symbol)
        source.finish()
        return found

    taken = {path: read(path) for path in sorted(users - others)}
    wanted = frozenset[bytes]().union(*(symbols.undefined for symbols in taken.values()))
    lost = wanted - torch.symbols.union(*(symbols.exported for symbols in taken.values()))
    if lost:
        rest = (path for path, facts in elfs.items() if path not in taken and facts.kind == "shared")
        lost = lost.difference(*(read(path).exported for path in rest))
    needed = {soname for path in taken for soname in elfs[path].needed if is_torch_library(soname)}
    absent = needed - torch.libraries - {path.rpartition("/")[2] for path in elfs}
    return TorchMatch(
        origin=torch.origin,
        version=torch.version,
        symbols=len(wanted),
        missing=_missing(lost, taken, torch),
        absent={soname: tuple(path for path in taken if soname in elfs[path].needed) for soname in sorted(absent)},
        other_machine=tuple(sorted(others)),
    )


def _missing(lost: frozenset[bytes], taken: Mapping[str, Symbols], torch: TorchExports) -> tuple[MissingSymbol, ...]:
    """Each lost symbol with its users, and what torch has in its place."""
    shown = sorted(lost)[:_MAX_READ]
    families = {symbol: family for symbol in shown if (family := _family(symbol))}
    instead: dict[bytes, list[str]] = {family: [] for family in families.values()}
    for symbol in torch.symbols if families else ():
        found = instead.get(_family(symbol))
        if found is not None and len(found) < _MAX_INSTEAD:
            found.append(demangle(symbol.decode()))
    return tuple(
        MissingSymbol(
            symbol=(name := symbol.decode("utf-8", "backslashreplace")),
            text=demangle(name) if number < _MAX_READ else name,
            files=tuple(path for path, symbols in taken.items() if symbol in symbols.undefined),
            instead=tuple(sorted(instead.get(families.get(symbol, b""), []))),
        )
        for number, symbol in enumerate(sorted(lost))
    )


def _family(symbol: bytes) -> bytes:
    """The beginning of a mangled name that all overloads of a function share, where it is of plain scopes."""
    found = _SCOPES.match(symbol)
    at = found.end() if found is not None else len(symbol)
    while (number := _LENGTH.match(symbol, at)) is not None:
        at = number.end() + int(number[0])
    return symbol[: at + 1] if found is not None and symbol[at : at + 1] == b"E" else b""


def _uses_torch(facts: ElfFacts) -> bool:
    linked = any(is_torch_library(soname) for soname in facts.needed)
    return facts.dynamic and bool(linked or facts.abi.torch_cxx or facts.abi.torch_shims)
