"""Packing and retagging a large wheel, against ``wheel pack`` and ``wheel tags``.

``python benchmarks/bench_pack.py [WHEEL] [--runs N]``. Without an argument: the official torch 2.14.1 wheel for CUDA,
which pip finds, or which the tests have kept. Prints Markdown tables. Targets: a third of the CPU time of
``wheel pack`` for wheels of about that size, and 1.6 times faster again with two threads. Needs room for four copies
of the wheel's content in ``TMPDIR``.
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

from axletree.app.pack import pack
from axletree.app.retag import retag
from axletree.app.unpack import unpack
from axletree.binary.zip.deflate import COMPRESSOR, LEVEL
from axletree.package.wheel.retag import Wishes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

_PEER = (sys.executable, "-W", "ignore", "-m", "wheel")


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("wheel", nargs="?", type=Path)
    arguments.add_argument("--runs", type=int, default=1)
    options = arguments.parse_args()
    source = options.wheel or inputs.wheel(inputs.CUDA)
    with tempfile.TemporaryDirectory(prefix="axletree-bench-", dir=os.environ.get("TMPDIR", "/var/tmp")) as name:
        base = Path(name)
        measure(lambda: unpack(source, out=base))  # in a process of its own: its memory would count for those to come
        tree = next(path for path in base.iterdir() if path.is_dir())
        files = [path for path in tree.rglob("*") if path.is_file()]
        print(machine_line())
        print(
            f"\n{source.name}: {len(files)} files, {sum(path.stat().st_size for path in files) / 1e9:.2f} GB, "
            f"as a wheel {source.stat().st_size / 1e6:.1f} MB; {COMPRESSOR}; best of {options.runs} by CPU time\n",
            flush=True,
        )
        rows: dict[str, list[tuple[Usage, int]]] = {}
        for _ in range(options.runs):
            for label, usage, size in _measure_once(source, tree, base / "out"):
                rows.setdefault(label, []).append((usage, size))
    _print_table(rows)


def _measure_once(source: Path, tree: Path, out: Path) -> Iterator[tuple[str, Usage, int]]:
    """Each row once: what was done, what it cost, and the bytes of the wheel."""

    def run(label: str, work: Callable[[], object] | Sequence[str]) -> tuple[str, Usage, int]:
        shutil.rmtree(out, ignore_errors=True)
        out.mkdir()
        os.sync()
        usage = measure(work)
        return label, usage, sum(path.stat().st_size for path in out.glob("*.whl"))

    yield run("`wheel pack`", [*_PEER, "pack", str(tree), "--dest-dir", str(out)])
    for threads in (1, 2):
        label = f"{threads} thread{'s' * (threads > 1)}"
        yield run(f"pack, {label}, without reading back", partial(pack, tree, out=out, threads=threads, verify=False))
        yield run(f"pack, {label}", partial(pack, tree, out=out, threads=threads))
    yield run("pack `--from` the wheel, 1 thread", partial(pack, tree, out=out, older=source))
    tagged = out.parent / "tagged"
    tagged.mkdir()
    copy = tagged / source.name  # `wheel tags` writes beside the wheel
    shutil.copyfile(source, copy)
    label, usage, _ = run("`wheel tags`", [*_PEER, "tags", "--build", "1", str(copy)])
    copy.unlink()
    yield label, usage, sum(path.stat().st_size for path in tagged.glob("*.whl"))
    shutil.rmtree(tagged)
    yield run("retag, without reading back", partial(retag, source, Wishes(build="1"), out=out, verify=False))
    yield run("retag, 1 thread", partial(retag, source, Wishes(build="1"), out=out))


def _print_table(rows: dict[str, list[tuple[Usage, int]]]) -> None:
    chosen = {label: best([usage for usage, _ in several]) for label, several in rows.items()}
    sizes = {label: several[0][1] for label, several in rows.items()}
    print(f"Level {LEVEL}; `wheel` uses zlib at level 6.\n")
    print(
        "| | CPU s | of the peer's | wall s | peak memory | wheel, MB | of the peer's |\n|---|---|---|---|---|---|---|"
    )
    for label, usage in chosen.items():
        peer = "`wheel pack`" if label.startswith(("pack", "`wheel pack")) else "`wheel tags`"
        print(
            f"| {label} | {usage.cpu:.2f} | {usage.cpu / chosen[peer].cpu:.0%} | {usage.wall:.2f} | {usage.memory} "
            f"| {sizes[label] / 1e6:.1f} | {sizes[label] / sizes[peer]:.1%} |"
        )
    for kind in (", without reading back", ""):
        one, two = chosen[f"pack, 1 thread{kind}"], chosen[f"pack, 2 threads{kind}"]
        print(f"\nTwo threads{kind}: {one.wall / two.wall:.2f} times as fast as one.")


if __name__ == "__main__":
    main()
