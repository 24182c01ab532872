"""Where the recipe describes a stage: what the report of its failure names."""

from __future__ import annotations

from typing import TYPE_CHECKING

from axletree.core.setting import StageSetting
from axletree.recipe.documents import place_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from axletree.app.recipes import LoadedRecipe
    from axletree.plan.graph import PlannedStage
    from axletree.recipe.faults import Path
    from axletree.recipe.target import Target

_STAGE_KEYS = ("env", "options", "config", "pass-env", "tools", "resources", "commands", "sha256")
_TEST_KEYS = ("commands", "files")
_SOURCE_KEYS = ("into", "strip")


def setting_of(loaded: LoadedRecipe, targets: Sequence[Target], stage: PlannedStage, *, lock: str) -> StageSetting:
    """The recipe around a stage.

    Args:
        loaded: the recipe.
        targets: the variants that share the stage.
        stage: of the plan.
        lock: the command that locks the recipe for the run.
    """
    kind, _, name = stage.step.name.partition(":")
    tables = {"test": ("tests", name.rpartition(":")[0]), "environment": ("environments", name)}
    table = tables.get(kind, ("stages", stage.step.name) if not name and kind in loaded.recipe.stages else ())
    environment = stage.step.needs.get("environment", stage.step.name if kind == "environment" else "")
    environment = environment.removeprefix("environment:")
    gpus = {target.axes.get("gpu", "") for target in targets}
    keys = {"stages": _STAGE_KEYS, "tests": _TEST_KEYS}.get(table[0] if table else "", ())
    paths: list[Path] = [(*table, key) for key in keys]
    if kind in {"fetch", "place"}:
        paths += [("sources", each, key) for each in loaded.recipe.sources for key in _SOURCE_KEYS]
    if stage.action in {"build", "compile"} and keys:
        described = loaded.recipe.stages[stage.step.name]
        named = {"env": described.env, "options": described.options, "config": described.config}
        paths += [(*table, key, name) for key, names in named.items() for name in names]
    if environment:
        paths.append(("environments", environment, "requires"))
    places = {".".join(map(str, path)): place_of(loaded.document, path) for path in paths}
    made = loaded.defaults.filename if loaded.defaults is not None else None  # nobody edits the defaults
    unsaid = {key for key, place in places.items() if place.file == made}
    listed = {key: loaded.recipe.stages[stage.step.name].tools for key in unsaid if key == f"{'.'.join(table)}.tools"}
    places = {key: place for key, place in places.items() if key not in unsaid}
    return StageSetting(
        recipe=str(loaded.path),
        table=".".join(table),
        environment=environment,
        action=stage.action,
        gpu=gpus.pop() if len(gpus) == 1 else "",
        lock=lock,
        imported=_place(loaded, table) if stage.recipe else "",
        unsaid=listed,
        lines={key: place.line for key, place in places.items() if place.line is not None},
        files={key: place.file for key, place in places.items() if place.file != str(loaded.path)},
    )


def _place(loaded: LoadedRecipe, table: Path) -> str:
    """Where a table of a recipe is, in words; the recipe's file for steps that no table describes."""
    if not table:
        return str(loaded.path)
    place = place_of(loaded.document, table)
    line = f", line {place.line}" if place.line is not None else ""
    return f"{'.'.join(map(str, table))} in {place.file}{line}"
