"""Writing a conda package from a large tree, against py-rattler-build and conda-package-handling.

``python benchmarks/bench_conda.py [WHEEL OR FOLDER] [--levels 1 9] [--threads N] [--runs N]``. Without an argument: the
largest torch CPU wheel in pip's find-links folders, unpacked. Prints a Markdown table; the target is a fifth of the
wall time of py-rattler-build's ``assemble_package`` at the same level. uv installs py-rattler-build into a folder for
the time of the run, if it can't be imported. Needs room for the tree and a package for each row in ``TMPDIR``.

What the rows do beside compressing: ours hashes each file, writes ``info/``, syncs the file and reads it back, checking
every hash; py-rattler-build copies the tree, hashes, and writes ``info/``; conda-package-handling neither hashes nor
writes ``info/``, and its stream is compressed by one thread more for each of ``--threads``.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import inputs
from measure import Usage, best, machine_line, measure

from axletree.host.conda import read_conda, write_conda_file
from axletree.package.conda.check import check_conda
from axletree.package.conda.model import CondaFile, CondaPackage
from axletree.package.conda.writer import write_conda

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

_PACKAGE = CondaPackage(name="torch", version="2.13.0", build="cpu_0", subdir="linux-64")
_SITE = "lib/python3.11/site-packages"
_EPOCH = 1_700_000_000
_RATTLER = """
import sys, datetime, rattler_build
files, out, level, threads = sys.argv[1:]
rattler_build.assemble_package(
    "torch", "2.13.0", "linux-64", "cpu_0", out, files_dir=files, compression_level=int(level),
    archive_type=rattler_build.ArchiveType.Conda, compression_threads=int(threads),
    timestamp=datetime.datetime.fromtimestamp(1700000000, datetime.timezone.utc), detect_prefix=False,
)
"""
_HANDLING = """
import sys
from conda_package_handling import api
files, out, level, threads = sys.argv[1:]
out += "/torch-2.13.0-cpu_0.conda"
api.create(files, None, out, compression_level=int(level), compression_threads=int(threads))
"""


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("source", nargs="?", type=Path)
    arguments.add_argument("--levels", type=int, nargs="+", default=[1, 9])
    arguments.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    arguments.add_argument("--runs", type=int, default=1)
    options = arguments.parse_args()
    with tempfile.TemporaryDirectory(prefix="axletree-bench-", dir=os.environ.get("TMPDIR", "/var/tmp")) as folder:
        base = Path(folder)
        root = _tree(options.source or inputs.wheel(inputs.CPU), base / "tree")
        environ = _peer(base / "peer")
        files = [path for path in root.rglob("*") if path.is_file()]
        size = sum(path.stat().st_size for path in files)
        print(machine_line())
        what = f"{len(files)} files, {size / 1e6:.0f} MB, {options.threads} threads"
        print(f"\n{what}; best of {options.runs} by CPU time\n")
        measure(lambda: _read(files))  # all of it in the page cache, for everybody
        print("| level | writer | wall s | CPU s | peak memory | package |\n|---|---|---|---|---|---|", flush=True)
        for level in options.levels:
            _rows(root, base, level, options, environ)


def _rows(root: Path, base: Path, level: int, options: argparse.Namespace, environ: dict[str, str]) -> None:
    measured: dict[str, list[Usage]] = {}
    sizes: dict[str, int] = {}
    for number in range(options.runs):
        for label, work in _writers(root, level, options.threads, environ):
            out = base / f"{level}-{number}-{label.split()[0].strip('`')}-{len(sizes)}"
            out.mkdir()
            os.sync()
            measured.setdefault(label, []).append(measure(work(out)))
            made = next(out.rglob("*.conda"))
            sizes[label] = made.stat().st_size
            if label == "axletree":
                assert check_conda(read_conda(made)) == ()
            shutil.rmtree(out)
    for label, usages in measured.items():
        usage = best(usages)
        row = (level, label, f"{usage.wall:.1f}", f"{usage.cpu:.1f}", usage.memory, f"{sizes[label] / 1e6:.1f} MB")
        print("| " + " | ".join(map(str, row)) + " |", flush=True)


def _files(root: Path) -> list[CondaFile]:
    """The files of a folder, read when their turn comes."""
    found = []
    for path in sorted(root.rglob("*")):
        if path.is_file():
            status = path.stat()
            name, executable = path.relative_to(root).as_posix(), bool(status.st_mode & 0o100)
            found.append(CondaFile(path=name, data=partial(_pieces, path), size=status.st_size, executable=executable))
    return found


def _pieces(path: Path) -> Iterator[bytes]:
    with path.open("rb", buffering=0) as file:
        while data := file.read(1 << 20):
            yield data


def _writers(
    root: Path, level: int, threads: int, environ: dict[str, str]
) -> Iterator[tuple[str, Callable[[Path], Callable[[], object] | Sequence[str]]]]:
    def command(code: str, out: Path) -> Sequence[str]:
        paths = os.pathsep.join(f"{name}={value}" for name, value in environ.items()).split(os.pathsep)
        return ["env", *filter(None, paths), sys.executable, "-c", code, str(root), str(out), str(level), str(threads)]

    def ours(out: Path) -> Callable[[], object]:
        return lambda: write_conda_file(out, _PACKAGE, _files(root), epoch=_EPOCH, level=level, threads=threads)

    def unverified(out: Path) -> Callable[[], object]:
        def write() -> None:
            with (out / f"{_PACKAGE.stem}.conda").open("wb") as sink:
                write_conda(sink, _PACKAGE, _files(root), epoch=_EPOCH, level=level, threads=threads)

        return write

    yield "axletree", ours
    yield "axletree, neither synced nor read back", unverified
    yield "py-rattler-build `assemble_package`", lambda out: command(_RATTLER, out)
    yield "conda-package-handling `create`", lambda out: command(_HANDLING, out)


def _peer(folder: Path) -> dict[str, str]:
    """What to add to the environment so that py-rattler-build can be imported."""
    if importlib.util.find_spec("rattler_build") is not None:
        return {}
    program = [sys.executable, "-m", "uv", "pip", "install", "-q", "--no-deps", "--target", str(folder)]
    subprocess.run([*program, "py-rattler-build"], check=True)
    return {"PYTHONPATH": str(folder)}


def _tree(source: Path, folder: Path) -> Path:
    """A prefix to pack."""
    place = folder / _SITE
    if source.is_dir():
        shutil.copytree(source, place, symlinks=True)
    else:
        with zipfile.ZipFile(source) as wheel:
            wheel.extractall(place)
    return folder


def _read(files: Sequence[Path]) -> None:
    for path in files:
        path.read_bytes()


if __name__ == "__main__":
    main()
