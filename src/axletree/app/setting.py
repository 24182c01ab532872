"""Where the recipe describes a stage: what the report of its failure names."""

from __future__ import annotations

from typing import TYPE_CHECKING

from axletree.app.recipes import problem_at
from axletree.core.setting import StageSetting

if TYPE_CHECKING:
    from collections.abc import Sequence

    from axletree.app.recipes import LoadedRecipe
    from axletree.plan.graph import PlannedStage
    from axletree.recipe.target import Target

_STAGE_KEYS = ("env", "options", "pass-env", "tools", "resources", "commands")
_TEST_KEYS = ("commands", "files")


def setting_of(loaded: LoadedRecipe, targets: Sequence[Target], stage: PlannedStage) -> StageSetting:
    """The recipe around a stage.

    Args:
        loaded: the recipe.
        targets: the variants that share the stage.
        stage: of the plan.
    """
    kind, _, name = stage.step.name.partition(":")
    tables = {"test": ("tests", name.rpartition(":")[0]), "environment": ("environments", name)}
    table = tables.get(kind, ("stages", stage.step.name) if not name and kind in loaded.recipe.stages else ())
    environment = stage.step.needs.get("environment", stage.step.name if kind == "environment" else "")
    environment = environment.removeprefix("environment:")
    gpus = {target.axes.get("gpu", "") for target in targets}
    keys = {"stages": _STAGE_KEYS, "tests": _TEST_KEYS}.get(table[0] if table else "", ())
    paths = [(*table, key) for key in keys]
    if environment:
        paths.append(("environments", environment, "requires"))
    lines = {".".join(path): line for path in paths if (line := problem_at(loaded, path, "").line) is not None}
    return StageSetting(
        recipe=str(loaded.path),
        table=".".join(table),
        environment=environment,
        action=stage.action,
        gpu=gpus.pop() if len(gpus) == 1 else "",
        lines=lines,
    )
