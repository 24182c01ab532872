"""Where a stage finds its source and its inputs, and the mutable folder that it may keep between runs.

A kept workspace is a fast path only: with it deleted the stage gives the same result. So it is emptied whenever
something changed that build tools do not notice (commands, variables, tools, the environment), and files that are as
they were keep their times, so that make and ninja see exactly what changed. CMake with ninja notices all but the tools:
what it compiles with is a part of each of its steps.

A stage that continues another works in that one's workspace, where it is there, whole and of the same source; else in
its own. Both take turns by a lock.
"""

from __future__ import annotations

import hashlib
import os
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from axletree.core.trees import Entry, Tree
from axletree.core.values import key_of
from axletree.recipe.target import input_variable
from axletree.store.disk import remove_tree

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from axletree.core.records import Ingredients
    from axletree.core.values import Digest
    from axletree.execute.context import Context

_INPUT = "in:"
_NINJA_LOG = ".ninja_log"

_Stamp = tuple[int, int]
"""Time of the last change in nanoseconds, and size: what build tools go by."""


class Workplace(msgspec.Struct, frozen=True, kw_only=True):
    """The folders of one run of a stage."""

    root: Path
    """Holds all others but the one for the result; one path as long as nothing but files changes."""
    source: Path | None
    inputs: dict[str, Path]
    """Name of a stage -> its tree."""
    state: Path | None
    """What is kept for the next run; ``None`` unless the stage asked for it."""


class _Listing(msgspec.Struct, frozen=True, kw_only=True):
    """What was laid into a folder."""

    tree: Tree
    stamps: dict[str, _Stamp]


def workplace_variables(context: Context, place: Workplace) -> dict[str, str]:
    """The variables by which a stage's commands find their folders."""
    variables = {"AXLETREE_JOBS": str(context.grant.jobs)}
    if place.source is not None:
        variables["AXLETREE_SOURCE"] = str(place.source)
    if place.state is not None:
        variables["AXLETREE_WORKSPACE"] = str(place.state)
    for stage, folder in place.inputs.items():
        variables[input_variable(stage)] = str(folder)
    return variables


@contextmanager
def open_workplace(context: Context, *, settings: Any = None, alone: bool = False) -> Iterator[Workplace]:
    """Lay out the stage's source and inputs: in its own folder, or in the workspace that it keeps.

    Only one process at a time uses a workspace; another waits.

    Args:
        context: the stage's surroundings.
        settings: what a workspace must have been made with to be of use; by default all but the source and the inputs.
        alone: whether the stage works in a folder of its own even if it may continue another.
    """
    trees = _trees(context)
    wanted = key_of(_all_settings(context) if settings is None else settings)
    owner = context.request.local.continues
    if owner and not alone:
        with _taken(context, owner, trees, lambda root: _is_fit(context, root, wanted, trees["source"])) as place:
            if place is not None:
                context.log.say("going on in the kept workspace of the stage before")
                yield place
                return
    name = context.request.local.workspace
    if not name:
        for folder, digest in trees.items():
            context.store.materialise(digest, context.work / folder)
        yield _workplace(context.work, trees, state=None)
        return
    with _taken(context, name, trees, lambda root: _open(root, wanted)) as place:
        assert place is not None  # noqa: S101 (an own workspace is made where there is none)
        yield place


@contextmanager
def _taken(
    context: Context, name: str, trees: dict[str, Digest], enter: Callable[[Path], bool]
) -> Iterator[Workplace | None]:
    """Lock a workspace and lay the trees out in it; ``None`` if ``enter`` says that it is of no use."""
    short = hashlib.sha256(name.encode()).hexdigest()[:24]
    root = context.store.workspaces / short
    with context.store.lock(f"workspace-{short}"):
        if not enter(root):
            yield None
            return
        os.utime(root)  # for `store gc`: it is in use
        for folder, digest in trees.items():
            _sync(context, digest, root / folder, root / f"{folder}.json")
        state = root / "state"
        state.mkdir(exist_ok=True)
        mark = root / "running"
        mark.touch()
        try:
            yield _workplace(root, trees, state=state)
        finally:  # not reached by an attempt that is killed
            mark.unlink(missing_ok=True)


def _trees(context: Context) -> dict[str, Digest]:
    """Folder -> tree that belongs there."""
    return {
        f"in-{name.removeprefix(_INPUT)}" if name.startswith(_INPUT) else name: digest
        for name, digest in context.request.inputs.items()
        if name == "source" or name.startswith(_INPUT)
    }


def _workplace(root: Path, trees: dict[str, Digest], *, state: Path | None) -> Workplace:
    return Workplace(
        root=root,
        source=root / "source" if "source" in trees else None,
        inputs={folder.removeprefix("in-"): root / folder for folder in trees if folder != "source"},
        state=state,
    )


def _all_settings(context: Context) -> Ingredients:
    kept = {name: tree for name, tree in context.ingredients.inputs.items() if name != "source"}
    inputs = {name: tree for name, tree in kept.items() if not name.startswith(_INPUT)}
    return msgspec.structs.replace(context.ingredients, inputs=inputs)


def _open(root: Path, settings: str) -> bool:
    """Make the workspace fit for this run: empty unless it was made with the very same settings and is whole."""
    if not _is_whole(root, settings):
        remove_tree(root)
    root.mkdir(parents=True, exist_ok=True)
    (root / "settings").write_text(settings)
    return True


def _is_whole(root: Path, settings: str) -> bool:
    written = root / "settings"
    same = written.exists() and written.read_text() == settings
    # What a killed attempt half wrote, make takes for finished. Ninja's log says what is: it looks after itself.
    return same and (not (root / "running").exists() or any(root.rglob(_NINJA_LOG)))


def _is_fit(context: Context, root: Path, settings: str, source: Digest) -> bool:
    """Whether another stage can go on in a workspace: of the same settings, whole, and of the same source."""
    if not _is_whole(root, settings):
        return False
    listing = _read(root / "source.json")
    return listing is not None and listing.tree == context.store.get_tree(source)


def _sync(context: Context, digest: Digest, folder: Path, listing: Path) -> None:
    """Make the folder hold a tree, touching only what differs from it; what else a build wrote there stays."""
    wanted = context.store.get_tree(digest)
    before = _read(listing)
    listing.unlink(missing_ok=True)  # until the folder is right again, nothing vouches for it
    try:
        if before is None:
            raise FileNotFoundError(listing)
        _update(context, folder, before, wanted)
    except OSError:  # never laid out, or a file now is where a folder was: from the start
        remove_tree(folder)
        context.store.materialise(digest, folder)
    stamps = {entry.path: _stamp(folder / entry.path) for entry in wanted.entries if entry.kind != "directory"}
    listing.write_bytes(msgspec.json.encode(_Listing(tree=wanted, stamps=stamps)))


def _read(listing: Path) -> _Listing | None:
    try:
        return msgspec.json.decode(listing.read_bytes(), type=_Listing)
    except (OSError, msgspec.MsgspecError):
        return None


def _stamp(path: Path) -> _Stamp:
    status = path.lstat()
    return status.st_mtime_ns, status.st_size


def _update(context: Context, folder: Path, before: _Listing, wanted: Tree) -> None:
    old = {entry.path: entry for entry in before.tree.entries}
    new = {entry.path: entry for entry in wanted.entries}
    for path in old.keys() - new.keys():
        _remove(folder, old[path])
    changed = [entry for entry in wanted.entries if old.get(entry.path) != entry or _touched(folder, entry, before)]
    if not changed:
        return
    part = context.store.put_tree(msgspec.structs.replace(wanted, entries=tuple(changed)))
    fresh = context.work / f"changed-{folder.name}"
    context.store.materialise(part, fresh)
    for entry in changed:
        target = folder / entry.path
        target.parent.mkdir(parents=True, exist_ok=True)
        if entry.kind == "directory":
            target.mkdir(exist_ok=True)
        else:
            (fresh / entry.path).replace(target)
    remove_tree(fresh)


def _touched(folder: Path, entry: Entry, before: _Listing) -> bool:
    """Whether a build changed or removed what was laid there: the next one must find it as it was."""
    path = folder / entry.path
    if entry.kind == "directory":
        return not path.is_dir()
    return not os.path.lexists(path) or _stamp(path) != before.stamps.get(entry.path)


def _remove(folder: Path, entry: Entry) -> None:
    """Remove what is no longer in the tree, with the folders that only it was in."""
    path = folder / entry.path
    if entry.kind != "directory":
        path.unlink(missing_ok=True)
        path = path.parent
    with suppress(OSError):  # the first folder that holds something else
        while path != folder:
            path.rmdir()
            path = path.parent
