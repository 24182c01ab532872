"""Unpacking an image of a Debian system, against ``umoci unpack`` and ``podman load``.

``python benchmarks/bench_images.py [LAYOUT] [--runs N]``. LAYOUT is an OCI layout with one image; by default, Debian 12
with a C library to compile against, which the tests create once and keep. Prints a Markdown table. Needs umoci, skopeo,
podman and runc. Target: at most the CPU time of ``umoci unpack``.

Each tool gets the same layers, compressed with gzip, and a new folder. Axletree also copies the layers, checks them,
and brings all of it to the disk. The kernel's own work after a tool has ended is in no column.
"""

from __future__ import annotations

import argparse
import os
import shutil
import tempfile
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import inputs
from measure import Usage, best, machine_line, measure

from axletree.app.images import make_image
from axletree.recipe.images import Image
from axletree.store import Store

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

_OURS, _UMOCI = "`axletree image make`, as a library", "`umoci unpack`"


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("layout", nargs="?", type=Path)
    arguments.add_argument("--runs", type=int, default=3)
    options = arguments.parse_args()
    source = options.layout or inputs.debian_layout()
    with tempfile.TemporaryDirectory(prefix="axl-", dir=os.environ.get("TMPDIR", "/var/tmp")) as name:
        base = Path(name)
        layout = base / "layout"
        shutil.copytree(source, layout)
        _run(["skopeo", "copy", "--quiet", f"oci:{layout}", f"oci:{base}/tagged:x"])
        _run(["skopeo", "copy", "--quiet", f"oci:{layout}", f"oci-archive:{base}/archive.tar:x"])
        first = Store.open(base / "first")
        _run(partial(make_image, first, "x", Image(from_=f"oci:{layout}"), None, folder=base))
        record = first.list_images()[0].record
        print(machine_line())
        packed = sum(path.stat().st_size for path in (layout / "blobs/sha256").iterdir())
        print(
            f"\n{record.title}: {record.files} files, {record.size / 1e6:.0f} MB, {len(record.layers)} layer, "
            f"compressed {packed / 1e6:.0f} MB; best of {options.runs} by CPU time\n",
            flush=True,
        )
        rows: dict[str, list[Usage]] = {}
        for number in range(options.runs):
            for label, work in _work(base, number):
                os.sync()
                rows.setdefault(label, []).append(measure(work))
    _print_table(rows)


def _work(base: Path, number: int) -> Iterator[tuple[str, Callable[[], object] | Sequence[str]]]:
    store = Store.open(base / f"store-{number}")
    yield _OURS, partial(make_image, store, "x", Image(from_=f"oci:{base}/tagged:x"), None, folder=base)
    yield _UMOCI, ["umoci", "unpack", "--image", f"{base}/tagged:x", f"{base}/bundle-{number}"]
    storage = base / f"p{number}"
    places = ["--root", f"{storage}/root", "--runroot", f"{storage}/run", "--tmpdir", f"{storage}/tmp"]
    podman = ["podman", *places, "--storage-driver", "vfs", "--runtime", "runc", "--cgroup-manager", "cgroupfs"]
    yield "`podman load`", [*podman, "load", "-q", "-i", f"{base}/archive.tar"]


def _run(work: Callable[[], object] | Sequence[str]) -> None:
    """In a process of its own: its memory would count for those to come."""
    measure(work)


def _print_table(rows: dict[str, list[Usage]]) -> None:
    chosen = {label: best(several) for label, several in rows.items()}
    print("| | CPU s | of umoci's | wall s | peak memory |\n|---|---:|---:|---:|---:|")
    for label, usage in chosen.items():
        print(
            f"| {label} | {usage.cpu:.2f} | {usage.cpu / chosen[_UMOCI].cpu:.0%} | {usage.wall:.2f} | {usage.memory} |"
        )


if __name__ == "__main__":
    main()
