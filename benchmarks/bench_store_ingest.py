"""Putting a large tree into the store, against ``cp -r`` of it and one pass of SHA-256 over it.

``python benchmarks/bench_store_ingest.py [WHEEL OR FOLDER] [--runs N]``. Without an argument: the largest torch wheel
in pip's find-links folders, else a made-up tree of 13,000 files and 1.14 GB. Prints a Markdown table; the target is at
most twice the CPU time of ``cp -r`` plus one hash pass, for a copy and for an adoption alike. Needs room for six
copies a run in ``TMPDIR``, on a disk from which nothing large was deleted in the last five minutes.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import random
import shlex
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

from measure import Usage, best, machine_line, measure

from axletree.store import Store

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

_FILES = 13_000
_SIZE = 1_140_000_000
_LARGE = 12
"""Files of the made-up tree that hold nine tenths of its bytes, as the libraries of a real one do."""


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("source", nargs="?", type=Path)
    arguments.add_argument("--runs", type=int, default=2)
    options = arguments.parse_args()
    with tempfile.TemporaryDirectory(prefix="axletree-bench-", dir=os.environ.get("TMPDIR", "/var/tmp")) as folder:
        base = Path(folder)
        tree, name = _tree(options.source or _torch_wheel(), base)
        files = [path for path in tree.rglob("*") if path.is_file()]
        size = sum(path.stat().st_size for path in files)
        print(machine_line())
        print(f"\n{name}: {len(files)} files, {size / 1e9:.2f} GB; best of {options.runs} by CPU time\n", flush=True)
        _sha256_pass(tree)  # all of it in the page cache, for everybody
        usages: dict[str, list[Usage]] = {}
        for number in range(options.runs):
            for label, usage in _measure_once(tree, base / f"run{number}", size):
                usages.setdefault(label, []).append(usage)
    _print_table({label: best(several) for label, several in usages.items()})


def _measure_once(tree: Path, base: Path, size: int) -> Iterator[tuple[str, Usage]]:
    """Every row once, each into a new folder and from the same start.

    What was written before is on the disk, and there are free pages that have memory behind them: on a virtual machine
    fresh ones cost several times as much to fill, and whoever came first would pay. Nothing is deleted in between: ext4
    makes whoever creates files within minutes of that search for inodes that were not freed just now, which more than
    doubles the time of ``cp``.
    """

    def run(work: Callable[[], object] | Sequence[str]) -> Usage:
        os.sync()
        measure(lambda: _touch_memory(size * 3 // 2))
        return measure(work)

    base.mkdir()
    copy, adopting, copying = base / "copy", base / "adopting", base / "copying"
    yield "`cp -r`", run(["cp", "-r", str(tree), str(copy)])
    # What the store does as well: nothing is published before it is on the disk. That is work of the one who waits.
    synced = shlex.join(["cp", "-r", str(tree), str(base / "synced")]) + " && " + shlex.join(["sync", "-f", str(base)])
    yield "`cp -r`, then `sync -f`", run(["sh", "-c", synced])
    yield "one SHA-256 pass", run(lambda: _sha256_pass(tree))
    yield "ingest, copying", run(lambda: Store.open(copying).ingest(tree))
    yield "ingest, adopting", run(lambda: Store.open(adopting).ingest(copy, adopt=True))
    yield "ingest again, nothing new", run(lambda: Store.open(copying).ingest(tree))
    digest = Store.open(copying).ingest(tree)
    yield "materialise, copying", run(lambda: Store.open(copying).materialise(digest, base / "out"))
    yield "materialise, linking", run(lambda: Store.open(copying).materialise(digest, base / "linked", link=True))


def _print_table(rows: dict[str, Usage]) -> None:
    target = 2 * rows["`cp -r`"].cpu + rows["one SHA-256 pass"].cpu
    print("| | CPU s | wall s | peak memory | of the target |\n|---|---|---|---|---|")
    for label, usage in rows.items():
        share = f"{usage.cpu / target:.0%}" if label.startswith("ingest") else ""
        print(f"| {label} | {usage.cpu:.2f} | {usage.wall:.2f} | {usage.memory} | {share} |")
    print(f"| *target: twice `cp -r` plus one SHA-256 pass* | {target:.2f} | | | |")


def _touch_memory(size: int) -> None:
    pages = bytearray(size)
    for at in range(0, size, 4096):
        pages[at] = 1


def _sha256_pass(tree: Path) -> None:
    buffer = memoryview(bytearray(1 << 18))
    for folder, _, names in os.walk(tree):
        for name in names:
            with open(f"{folder}/{name}", "rb", buffering=0) as file:  # noqa: PTH123 (as lean as it gets)
                state = hashlib.sha256()
                while count := file.readinto(buffer):
                    state.update(buffer[:count])
                state.hexdigest()


def _tree(source: Path | None, base: Path) -> tuple[Path, str]:
    """The folder to measure with, and what it is."""
    if source is None:
        measure(lambda: _make_up(base / "tree"))  # in a process of its own: its memory would count for those to come
        return base / "tree", "made-up tree"
    if source.is_dir():
        return source, source.name
    with zipfile.ZipFile(source) as wheel:
        wheel.extractall(base / "tree")
    return base / "tree", source.name


def _torch_wheel() -> Path | None:
    """The largest torch wheel in the folders that pip is configured to find wheels in."""
    command = [sys.executable, "-m", "pip", "config", "list"]
    listing = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    folders = {os.environ.get("PIP_FIND_LINKS", "")}
    for line in listing.splitlines():
        key, _, value = line.partition("=")
        if key.endswith("find-links"):
            folders.update(shlex.split(value.strip("'\"")))
    found = [path for folder in folders if folder for path in Path(folder).glob("torch-*.whl")]
    return max(found, key=lambda path: path.stat().st_size, default=None)


def _make_up(tree: Path) -> None:
    """A tree with the shape of an unpacked GPU framework: a few huge libraries, thousands of small headers."""
    draw = random.Random(0)
    large = _SIZE * 9 // 10 // _LARGE
    small = (_SIZE - large * _LARGE) // (_FILES - _LARGE)
    for number in range(_FILES):
        path = tree / f"package{number % 40}/part{number % 7}/file{number}"
        path.parent.mkdir(parents=True, exist_ok=True)
        size = large if number < _LARGE else draw.randrange(small * 2)
        half = draw.randbytes(size // 2)
        path.write_bytes(half + b"compressible text " * (size // 36 + 1))


if __name__ == "__main__":
    main()
