"""The environments of a stage, of whatever kind: virtual environments, and conda prefixes.

As with virtual environments, the result of a conda environment's stage is data: its lock, with the packages and wheels.
The prefix is linked from that when a stage needs it. Its path is in its files, so it lies where it is made; a prefix
that a killed process left half made has no mark, and is made again.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from axletree.disk import remove_tree
from axletree.execute.stage_venvs import LOCK, clear_away, client_environ, describe, ensure_venv, uv_cache
from axletree.host.conda_prefix import is_whole, make_prefix
from axletree.host.room import in_room
from axletree.host.sandbox import can_protect
from axletree.recipe.conda_locks import parse_conda_lock
from axletree.recipe.locks import parse_lock

if TYPE_CHECKING:
    from pathlib import Path

    from axletree.core.values import Digest
    from axletree.execute.context import Context
    from axletree.recipe.conda_locks import CondaLock
    from axletree.recipe.locks import LockedWheel
    from axletree.store.store import Store

CONDA_LOCK = "conda-lock.environment.toml"
"""Member of the tree of a conda environment that names its packages and wheels."""


def stage_environments(context: Context) -> tuple[Path | None, Path | None]:
    """The stage's environment, and the one that it links against; ``None`` where it has none.

    Raises:
        StageError: an installer refuses; its words are in the message.
    """
    inputs = context.request.inputs
    environment, host = inputs.get("environment"), inputs.get("host")
    return (
        ensure_environment(context, environment) if environment is not None else None,
        ensure_environment(context, host) if host is not None else None,
    )


def ensure_environment(context: Context, digest: Digest) -> Path:
    """The environment for an environment's tree, made now if it is not there.

    Raises:
        StageError: an installer refuses; its words are in the message.
    """
    return ensure_prefix(context, digest) if is_conda(context, digest) else ensure_venv(context, digest)


def is_conda(context: Context, digest: Digest) -> bool:
    """Whether the tree of an environment is that of a conda environment."""
    return "conda" in describe(context, digest)


def ensure_prefix(context: Context, digest: Digest) -> Path:
    """The prefix for a conda environment's tree, made now if it is not there.

    Raises:
        StageError: the client refuses; its words are in the message.
    """
    folder = context.store.environments / (f"{digest[:24]}-fixed" if in_room() else digest[:24])
    with context.store.lock(f"environment-{digest}"):
        if is_whole(folder):
            os.utime(folder)  # it is in use: `store gc` goes by that
            return folder
        context.progress("creating the conda environment")
        files = context.work / f"files-{digest[:8]}"
        context.store.materialise(digest, files, link=True, writable=False)
        clear_away(folder)
        lock = conda_lock_in(files)
        make_prefix(
            folder,
            lock,
            files=files,
            cache=conda_cache(context.store) if can_protect() else context.work / "packages",
            uv_cache=uv_cache(context),
            environ=client_environ(context),
            say=context.log.write,
        )
        remove_tree(files)  # other names of files in the store, which nobody may write to
    return folder


def fresh_prefix(context: Context, prefix: Path, *, files: Path) -> None:
    """A prefix of the stage's own, which it may change, from the laid out tree of a conda environment.

    Raises:
        StageError: the client refuses; its words are in the message.
    """
    make_prefix(
        prefix,
        conda_lock_in(files),
        files=files,
        cache=context.work / "packages",
        uv_cache=uv_cache(context),
        environ=client_environ(context),
        say=context.log.write,
    )


def conda_lock_in(files: Path) -> CondaLock:
    """The lock in the laid out tree of a conda environment."""
    return parse_conda_lock((files / CONDA_LOCK).read_text(encoding="utf-8"), file=CONDA_LOCK)


def wheels_in(files: Path) -> tuple[LockedWheel, ...]:
    """The locked wheels in the laid out tree of an environment of any kind."""
    path = files / LOCK
    return parse_lock(path.read_text(encoding="utf-8"), file=LOCK).wheels if path.exists() else ()


def conda_cache(store: Store) -> Path:
    """Folder of unpacked conda packages, whose files prefixes share."""
    return store.cache / "conda"
