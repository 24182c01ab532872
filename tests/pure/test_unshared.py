"""Sharing switched off: every stage sees an axis, and nothing but the source is made once for two values of it."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import HealthCheck, given, settings

from axletree.core.errors import UsageError
from axletree.plan.graph import Plan, build_plan
from axletree.recipe.axes import expand, variant_id
from axletree.recipe.sharing import unshared
from axletree.recipe.target import resolve
from support.recipes import recipe_of
from support.targets import MANY, inputs_of, plan_of, recipe_texts


def unshared_plan(text: str, *axes: str) -> Plan:
    recipe = unshared(recipe_of(text), axes)
    targets = [resolve(recipe, variant) for variant in expand(recipe)]
    return build_plan(targets, inputs_of(targets), label=lambda values: variant_id(values, recipe.axes))


def test_a_library_is_built_for_each_python() -> None:
    shared, separate = plan_of(MANY), unshared_plan(MANY, "python")
    counts = [Counter(stage.step.name for stage in plan.stages.values()) for plan in (shared, separate)]
    assert [count["lib"] for count in counts] == [2, 6]
    assert [count["bind"] for count in counts] == [6, 6]
    assert [count["fetch"] for count in counts] == [1, 1]
    assert shared.variants == separate.variants
    assert "lib[py311-cpu]" in separate.stages


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(recipe_texts())
def test_with_all_axes_every_stage_but_source_and_environments_is_of_one_variant(text: str) -> None:
    recipe = recipe_of(text)
    plan = unshared_plan(text, *recipe.axes)
    shared = {"fetch", "patch", "environment"}
    assert all(len(stage.variants) == 1 for stage in plan.stages.values() if stage.action not in shared)
    assert plan.variants == plan_of(text).variants


def test_an_axis_that_is_not_there() -> None:
    with pytest.raises(UsageError, match=r"no axis 'pyhton'") as caught:
        unshared(recipe_of(MANY), ["pyhton"])
    assert caught.value.problems[0].hint == "did you mean 'python'?"
