"""Conda environments of an editable tree: prefixes of its own, which may be written to."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from axletree.core.errors import Problem, UsageError
from axletree.disk import remove_tree
from axletree.execute.environments import conda_lock_in
from axletree.execute.stage_venvs import UV_CACHE
from axletree.host.conda_prefix import is_whole, make_prefix
from axletree.host.devtree import FOLDER
from axletree.host.files import replace_file
from axletree.host.tools import SYSTEM_PATH
from axletree.plan.actions.environment import EnvironmentParameters

if TYPE_CHECKING:
    from pathlib import Path

    from axletree.core.values import Digest
    from axletree.plan.graph import PlannedStage
    from axletree.store.store import Store

BUILD_PREFIX = f"{FOLDER}/build-prefix"
"""Where the compilers of a tree are, if it links against another environment."""
MARK = "axletree-dev.json"
"""File of an environment that says which locked environments it holds."""


def has_prefix(stage: PlannedStage) -> bool:
    """Whether the environment of a stage is one of conda."""
    parameters = stage.step.parameters
    return isinstance(parameters, EnvironmentParameters) and bool(parameters.conda)


def have_prefix(prefix: Path, environment: Digest, store: Store, *, ours: bool) -> bool:
    """Have a locked environment in a prefix; another one that was there is replaced.

    Args:
        prefix: where it is.
        environment: digest of its tree.
        store: has the tree.
        ours: whether what is there without a mark was made here, and interrupted.

    Returns:
        Whether it was made now: then nothing else is installed in it.

    Raises:
        UsageError: the folder holds something else.
        StageError: the client fails.
    """
    mark = prefix / MARK
    held = {"environments": [environment]}
    if prefix.exists() and any(prefix.iterdir()) and not (ours or mark.exists()):
        hint = "choose a different folder with --venv, or remove this folder"
        raise UsageError(Problem(file=str(prefix), message="the folder was not created by `axletree dev`", hint=hint))
    if is_whole(prefix) and _read(mark) == held:
        return False
    with store.lease("dev") as scratch:
        files = scratch / "files"
        store.materialise(environment, files, link=True, writable=False)
        make_prefix(
            prefix,
            conda_lock_in(files),
            files=files,
            cache=scratch / "packages",  # its files may be written to, so they are no names of others
            uv_cache=store.cache / UV_CACHE,
            environ={"PATH": ":".join(SYSTEM_PATH), "HOME": str(scratch), "LC_ALL": "C.UTF-8"},
        )
        remove_tree(files)
    replace_file(mark, msgspec.json.encode(held))
    return True


def _read(mark: Path) -> dict[str, Any] | None:
    try:
        return msgspec.json.decode(mark.read_bytes(), type=dict[str, Any])
    except (OSError, msgspec.MsgspecError):
        return None
