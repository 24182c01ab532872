"""What it costs to compare a wheel's symbols with a torch's: exports of the torch, the match, names as C++.

``python benchmarks/bench_symbols.py [TORCH_WHEEL] [EXTENSION_WHEEL ...] [--runs N]``. Without an argument: the largest
torch wheel in pip's find-links folders. Prints a Markdown table. The target is 0.2 to 0.4 s of CPU beyond inflating
torch's libraries, which stands in the first row. Peers: ``nm -D`` and pyelftools on the unpacked libraries, ``c++filt``
on the names; each row is left out where its peer is not installed. Needs room for the unpacked libraries in ``TMPDIR``.
"""

from __future__ import annotations

import argparse
import os
import shlex
import shutil
import tempfile
import zipfile
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import inputs
from measure import best, machine_line, measure

from axletree.app.torch_symbols import exports_of_torch
from axletree.binary.cpp.demangle import demangle
from axletree.binary.zip.directory import read_directory
from axletree.binary.zip.members import iter_member
from axletree.host.archive import map_file
from axletree.package.libraries.torch_symbols import LIBRARIES, match_torch
from axletree.package.wheel.scan import scan_wheel

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

INPUTS = (inputs.CUDA, "torchvision==0.29.1", "torchvision==0.28.0")


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("wheels", nargs="*", type=Path)
    arguments.add_argument("--runs", type=int, default=3)
    options = arguments.parse_args()
    torch, *extensions = options.wheels or [
        inputs.wheel(inputs.CUDA),
        inputs.wheel("torchvision==0.29.1"),
        inputs.wheel("torchvision==0.28.0"),
    ]
    with tempfile.TemporaryDirectory(prefix="axletree-bench-", dir=os.environ.get("TMPDIR", "/var/tmp")) as folder:
        base = Path(folder)
        libraries = _unpack(torch, base)
        exports = exports_of_torch(base)
        names = sorted(name.decode() for name in exports.symbols if name.startswith(b"_Z"))
        (base / "names").write_text("\n".join(names))
        print(machine_line())
        print(f"\n{torch.name}: {len(exports.symbols)} exports, {len(names)} of them C++; best of {options.runs}\n")
        print("| | CPU s | wall s | peak memory |\n|---|---:|---:|---:|")
        for label, work in _rows(torch, extensions, base, libraries, names):
            usage = best([measure(work) for _ in range(options.runs)])
            print(f"| {label} | {usage.cpu:.2f} | {usage.wall:.2f} | {usage.memory} |", flush=True)


def _rows(
    torch: Path, extensions: list[Path], base: Path, libraries: list[Path], names: list[str]
) -> Iterator[tuple[str, Callable[[], object] | Sequence[str]]]:
    yield "inflating torch's libraries", lambda: _inflate(torch)
    yield "**exports of the wheel**", lambda: exports_of_torch(torch)
    yield "**exports of the unpacked libraries**", lambda: exports_of_torch(base)
    if shutil.which("nm"):
        command = shlex.join(["nm", "-D", "--defined-only", *map(str, libraries)])
        yield "`nm -D --defined-only` of them", ["sh", "-c", f"{command} > /dev/null"]
    yield "pyelftools, the names in `.dynsym` of them", lambda: _pyelftools(libraries)
    yield "**all C++ names as in the source**", lambda: [demangle(name) for name in names]
    if shutil.which("c++filt"):
        yield "`c++filt` of them", ["sh", "-c", f"c++filt < {shlex.quote(str(base / 'names'))} > /dev/null"]
    for path in extensions:
        yield (
            f"**{path.name.partition('-cp')[0]}: audit scan, exports of the wheel and match**",
            partial(_match, path, torch),
        )


def _inflate(torch: Path) -> None:
    buffer = map_file(torch)
    for entry in read_directory(buffer):
        if entry.name.startswith(LIBRARIES) and ".so" in entry.name:
            for _ in iter_member(buffer, entry):
                pass


def _match(path: Path, torch: Path) -> None:
    buffer = map_file(path)
    elfs = {member.path: member.facts for member in scan_wheel(buffer, filename=path.name).elfs}
    match_torch(buffer, elfs, exports_of_torch(torch), filename=path.name)


def _pyelftools(libraries: list[Path]) -> None:
    from elftools.elf.elffile import ELFFile  # noqa: PLC0415 (only here, in a process of its own)
    from elftools.elf.sections import SymbolTableSection  # noqa: PLC0415

    for path in libraries:
        with path.open("rb") as file:
            table = ELFFile(file).get_section_by_name(".dynsym")
            assert isinstance(table, SymbolTableSection)
            {symbol.name for symbol in table.iter_symbols() if symbol["st_shndx"] != "SHN_UNDEF"}


def _unpack(torch: Path, base: Path) -> list[Path]:
    with zipfile.ZipFile(torch) as wheel:
        names = [name for name in wheel.namelist() if name.startswith(LIBRARIES) and ".so" in name]
        wheel.extractall(base, names)
    return [base / name for name in names]


if __name__ == "__main__":
    main()
