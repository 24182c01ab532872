"""What splitting a wheel costs, beside copying it and beside ``wheel unpack`` and ``wheel pack``.

    python benchmarks/bench_split.py torch-2.14.1-cp311-cp311-manylinux_2_28_x86_64.whl

Each row is a process of its own, start and imports included. The wheel is in the page cache for everybody.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import inputs
from measure import Usage, best, machine_line, measure

if TYPE_CHECKING:
    from collections.abc import Iterator

_COPY = "`cp --reflink=never` of the wheel"
_PEER = "`wheel unpack`, then `wheel pack`"
_QUICK = "`axletree split --no-verify`"
_SPLIT = "`axletree split`"


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("wheel", nargs="?", type=Path)
    arguments.add_argument("--runs", type=int, default=3)
    options = arguments.parse_args()
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # a user's Python compiles a module once
    options.wheel = options.wheel or inputs.wheel(inputs.CUDA)
    print(machine_line())
    print(f"\n{options.wheel.name}: {options.wheel.stat().st_size / 1e6:.0f} MB; best of {options.runs} by CPU time\n")
    usages: dict[str, list[Usage]] = {}
    with tempfile.TemporaryDirectory(prefix="axletree-bench-", dir=os.environ.get("TMPDIR", "/var/tmp")) as folder:
        for number in range(options.runs + 1):
            for label, usage in _measure_once(options.wheel, Path(folder) / "run", peer=number <= 1):
                if number:  # the first run fills caches
                    usages.setdefault(label, []).append(usage)
    _print_table({label: best(several) for label, several in usages.items()}, usages)


def _measure_once(wheel: Path, folder: Path, *, peer: bool) -> Iterator[tuple[str, Usage]]:
    """Each row once, into a folder that is empty before; the peer, which takes long, in two rounds only."""

    def run(*commands: list[str]) -> Usage:
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        os.sync()  # what was written before is on the disk
        parts = [measure(partial(_quietly, command)) for command in commands]
        return Usage(
            cpu=sum(part.cpu for part in parts),
            wall=sum(part.wall for part in parts),
            peak_rss=max(part.peak_rss for part in parts),
        )

    split = [sys.executable, "-m", "axletree", "split", str(wheel), "--out", str(folder / "out")]
    split.append("--json")
    yield _COPY, run(["cp", "--reflink=never", str(wheel), str(folder / "copy.whl")])
    yield _QUICK, run([*split, "--no-verify"])
    yield _SPLIT, run(split)
    if peer:
        stem = "-".join(wheel.name.split("-")[:2])
        tool = [sys.executable, "-m", "wheel"]
        unpack = [*tool, "unpack", "--dest", str(folder), str(wheel)]
        yield _PEER, run(unpack, [*tool, "pack", "--dest-dir", str(folder), str(folder / stem)])


def _quietly(command: list[str]) -> None:
    """Become a command that prints nothing."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    os.execvp(command[0], command)


def _print_table(rows: dict[str, Usage], usages: dict[str, list[Usage]]) -> None:
    peer, copy = rows[_PEER], min(usage.wall for usage in usages[_COPY])
    print("| | CPU s | wall s | peak memory | less CPU than the peer | wall, in copies |\n|---|---|---|---|---|---|")
    for label, usage in rows.items():
        wall = min(each.wall for each in usages[label])
        columns = (
            f"{usage.cpu:.2f}",
            f"{wall:.2f}",
            usage.memory,
            f"{peer.cpu / usage.cpu:.1f} times",
            f"{wall / copy:.1f}",
        )
        print(f"| {label} | {' | '.join(columns)} |")


if __name__ == "__main__":
    main()
