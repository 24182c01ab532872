"""A failed stage's folder and variables, for somebody who wants to look around in it."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from axletree.core.errors import UsageError
from axletree.core.near import nearest
from axletree.core.records import StageRequest
from axletree.execute.stage import log_file, stage_lock, work_folder
from axletree.execute.variables import ENVIRONMENT_FILE
from axletree.execute.workspace import KEPT
from axletree.host.room import STORE, WORKSPACE
from axletree.host.visit import View, run_here, visit
from axletree.store.images import ROOT

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from axletree.core.values import StageId
    from axletree.store.store import Store


class StageFolder(msgspec.Struct, frozen=True, kw_only=True):
    """Where a shell opens."""

    stage: str
    folder: Path
    environ: dict[str, str]
    log: Path
    view: View | None = None
    """What its commands saw; ``None`` if that was what this process sees."""


def find_place(store: Store, named: str) -> StageFolder:
    """The folder that a stage's latest attempt left.

    Raises:
        UsageError: no such stage ran here, it runs right now, or it is done and its folder is gone.
    """
    request = find_request(store, named)
    folder, log = work_folder(store, request.key), log_file(store, request.key)
    if store.is_locked(stage_lock(request.key)):
        raise UsageError(f"stage {named} is running: its folder is still in use", hint=f"read its log, {log}")
    if not folder.exists():
        raise UsageError(f"stage {named} succeeded, so its folder was removed", hint=f"read its log, {log}")
    written = folder / ENVIRONMENT_FILE
    environ: dict[str, str] = json.loads(written.read_text()) if written.exists() else {"PATH": "/usr/bin:/bin"}
    kept = folder / KEPT
    workspace = f"workspaces/{kept.read_text()}" if kept.exists() else None
    # A kept workspace has the source; where commands start in it is the recipe's choice.
    home = Path(environ.get("HOME", folder / "home")).parent
    source = Path(environ.get("AXLETREE_SOURCE", home / "source"))
    seen = (source / request.ingredients.parameters.get("directory", "."), source, home)
    inside = next((path for path in seen if _outside(path, store, workspace).is_dir()), home)
    opened = _outside(inside, store, workspace)
    image = request.ingredients.image
    view = View(
        store=store.root,
        folder=inside,
        workspace=workspace,
        image=None if image is None or request.local.here else f"images/{image.id}/{ROOT}",
        gpus=request.local.gpus,
    )
    seen_otherwise = inside != opened
    return StageFolder(
        stage=request.stage, folder=opened, environ=environ, log=log, view=view if seen_otherwise else None
    )


def run_in(place: StageFolder, argv: Sequence[str], environ: Mapping[str, str]) -> int:
    """Run a program in a stage's folder, where it sees what the stage's commands saw; its exit code.

    Raises:
        UsageError: there is no such program.
        HostError: this host no longer allows what the stage saw.
    """
    if place.view is None:
        return run_here(argv, place.folder, environ)
    return visit(place.view, argv, environ)


def _outside(path: Path, store: Store, workspace: str | None) -> Path:
    """The path of the machine for one that a stage saw."""
    if path.is_relative_to(STORE):
        return store.root / path.relative_to(STORE)
    if workspace and path.is_relative_to(WORKSPACE):
        return store.root / workspace / path.relative_to(WORKSPACE)
    return path


def find_request(store: Store, named: str) -> StageRequest:
    """The latest request for a stage, named by its id, or ``RECIPE:ID``.

    Raises:
        UsageError: no such stage ran here, or stages of several recipes are called so.
    """
    requests = _requests(store)
    found = [each for each in requests if named in {each[1], ":".join(each)}]
    found = [each for each in found if each[0]] or found  # earlier versions did not write the recipe down
    if len(found) == 1:
        return requests[found[0]]
    if found:
        message = f"stage {named!r} ran for several recipes: {', '.join(recipe for recipe, _ in found)}"
        raise UsageError(message, hint=f"specify the recipe, too: {shlex.quote(':'.join(found[-1]))}")
    near = nearest(named, [*(stage for _, stage in requests), *map(":".join, requests)], cutoff=0.4)
    hint = f"did you mean {near!r}?" if near else "`axletree plan RECIPE` shows stage ids"
    raise UsageError(f"this store has never run a stage {named!r}", hint=hint)


def stage_names(store: Store) -> tuple[str, ...]:
    """Ids of the stages that can be named, the latest first."""
    return tuple(dict.fromkeys(stage for _, stage in reversed(_requests(store))))


def _requests(store: Store) -> dict[tuple[str, StageId], StageRequest]:
    """Recipe and stage -> its latest request, oldest first."""
    found: dict[tuple[str, StageId], StageRequest] = {}
    for path in sorted(store.requests.rglob("*.json"), key=lambda path: path.stat().st_mtime):
        try:
            request = msgspec.json.decode(path.read_bytes(), type=StageRequest)
        except msgspec.MsgspecError:
            continue
        found.pop((request.recipe, request.stage), None)
        found[request.recipe, request.stage] = request
    return found
