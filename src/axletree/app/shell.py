"""A failed stage's folder and variables, for somebody who wants to look around in it."""

from __future__ import annotations

import difflib
import json
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from axletree.core.errors import UsageError
from axletree.core.records import StageRequest
from axletree.execute.stage import log_file, stage_lock, work_folder
from axletree.execute.variables import ENVIRONMENT_FILE

if TYPE_CHECKING:
    from axletree.core.values import StageId
    from axletree.store.store import Store


class StageFolder(msgspec.Struct, frozen=True, kw_only=True):
    """Where a shell opens."""

    stage: str
    folder: Path
    environ: dict[str, str]
    log: Path


def find_place(store: Store, named: str) -> StageFolder:
    """The folder that a stage's latest attempt left.

    Raises:
        UsageError: no such stage ran here, it runs right now, or it is done and its folder is gone.
    """
    request = find_request(store, named)
    folder, log = work_folder(store, request.key), log_file(store, request.key)
    if store.is_locked(stage_lock(request.key)):
        raise UsageError(f"stage {named} is running: its folder is still in use", hint=f"see its log: {log}")
    if not folder.exists():
        raise UsageError(f"stage {named} succeeded, so its folder was removed", hint=f"see its log: {log}")
    written = folder / ENVIRONMENT_FILE
    environ: dict[str, str] = json.loads(written.read_text()) if written.exists() else {"PATH": "/usr/bin:/bin"}
    # A kept workspace has the source; where commands start in it is the recipe's choice.
    source = Path(environ.get("AXLETREE_SOURCE", folder / "source"))
    start = source / request.ingredients.parameters.get("directory", ".")
    opened = next((path for path in (start, source) if path.is_dir()), folder)
    return StageFolder(stage=request.stage, folder=opened, environ=environ, log=log)


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
        raise UsageError(message, hint=f"name the recipe, too: {shlex.quote(':'.join(found[-1]))}")
    near = difflib.get_close_matches(
        named, [*(stage for _, stage in requests), *map(":".join, requests)], n=1, cutoff=0.4
    )
    hint = f"did you mean {near[0]!r}?" if near else "`axletree plan RECIPE` shows stage ids"
    raise UsageError(f"this store has no record of a stage {named!r}", hint=hint)


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
