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
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from axletree.core.values import key_of
from axletree.disk import remove_tree
from axletree.execute.killed import begin, has_ninja, remove_written, was_stopped
from axletree.execute.laying import holds, laid_out, lay_out, listing_of, remove_leftovers
from axletree.execute.preparing import PREPARED
from axletree.execute.variables import MAPS
from axletree.host.files import replace_file
from axletree.host.room import WORKSPACE, can_keep, in_container, in_room, kept_at_one_place
from axletree.recipe.target import input_variable
from axletree.store.errors import disk_errors

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from axletree.core.records import Ingredients
    from axletree.core.values import Digest
    from axletree.execute.context import Context
    from axletree.store.store import Store

_INPUT = "in:"
_SOURCE = "source:"
_OTHERS = (_INPUT, _SOURCE)
"""How names of inputs begin that a stage gets beside its source."""
_SETTINGS = "settings"
_RUNNING = "running"
_OURS = frozenset({_SETTINGS, _RUNNING, MAPS, PREPARED})
"""Files of our own in a workspace, beside the listings of what is laid out."""
KEPT = "workspace"
"""File of a stage's folder with the name of its workspace, for `axletree shell`."""


class Workplace(msgspec.Struct, frozen=True, kw_only=True):
    """The folders of one run of a stage."""

    root: Path
    """Holds all others but the one for the result; one path as long as nothing but files changes."""
    source: Path | None
    inputs: dict[str, Path]
    """Name of a stage -> its tree."""
    sources: dict[str, Path] = {}
    """Name of one more source of the recipe -> its tree."""
    state: Path | None
    """What is kept for the next run; ``None`` unless the stage asked for it."""


def kept_folder(store: Store, name: str, *, fixed: bool) -> Path:
    """The folder of the store that a stage keeps; ``fixed``: the stage sees it at its fixed place.

    It is full of its own path, so one that is seen at another path is another folder.
    """
    return store.workspaces / hashlib.sha256(f"{name}\n{WORKSPACE if fixed else ''}".encode()).hexdigest()[:24]


def workplace_variables(context: Context, place: Workplace) -> dict[str, str]:
    """The variables by which a stage's commands find their folders."""
    variables = {"AXLETREE_JOBS": str(context.grant.jobs)}
    if place.source is not None:
        variables["AXLETREE_SOURCE"] = str(place.source)
    if place.state is not None:
        variables["AXLETREE_WORKSPACE"] = str(place.state)
    for stage, folder in place.inputs.items():
        variables[input_variable(stage)] = str(folder)
    for name, folder in place.sources.items():
        variables[input_variable(name, "SOURCE")] = str(folder)
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
    if owner and not alone and can_keep(kept_folder(context.store, owner, fixed=in_room())):
        with _taken(context, owner, trees, lambda root: _is_fit(context, root, wanted, trees["source"])) as place:
            if place is not None:
                context.log.say("continuing in the workspace kept by the previous stage")
                yield place
                return
    name = context.request.local.workspace
    if not name or not can_keep(kept_folder(context.store, name, fixed=in_room())):
        for folder, digest in trees.items():
            context.store.materialise(digest, context.work / folder)
        yield _workplace(context.work, trees, state=None)
        return
    with _taken(context, name, trees, lambda root: _open(context, root, wanted)) as place:
        assert place is not None  # noqa: S101 (an own workspace is made where there is none)
        yield place


@contextmanager
def _taken(
    context: Context, name: str, trees: dict[str, Digest], enter: Callable[[Path], bool]
) -> Iterator[Workplace | None]:
    """Lock a workspace and lay the trees out in it; ``None`` if ``enter`` says that it is of no use."""
    root = kept_folder(context.store, name, fixed=in_room())
    short = root.name
    with context.store.lock(f"workspace-{short}"):
        with disk_errors(context.store):
            if not enter(root):
                yield None
                return
            os.utime(root)  # for `store gc`: it is in use
            mended = _mend(context, root)
            for folder, digest in trees.items():
                lay_out(context.store, digest, root / folder, scratch=context.work / f"changed-{folder}")
            (root / "state").mkdir(exist_ok=True)
            mark = root / _RUNNING
            begin(mark)
        try:
            with kept_at_one_place(root) as seen:
                (context.work / KEPT).write_text(short)
                yield _workplace(seen, trees, state=seen / "state")
        except Exception:
            if mended:  # perhaps it relied on what was removed: better all anew than the same error for ever
                context.log.say(
                    "the stage failed after the files of a killed attempt had been removed; the next attempt "
                    "starts from scratch"
                )
                (root / _SETTINGS).unlink(missing_ok=True)
            raise
        finally:  # not reached by an attempt that is killed
            mark.unlink(missing_ok=True)


def _trees(context: Context) -> dict[str, Digest]:
    """Folder -> tree that belongs there."""
    return {
        name.replace(":", "-", 1): digest
        for name, digest in context.request.inputs.items()
        if name == "source" or name.startswith(_OTHERS)
    }


def _workplace(root: Path, trees: dict[str, Digest], *, state: Path | None) -> Workplace:
    return Workplace(
        root=root,
        source=root / "source" if "source" in trees else None,
        inputs={folder.removeprefix("in-"): root / folder for folder in trees if folder.startswith("in-")},
        sources={folder.removeprefix("source-"): root / folder for folder in trees if folder.startswith("source-")},
        state=state,
    )


def _all_settings(context: Context) -> Ingredients:
    kept = {name: tree for name, tree in context.ingredients.inputs.items() if name != "source"}
    inputs = {name: tree for name, tree in kept.items() if not name.startswith(_OTHERS)}
    return msgspec.structs.replace(context.ingredients, inputs=inputs)


def _open(context: Context, root: Path, settings: str) -> bool:
    """Make the workspace fit for this run: empty unless it was made with the very same settings and is whole."""
    if not _is_usable(context, root, settings):
        _empty(root)
    root.mkdir(parents=True, exist_ok=True)
    remove_leftovers(root / _SETTINGS)
    if not (root / _SETTINGS).exists():
        replace_file(root / _SETTINGS, settings.encode())
    return True


def _empty(root: Path) -> None:
    """Remove a workspace. First what vouches for it: whoever is killed now leaves one that is of no use to anybody."""
    (root / _SETTINGS).unlink(missing_ok=True)
    if not in_container():
        remove_tree(root)
        return
    for entry in [*root.iterdir()]:  # the folder itself stays: it is mounted
        if entry.is_dir() and not entry.is_symlink():
            remove_tree(entry)
        else:
            entry.unlink()


def _is_usable(context: Context, root: Path, settings: str) -> bool:
    written = root / _SETTINGS
    if not written.exists() or written.read_text(encoding="utf-8") != settings:
        return False
    mark = root / _RUNNING
    if mark.exists() and was_stopped(mark):
        context.log.say("the machine stopped during the last attempt, so the kept folder is not used")
        return False
    return True


def _is_fit(context: Context, root: Path, settings: str, source: Digest) -> bool:
    """Whether another stage can go on in a workspace: of the same settings, and of the same source."""
    return _is_usable(context, root, settings) and holds(context.store, source, root / "source")


def _mend(context: Context, root: Path) -> bool:
    """After a kill, remove what may be half written; whether anything had to go."""
    mark = root / _RUNNING
    remove_leftovers(mark)
    if not mark.exists():
        return False
    if has_ninja(root):
        context.log.say("the last attempt was killed; continuing where ninja stopped")
        mark.unlink()
        return False
    folders = [folder for folder in root.iterdir() if listing_of(folder).is_file()]
    known = {root / name for name in _OURS} | {listing_of(folder) for folder in folders}
    known = known.union(*map(laid_out, folders))
    left = remove_written(root, mark, ours=known.__contains__)
    context.log.say(f"the last attempt was killed: {left}")
    mark.unlink()
    if left.objects:
        context.notes.cache_expected = "the killed attempt had already filled it"
    return left.removed > 0
