"""Many processes that write into one index root: half of them as builds do, half as commands for finished wheels do.

``python -m support.writers OUT STORE NUMBERS ROUNDS``: one process for each number, all started at one moment. Each
adds wheels of ``demo`` whose versions nobody else has, one a round, and a wheel of a project of its own.
"""

from __future__ import annotations

import hashlib
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from axletree.app.index_root import Addition, StagedFile, add_to_roots, index_line, staging
from axletree.app.publish import publish
from axletree.core.records import StageRecord
from axletree.core.trees import Entry, make_tree
from axletree.core.values import Digest, Key, StageId
from axletree.package.index import render_index
from axletree.package.wheel.info import WheelInfo
from axletree.package.wheel.metadata import create_metadata
from axletree.package.wheel.writer import write_wheel
from axletree.plan.actions.listing import ListedFile, ListingFacts
from axletree.store.store import Store
from support.requests import ingredients_of

if TYPE_CHECKING:
    from axletree.package.index import IndexFile


ROOT = "torch2.13-cpu"
"""The index root, below the output folder."""


def make_wheel(folder: Path, project: str, version: str) -> StagedFile:
    """A wheel in a folder."""
    path = folder / f"{project}-{version}-py3-none-any.whl"
    with path.open("wb") as sink:
        written = write_wheel(
            sink,
            [],
            metadata=create_metadata(name=project, version=version),
            wheel_info=WheelInfo(tags=("py3-none-any",), purelib=True),
        )
    data = path.read_bytes()
    digest = Digest(hashlib.sha256(data).hexdigest())
    return StagedFile(path=path, size=len(data), sha256=digest, metadata=written.metadata)


def record_of(store: Store, wheels: list[StagedFile], lines: list[IndexFile]) -> StageRecord:
    """What an index stage of a build makes of wheels."""
    written = {each.path.name: each.path.read_bytes() for each in wheels}
    written |= {f"{each.path.name}.metadata": each.metadata for each in wheels if each.metadata is not None}
    written |= render_index(lines)
    entries = [Entry(path=path, blob=store.put_bytes(data), size=len(data)) for path, data in written.items()]
    files = tuple(ListedFile(filename=each.path.name, sha256=each.sha256, size=each.size) for each in wheels)
    return StageRecord(
        stage=StageId(f"index:{ROOT}"),
        key=Key("0" * 64),
        tree=store.put_tree(make_tree(entries)),
        ingredients=ingredients_of(),
        facts=msgspec.to_builtins(ListingFacts(kind="index", root=ROOT, files=files)),
    )


def write(out: Path, store: Store, number: int, round_: int) -> None:
    """Add the wheels of one round: a build knows the root as a part of its output folder, the others by itself."""
    root = out / ROOT
    with staging(root) as folder:
        wheels = [make_wheel(folder, "demo", f"{number}.{round_}"), make_wheel(folder, f"own{number}", f"1.{round_}")]
        if number % 2:
            add_to_roots([root], lambda: [Addition(out=root, staged=wheels)], durable=False, note=lambda _: None)
        else:
            record = record_of(store, wheels, [index_line(each) for each in wheels])
            publish(out, [record], store)


def main(out: Path, store: Store, numbers: int, rounds: int) -> int:
    """Start them all, and wait for them; returns how many failed."""
    ready, go = os.pipe()
    children = []
    for number in range(numbers):
        child = os.fork()
        if not child:
            os.close(go)
            os.read(ready, 1)  # until the other end is closed
            code = 1
            try:
                for round_ in range(rounds):
                    write(out, store, number, round_)
                code = 0
            finally:
                sys.stderr.flush()
                os._exit(code)
        children.append(child)
    sys.stdout.write("go\n")
    sys.stdout.flush()
    os.close(go)
    return sum(os.waitpid(child, 0)[1] != 0 for child in children)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), Store.open(Path(sys.argv[2])), int(sys.argv[3]), int(sys.argv[4])))
