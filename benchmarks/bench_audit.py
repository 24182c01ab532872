"""Auditing the official torch wheel for CUDA and its unpacked tree, against ``auditwheel show``, pyelftools and LIEF.

``python benchmarks/bench_audit.py [WHEEL] [--runs N] [--peer-runs N]``. Without an argument: torch 2.14.1, which pip
finds, or which the tests have kept. Prints two Markdown tables of CPU seconds, wall seconds and peak memory, each
process with its start-up. Targets: the wheel under 1.5 CPU seconds and 80 MB; the tree under 60 ms beyond start-up.
The tables name the peers that are not installed. Needs room for the unpacked libraries (1 GB) in ``TMPDIR``.

No audit can be cheaper than the first row: inflate each member, check its size and CRC, nothing else.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import shutil
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

import inputs
from measure import Usage, best, machine_line, measure

from axletree.host.code_files import find_code

if TYPE_CHECKING:
    from collections.abc import Sequence

AXLETREE = str(Path(sys.executable).with_name("axletree"))

INFLATE = """
import sys
from axletree.binary.zip.members import iter_member
from axletree.binary.zip.directory import read_directory
from axletree.host.archive import map_file
from pathlib import Path
view = map_file(Path(sys.argv[1]))
for entry in read_directory(view):
    for chunk in iter_member(view, entry):
        pass
"""
LIEF_WHEEL = """
import sys, zipfile
import lief
config = lief.ELF.ParserConfig()
config.parse_relocations = config.parse_symtab_symbols = config.parse_notes = config.parse_overlay = False
with zipfile.ZipFile(sys.argv[1]) as archive:
    for name in archive.namelist():
        data = archive.read(name)
        if data[:4] == b"\\x7fELF":
            found = lief.ELF.parse(data, config)
            needed = [entry.name for entry in found.dynamic_entries if isinstance(entry, lief.ELF.DynamicEntryLibrary)]
"""
OUR_TREE = """
import sys
from pathlib import Path
from axletree.host.code_files import find_code
from axletree.package.wheel.tree import scan_tree
if len(sys.argv) > 2:
    print(len(scan_tree(find_code(Path(sys.argv[1]))).elfs))
"""
PYELFTOOLS = """
import sys
from pathlib import Path
from elftools.elf.dynamic import DynamicSection
from elftools.elf.elffile import ELFFile
from elftools.elf.gnuversions import GNUVerNeedSection
if len(sys.argv) > 2:
    for path in sorted(Path(sys.argv[1]).rglob("*")):
        if path.is_file() and path.open("rb").read(4) == b"\\x7fELF":
            with path.open("rb") as file:
                for section in ELFFile(file).iter_sections():
                    if isinstance(section, DynamicSection):
                        needed = [tag.needed for tag in section.iter_tags() if tag.entry.d_tag == "DT_NEEDED"]
                    elif isinstance(section, GNUVerNeedSection):
                        versions = [[aux.name for aux in parts] for _, parts in section.iter_versions()]
                    elif SYMBOLS and section.name == ".dynsym":
                        undefined = [one.name for one in section.iter_symbols() if one["st_shndx"] == "SHN_UNDEF"]
"""
LIEF_TREE = """
import sys
from pathlib import Path
import lief
if len(sys.argv) > 2:
    for path in sorted(Path(sys.argv[1]).rglob("*")):
        if path.is_file() and path.open("rb").read(4) == b"\\x7fELF":
            found = lief.ELF.parse(str(path)).dynamic_entries
            needed = [entry.name for entry in found if isinstance(entry, lief.ELF.DynamicEntryLibrary)]
"""


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("wheel", nargs="?", type=Path)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--peer-runs", type=int, default=1)
    options = parser.parse_args()
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    wheel = options.wheel or inputs.wheel(inputs.CUDA)
    print(machine_line())
    print(f"\n{wheel.name}, {wheel.stat().st_size / 1e6:.0f} MB; least CPU of {options.runs} runs ", end="")
    print(f"({options.peer_runs} for peers), each a process of its own\n", flush=True)
    _wheel_table(wheel, options.runs, options.peer_runs)
    with tempfile.TemporaryDirectory(prefix="axletree-bench-", dir=os.environ.get("TMPDIR", "/var/tmp")) as folder:
        count = _unpack_libraries(wheel, Path(folder))
        print(f"\nIts {count} ELF files, unpacked; the second column is without the process's start-up and imports\n")
        _tree_table(folder, options.runs, options.peer_runs)


def _wheel_table(wheel: Path, runs: int, peer_runs: int) -> None:
    python = [sys.executable, "-c"]
    rows: dict[str, tuple[list[str], int] | None] = {
        "inflate and check each member": ([*python, INFLATE, str(wheel)], runs),
        "`axletree audit`": ([AXLETREE, "audit", str(wheel)], runs),
        "`axletree audit --hashes`": ([AXLETREE, "audit", "--hashes", str(wheel)], runs),
        "`auditwheel show`": _installed(
            "auditwheel", [sys.executable, "-m", "auditwheel", "show", str(wheel)], peer_runs
        ),
        "LIEF, NEEDED only": _installed("lief", [*python, LIEF_WHEEL, str(wheel)], peer_runs),
    }
    print("| work | CPU s | wall s | peak memory |")
    print("| --- | ---: | ---: | ---: |")
    for label, row in rows.items():
        if row is None:
            print(f"| {label} | not installed | | |")
            continue
        usage = _best_of(*row)
        print(f"| {label} | {usage.cpu:.2f} | {usage.wall:.2f} | {usage.memory} |", flush=True)


def _tree_table(folder: str, runs: int, peer_runs: int) -> None:
    rows = {
        "axletree: all facts (those, GPU code, build-ids, segments, sections)": (OUR_TREE, "axletree", runs),
        "pyelftools: NEEDED and symbol versions": ("SYMBOLS = False" + PYELFTOOLS, "elftools", runs),
        "pyelftools: undefined symbols as well": ("SYMBOLS = True" + PYELFTOOLS, "elftools", peer_runs),
        "LIEF: NEEDED": (LIEF_TREE, "lief", peer_runs),
    }
    print("| work | CPU s | beyond start-up | peak memory |")
    print("| --- | ---: | ---: | ---: |")
    for label, (program, module, count) in rows.items():
        if importlib.util.find_spec(module) is None:
            print(f"| {label} | not installed | | |")
            continue
        command = [sys.executable, "-c", program, folder]
        start, usage = _best_of(command, count), _best_of([*command, "read"], count)
        print(f"| {label} | {usage.cpu:.3f} | {usage.cpu - start.cpu:.3f} | {usage.memory} |", flush=True)


def _installed(module: str, command: list[str], runs: int) -> tuple[list[str], int] | None:
    return (command, runs) if importlib.util.find_spec(module) is not None else None


def _best_of(command: Sequence[str], runs: int) -> Usage:
    quiet = ["/bin/sh", "-c", '"$@" >/dev/null 2>&1', "sh", *command]
    return best([measure(quiet) for _ in range(runs + 1)][1:])  # the first fills caches


def _unpack_libraries(wheel: Path, folder: Path) -> int:
    """Put the ELF files of a wheel into a folder."""
    with zipfile.ZipFile(wheel) as archive:
        for info in archive.infolist():
            with archive.open(info) as member:
                head = member.read(4)
                if head == b"\x7fELF":
                    path = folder / info.filename
                    path.parent.mkdir(parents=True, exist_ok=True)
                    with path.open("wb") as file:
                        file.write(head)
                        shutil.copyfileobj(member, file, 1 << 20)
    return sum(1 for _ in find_code(folder))


if __name__ == "__main__":
    main()
