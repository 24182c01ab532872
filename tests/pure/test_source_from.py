"""Stages whose source is another stage's tree: what they need, in which order, and what cannot be."""

from __future__ import annotations

import pytest

from axletree.plan.steps import needed_stages
from support.recipes import problems_of
from support.targets import plan_of, targets_at

TEXT = """\
name = "s"
version = "1.0"
source = { path = "src" }
[axes]
gpu = ["cpu", "rocm7.1"]
[environments.plain]
axes = []
python = "3.11"
[stages.lib]
action = "compile"
axes = ["gpu"]
source-from = "hipify"
[stages.hipify]
action = "hipify"
environment = "plain"
[packages.s]
from = "lib"
local = "{gpu}"
"""


def test_the_source_is_the_tree_of_the_stage() -> None:
    plan = plan_of(TEXT)
    order = list(plan.stages)
    libs = [stage for stage in plan.stages.values() if stage.step.name == "lib"]
    assert [stage.needs for stage in libs] == [{"source": "hipify"}, {"source": "hipify"}]
    assert all(order.index(stage.needs["source"]) < order.index(stage.id) for stage in libs)
    assert plan.stages[order[order.index(libs[0].needs["source"])]].needs["source"] == "fetch"
    lib = next(stage for stage in targets_at(TEXT)[0].stages if stage.name == "lib")
    assert needed_stages(lib) == ("hipify",)


def test_a_pep_517_build_gives_what_it_installs() -> None:
    text = TEXT.replace('action = "hipify"', 'action = "build"')
    assert plan_of(text).stages["lib[cpu]"].needs["source"] == "install:hipify"  # type: ignore[index]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('source-from = "hipify"', 'source-from = "hippify"', "unknown stage 'hippify'"),
        ('source-from = "hipify"', 'source-from = "lib"', "in a cycle: lib -> lib"),
        (
            'source-from = "hipify"',
            'source-from = "hipify"\nsource = false',
            "source = false contradicts source-from",
        ),
        (
            'environment = "plain"\n[pack',
            'environment = "plain"\naxes = ["gpu"]\nsource-from = "lib"\n[pack',
            "in a cycle",
        ),
        ('action = "hipify"', 'action = "hipify"\naxes = ["gpu"]\ncommands = ["true"]', "it takes no commands"),
        ('action = "hipify"\nenvironment = "plain"', 'action = "hipify"', "needs an environment to run in"),
        ('action = "hipify"', 'action = "hipify"\nsource = false', "a hipify stage needs the source"),
    ],
)
def test_faults(old: str, new: str, message: str) -> None:
    assert old in TEXT
    assert message in "\n".join(problem.message for problem in problems_of(TEXT.replace(old, new)))


def test_a_source_that_differs_by_what_its_user_does_not_see() -> None:
    text = TEXT.replace('action = "hipify"', 'action = "hipify"\naxes = ["gpu"]')
    text = text.replace('axes = ["gpu"]\nsource-from', "axes = []\nsource-from")
    problem = problems_of(text)[0]
    assert problem.key == "stages.lib.source-from"
    assert "differs by axis 'gpu'" in problem.message
