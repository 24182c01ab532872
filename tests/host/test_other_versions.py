"""What other versions of Axletree left behind: plans and trees say so, with what to do."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import pytest

from axletree.app.planning import PlanRequest, planned_stages, prepare
from axletree.core.errors import HostError, RecipeError
from axletree.host.devtree import read_state
from axletree.store.store import Store

if TYPE_CHECKING:
    from pathlib import Path

    from axletree.app.planning import Prepared

TEXT = """\
name = "demo"
version = "1.0"
source = { path = "src" }

[stages.lib]
action = "run"
commands = ["make"]
"""


@pytest.fixture
def recipe(tmp_path: Path) -> Path:
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "a.txt").write_text("a\n")
    path = tmp_path / "demo.toml"
    path.write_text(TEXT)
    return path


def plan(recipe: Path) -> Prepared:
    store = Store.open(recipe.parent / "store")
    return prepare(PlanRequest(recipe=str(recipe), out=recipe.parent / "dist"), store, environ=os.environ)


def test_a_stage_whose_record_is_of_another_version_says_so(recipe: Path) -> None:
    before = plan(recipe)
    assert {stage.why for stage in planned_stages(before)} == {("it has not run yet",)}
    store = Store.open(recipe.parent / "store")
    for stage in before.plan.stages:
        store.last_path(stage, before.plan.recipe).write_text('{"schema": 1, "stage": "lib"}\n')
    reasons = {stage.why for stage in planned_stages(plan(recipe))}
    assert reasons == {("a different version of Axletree produced its last result",)}


def test_a_lock_of_a_newer_version_names_the_command_that_makes_one(recipe: Path) -> None:
    python = f"{sys.version_info.major}.{sys.version_info.minor}"
    tables = f'[axes]\npython = ["{python}"]\n\n[environments.build]\nrequires = ["wheel"]\n\n'
    stage = '[stages.lib]\nenvironment = "build"\naxes = ["python"]'
    recipe.write_text(TEXT.replace("[stages.lib]", tables + stage))
    (recipe.parent / "demo").mkdir()
    lock = recipe.parent / "demo" / f"pylock.build-py{python.replace('.', '')}.toml"
    lock.write_text('lock-version = "2.0"\n')
    with pytest.raises(RecipeError) as raised:
        plan(recipe)
    (problem,) = raised.value.problems
    assert (
        problem.message == "the file has format 2.0, which a newer version of Axletree wrote; this version supports 1.0"
    )
    assert (problem.hint or "").startswith("update Axletree, or ")
    assert f"axletree lock {recipe}" in (problem.hint or "")


def test_an_editable_tree_of_another_version_says_so(tmp_path: Path) -> None:
    state = tmp_path / ".axletree" / "dev.json"
    state.parent.mkdir()
    for schema, whose in ((0, "an older"), (2, "a newer")):
        state.write_text(f'{{"schema": {schema}}}')
        with pytest.raises(
            HostError, match=rf"dev\.json: the file has format {schema}, which {whose} version"
        ) as raised:
            read_state(tmp_path)
        assert "axletree dev RECIPE" in str(raised.value)
