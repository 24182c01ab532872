"""What it costs a stage to see its store at a fixed path, and to enter an image.

``python benchmarks/bench_rooms.py STORE IMAGE_ID [--runs N]``. STORE is a store that has the image, such as one made by
`axletree image make bookworm`. Prints a Markdown table. Target: at most 50 ms more with an image than without a room.

Each run forks, enters the kill domain of a stage, and starts `/bin/true` there.
"""

from __future__ import annotations

import argparse
import subprocess
from functools import partial
from pathlib import Path
from statistics import median

from measure import machine_line, measure

from axletree.host.room import STORE, entrance, prepare_image
from axletree.host.sandbox import Isolation, run_isolated

_TRUE = "/bin/true"


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("store", type=Path)
    arguments.add_argument("image")
    arguments.add_argument("--runs", type=int, default=25)
    options = arguments.parse_args()
    (image,) = (path.name for path in (options.store / "images").glob(f"{options.image}*"))
    print(machine_line())
    print("\n| | ms, best | ms, median | CPU ms, best |\n| --- | --- | --- | --- |")
    kinds: dict[str, tuple[Path | None, str | None]] = {
        "kill domain alone": (None, None),
        "with a room": (options.store, None),
        "with a room and an image": (options.store, image),
    }
    for name, (store, entered) in kinds.items():
        used = [measure(partial(_stage, store, entered)) for _ in range(options.runs)]
        walls, cpu = [each.wall * 1e3 for each in used], min(each.cpu for each in used) * 1e3
        print(f"| {name} | {min(walls):.1f} | {median(walls):.1f} | {cpu:.1f} |")


def _stage(store: Path | None, image: str | None) -> None:
    def body(_: Isolation) -> int:
        if image is not None:
            prepare_image(STORE / "images" / image / "root")
        return subprocess.run([_TRUE], preexec_fn=entrance(Path("/")), check=False).returncode

    if run_isolated(body, network=False, store=store) != 0:
        raise RuntimeError("the stage could not run")


if __name__ == "__main__":
    main()
