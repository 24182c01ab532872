"""Why a stage would run again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from axletree.check.rules.plan import NOT_INSTALLED, NOT_LOCKED
from axletree.core.errors import AxletreeError
from axletree.core.values import Digest, canonical_json
from axletree.plan.actions.fetch import FetchParameters, FolderSource
from axletree.plan.explain import why

if TYPE_CHECKING:
    from collections.abc import Mapping

    from axletree.app.planning import Prepared
    from axletree.core.records import Ingredients, StageRecord
    from axletree.core.values import StageId
    from axletree.plan.actions.spec import Parameters
    from axletree.plan.graph import Plan
    from axletree.store.store import Store


def reasons(prepared: Prepared, stage: StageId) -> tuple[str, ...]:
    """Reasons of a stage's own; else the stages before it that run."""
    own = own_reasons(prepared, stage)
    if own:
        return own
    needs = dict.fromkeys(prepared.plan.stages[stage].needs.values())
    running = [needed for needed in needs if prepared.resolved[needed].record is None]
    return (f"if the result of {' or '.join(running)} changes",) if running else ()


def own_reasons(prepared: Prepared, stage: StageId) -> tuple[str, ...]:
    """Reasons of a stage's own: what differs from its last run, beside inputs that are not made yet."""
    if parts := prepared.lacking.get(stage):
        return tuple(f"{part.name} is {NOT_INSTALLED}" for part in parts)
    if stage in prepared.unlocked:
        return (f"the stage is {NOT_LOCKED}",)
    resolved = prepared.resolved[stage]
    last = prepared.last.get(stage)
    if stage in prepared.unread:
        return ("a different version of Axletree produced its last result",)
    if last is None:
        return why(_plain(resolved.ingredients), None)
    return _against(prepared, stage, last, present=not resolved.certain)


def changes(prepared: Prepared, stage: StageId) -> tuple[str, ...]:
    """What differs from a stage's last run, whether or not the store still has its result."""
    last = prepared.last.get(stage)
    return ("the stage is new",) if last is None else _against(prepared, stage, last, present=True)


def _against(prepared: Prepared, stage: StageId, last: StageRecord, *, present: bool) -> tuple[str, ...]:
    resolved = prepared.resolved[stage]
    now = _plain(resolved.ingredients)
    # An input that does not exist yet is no reason by itself: its stage may make the very tree that was there before.
    now["inputs"] = {
        name: last.ingredients.inputs.get(name, value) if value.startswith("key:") else value
        for name, value in resolved.ingredients.inputs.items()
    }
    then = _plain(last.ingredients)
    if stage in prepared.source_changes:
        files = zip((then, now), prepared.source_changes[stage], strict=True)
        then, now = ({**part, "parameters": {"kind": "path", "files": changed}} for part, changed in files)
    return why(now, then, present=present)


def _plain(ingredients: Ingredients) -> dict[str, Any]:
    """As JSON has them: what was planned and what was read from a record are compared."""
    plain: dict[str, Any] = msgspec.json.decode(canonical_json(ingredients))
    return plain


def source_changes(
    plan: Plan, last: Mapping[StageId, StageRecord], store: Store
) -> dict[StageId, tuple[list[Any], list[Any]]]:
    """Stages that bring a source folder -> files that are new, gone or other than last time, where that is known."""
    found = {
        stage.id: _source_changes(stage.step.parameters, last[stage.id], store)
        for stage in plan.stages.values()
        if stage.action == "fetch" and stage.id in last
    }
    return {stage: changed for stage, changed in found.items() if changed is not None}


def _source_changes(now: Parameters, last: StageRecord, store: Store) -> tuple[list[Any], list[Any]] | None:
    match now, _as_fetched(last):
        case FetchParameters(source=FolderSource(tree=after)), FetchParameters(source=FolderSource(tree=before)):
            return None if before == after else _file_changes(before, after, store)
        case _:
            return None


def _as_fetched(record: StageRecord) -> FetchParameters | None:
    try:
        return msgspec.convert(record.ingredients.parameters, FetchParameters)
    except msgspec.ValidationError:
        return None


def _file_changes(one: Digest, other: Digest, store: Store) -> tuple[list[Any], list[Any]] | None:
    try:
        before, after = (frozenset(store.get_tree(Digest(digest)).entries) for digest in (one, other))
    except AxletreeError:
        return None  # the older listing may be gone from the store
    old, new = (
        [msgspec.to_builtins(entry) for entry in sorted(files, key=lambda entry: entry.path)]
        for files in (before - after, after - before)
    )
    return old, new
