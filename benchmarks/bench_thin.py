"""Thinning a CUDA library to one GPU architecture, against what NVIDIA's ``cuobjdump`` takes to list what is in it.

``python benchmarks/bench_thin.py WHEEL [--arch 90] [--member torch/lib/libtorch_cuda.so] [--cuobjdump TOOL]
[--runs N]`` with the official torch wheel for CUDA. Prints a Markdown table of CPU seconds, wall seconds and peak
memory: the decision from the library on disk, the decision and a thinned copy, and the command on the whole compressed
wheel. Below it: the library's size once deflated, before and after. Targets: the decision under 1 s and 100 MB;
357 MB -> about 81 MB. Needs room for the library twice and for a wheel in ``TMPDIR``.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import tempfile
import zipfile
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import inputs
from measure import Usage, best, machine_line, measure

from axletree.app.thin import ThinRequest, thin
from axletree.host.sources import DiskSource
from axletree.package.gpu.arch import parse_gpu
from axletree.package.gpu.read import read_file_code
from axletree.package.gpu.thin import ThinRules, thin_file

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("wheel", nargs="?", type=Path)
    arguments.add_argument("--arch", default="90")
    arguments.add_argument("--member", default="torch/lib/libtorch_cuda.so")
    arguments.add_argument("--cuobjdump", help="NVIDIA's tool; else the one on PATH, else the one of its wheel")
    arguments.add_argument("--runs", type=int, default=2)
    options = arguments.parse_args()
    options.wheel = options.wheel or inputs.wheel(inputs.CUDA)
    with tempfile.TemporaryDirectory(prefix="axletree-bench-", dir=os.environ.get("TMPDIR", "/var/tmp")) as folder:
        base = Path(folder)
        with zipfile.ZipFile(options.wheel) as archive:
            library = Path(archive.extract(options.member, base))
        print(machine_line())
        print(f"\n{options.member}, {library.stat().st_size / 1e6:.0f} MB, thinned to {options.arch}; best of ", end="")
        print(f"{options.runs} by CPU time\n")
        rows = _rows(
            options.wheel,
            library,
            base,
            arch=options.arch,
            cuobjdump=options.cuobjdump or shutil.which("cuobjdump") or _tool(),
        )
        _print_table({label: best([measure(work) for _ in range(options.runs)]) for label, work in rows.items()})
        _print_sizes(options.wheel, options.member, base / "wheels")


def _tool() -> str | None:
    path = inputs.cuobjdump()
    return None if path is None else str(path)


def _rows(
    wheel: Path, library: Path, base: Path, *, arch: str, cuobjdump: str | None
) -> dict[str, Callable[[], object] | Sequence[str]]:
    request = ThinRequest(archs=(arch,))
    rows: dict[str, Callable[[], object] | Sequence[str]] = {}
    if cuobjdump is not None:
        rows["`cuobjdump --list-elf`"] = partial(_quiet, [cuobjdump, "--list-elf", str(library)])
        rows["`cuobjdump --list-ptx`"] = partial(_quiet, [cuobjdump, "--list-ptx", str(library)])
    rows["decide what stays"] = partial(_decide, library, arch)
    rows["decide, write and prove the thinned library"] = partial(thin, library, request, out=base / "thinned")
    rows["`axletree thin --dry-run WHEEL`"] = partial(thin, wheel, request, out=None)
    rows["`axletree thin WHEEL`, 1 thread"] = partial(thin, wheel, request, out=base / "wheels")
    return rows


def _quiet(command: Sequence[str]) -> None:
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def _decide(library: Path, arch: str) -> None:
    with DiskSource(library) as source:
        file = read_file_code(source, name=library.name)
        thin_file(file.code, ThinRules(gpus=(parse_gpu(arch),)), name=library.name)


def _print_table(usages: dict[str, Usage]) -> None:
    print("| work | CPU s | wall s | peak memory |\n|---|---:|---:|---:|")
    for label, usage in usages.items():
        print(f"| {label} | {usage.cpu:.2f} | {usage.wall:.2f} | {usage.memory} |")


def _print_sizes(wheel: Path, member: str, folder: Path) -> None:
    (thinned,) = folder.glob("*.whl")
    before, after = (_compressed(path, member) for path in (wheel, thinned))
    print(f"\n{member}: {before / 1e6:.1f} MB deflated -> {after / 1e6:.1f} MB", end="; ")
    print(f"wheel: {wheel.stat().st_size / 1e6:.1f} MB -> {thinned.stat().st_size / 1e6:.1f} MB")


def _compressed(path: Path, member: str) -> int:
    with zipfile.ZipFile(path) as archive:
        return archive.getinfo(member).compress_size


if __name__ == "__main__":
    main()
