"""The mutable folder that a stage may keep between runs: source and build state, for incremental builds.

A fast path only: with the workspace deleted the stage gives the same result. Files of the source keep their times as
long as their content is the same, so that make and ninja see exactly what changed.
"""

from __future__ import annotations

import hashlib
import os
from contextlib import contextmanager
from typing import TYPE_CHECKING

import msgspec

from axletree.core.trees import Tree, decode_tree, encode_tree

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from axletree.core.trees import Entry
    from axletree.execute.context import Context

_LISTING = "source.json"


@contextmanager
def open_workspace(context: Context) -> Iterator[tuple[Path | None, Path | None]]:
    """The stage's source folder and its workspace, either of which may be absent.

    Only one process at a time uses a workspace; another waits. An attempt that was killed inside leaves it as it is:
    what it half wrote is for the build tool to notice, as after any interrupted build.
    """
    has_source = "source" in context.request.inputs
    if not context.request.local.get("workspace"):
        yield (context.materialise("source", "source") if has_source else None), None
        return
    name = hashlib.sha256(context.request.local["workspace"].encode()).hexdigest()[:24]
    folder = context.store.workspaces / name
    with context.store.lock(f"workspace-{name}"):
        state = folder / "state"
        state.mkdir(parents=True, exist_ok=True)
        os.utime(folder)  # it is in use: `store gc` goes by that
        source = folder / "source"
        if has_source:
            _sync(context, source, folder / _LISTING)
        yield (source if has_source else None), state


def _sync(context: Context, source: Path, listing: Path) -> None:
    """Make the folder hold the source's tree, touching only what differs from what was laid there before."""
    wanted = context.tree("source")
    before = _read(listing)
    listing.unlink(missing_ok=True)  # until the folder is right again, nothing vouches for it
    if before is None or not source.exists():
        _remove(source)
        context.store.materialise(context.request.inputs["source"], source)
    else:
        _update(context, source, before, wanted)
    listing.write_bytes(encode_tree(wanted))


def _read(listing: Path) -> Tree | None:
    try:
        return decode_tree(listing.read_bytes())
    except OSError:
        return None


def _update(context: Context, source: Path, before: Tree, wanted: Tree) -> None:
    old = {entry.path: entry for entry in before.entries}
    new = {entry.path: entry for entry in wanted.entries}
    for path in old.keys() - new.keys():
        (source / path).unlink(missing_ok=True)
    changed = [entry for path, entry in new.items() if old.get(path) != entry or not (source / path).exists()]
    if not changed:
        return
    part = context.store.put_tree(msgspec.structs.replace(wanted, entries=tuple(changed)))
    fresh = context.work / "changed"
    context.store.materialise(part, fresh)
    for entry in changed:
        _place(fresh, source, entry)


def _place(fresh: Path, source: Path, entry: Entry) -> None:
    target = source / entry.path
    target.parent.mkdir(parents=True, exist_ok=True)
    if entry.kind == "directory":
        target.mkdir(exist_ok=True)
    else:
        (fresh / entry.path).replace(target)


def _remove(folder: Path) -> None:
    from axletree.store.disk import remove_tree  # noqa: PLC0415

    if folder.exists():
        remove_tree(folder)
