"""Targets -> plan: what is shared, in which order, who needs whom, what a stage is called."""

from __future__ import annotations

from collections import Counter

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings

from axletree.core.errors import RecipeError
from axletree.core.values import StageId
from axletree.plan.actions.audit import WheelAuditParameters
from axletree.plan.actions.patch import PatchParameters
from axletree.plan.actions.project import CommandParameters
from axletree.plan.actions.relocate import RelocateParameters
from axletree.plan.graph import build_plan
from support.recipes import SMALL
from support.targets import MANY, ids, inputs_of, parameters_of, plan_of, recipe_texts, targets_at

CLOSED = settings(max_examples=30, suppress_health_check=[HealthCheck.too_slow])

PATCHED = """
name = "s"
version = "1.0"
source = { path = "src" }
[axes]
python = ["3.11", "3.12"]
gpu = ["cpu", "cu130"]
[[patches]]
file = "cuda.patch"
when = { gpu = "cu130" }
[stages.lib]
action = "run"
axes = ["gpu"]
commands = ["make"]
[packages.s]
from = "lib"
local = "{gpu}"
"""


def test_two_gpus_and_three_pythons_are_one_source_two_libraries_six_bindings() -> None:
    plan = plan_of(MANY)
    counts = Counter(stage.step.name for stage in plan.stages.values())
    assert counts["fetch"] == 1
    assert counts["lib"] == counts["pack:small-lib"] == counts["audit:small-lib"] == 2
    assert counts["environment:build"] == 3
    assert counts["bind"] == counts["install:bind"] == counts["pack:small"] == counts["index:."] == 6
    assert counts["test:smoke:pip"] == counts["test:smoke:uv"] == 6


def test_a_shared_stage_names_all_its_variants() -> None:
    plan = plan_of(MANY)
    assert plan.stages[StageId("lib[cu130]")].variants == ("py311-cu130", "py312-cu130", "py313-cu130")
    assert plan.stages[StageId("fetch")].variants == plan.variants
    assert plan.stages[StageId("bind[py312-cpu]")].variants == ("py312-cpu",)


def test_an_axis_that_nothing_else_depends_on_ends_the_sharing() -> None:
    plan = plan_of(MANY.replace('axes = ["gpu"]', 'axes = ["python", "gpu"]'))
    assert len(ids(plan, "lib[")) == 6


def test_a_text_that_reads_an_axis_differs_only_by_it() -> None:
    plan = plan_of(MANY)
    cpu, cuda = (parameters_of(plan, f"lib[{gpu}]", CommandParameters) for gpu in ("cpu", "cu130"))
    assert cpu.commands == ("make GPU=cpu DESTDIR=$AXLETREE_OUT",)
    assert cuda.commands == ("make GPU=cu130 DESTDIR=$AXLETREE_OUT",)
    assert msgspec.structs.replace(cpu, commands=()) == msgspec.structs.replace(cuda, commands=())


def test_needs_of_each_kind_of_step() -> None:
    plan = plan_of(MANY, only={"py311-cpu"})
    needs = {stage.id: dict(stage.needs) for stage in plan.stages.values()}
    assert needs == {
        "fetch": {},
        "environment:build[py311]": {},
        "lib[cpu]": {"source": "fetch"},
        "bind[py311-cpu]": {"in:lib": "lib[cpu]", "source": "fetch", "environment": "environment:build[py311]"},
        "install:bind[py311-cpu]": {"wheel": "bind[py311-cpu]"},
        "pack:small-lib[cpu]": {"tree": "lib[cpu]"},
        "audit:small-lib[cpu]": {"wheel": "pack:small-lib[cpu]"},
        "pack:small[py311-cpu]": {"tree": "install:bind[py311-cpu]"},
        "audit:small[py311-cpu]": {"wheel": "pack:small[py311-cpu]"},
        "index:.[py311-cpu]": {
            "wheel:small-lib": "pack:small-lib[cpu]",
            "wheel:small": "pack:small[py311-cpu]",
            "audit:small-lib": "audit:small-lib[cpu]",
            "audit:small": "audit:small[py311-cpu]",
        },
        "test:smoke:pip[py311-cpu]": {"index:0": "index:.[py311-cpu]", "environment": "environment:build[py311]"},
        "test:smoke:uv[py311-cpu]": {"index:0": "index:.[py311-cpu]", "environment": "environment:build[py311]"},
    }


def test_a_stage_that_uses_a_build_gets_what_was_installed_not_the_wheel() -> None:
    text = MANY + '\n[stages.after]\naction = "run"\naxes = ["python", "gpu"]\ninputs = ["bind"]\ncommands = ["x"]\n'
    plan = plan_of(text)
    assert plan.stages[StageId("after[py311-cpu]")].needs["in:bind"] == "install:bind[py311-cpu]"


def test_stages_come_after_their_inputs_whatever_the_order_in_the_recipe() -> None:
    head, _, rest = MANY.partition("[stages.lib]")
    lib, _, tail = rest.partition("[stages.bind]")
    bind, _, packages = tail.partition("[packages.small-lib]")
    turned = f"{head}[stages.bind]{bind}[stages.lib]{lib}[packages.small-lib]{packages}"
    order = ids(plan_of(turned))
    assert order.index("lib[cpu]") < order.index("bind[py311-cpu]")
    assert sorted(order) == sorted(ids(plan_of(MANY)))


def test_environments_that_nothing_uses_are_not_made() -> None:
    plan = plan_of(MANY + '\n[environments.idle]\nrequires = ["numpy"]\n')
    assert not ids(plan, "environment:idle")


def test_patches_are_applied_only_where_they_apply() -> None:
    plan = plan_of(PATCHED)
    assert ids(plan, "patch") == ["patch[cu130]"]
    assert parameters_of(plan, "patch[cu130]", PatchParameters).patches[0].file == "cuda.patch"
    assert plan.stages[StageId("lib[cu130]")].needs == {"source": "patch[cu130]"}
    assert plan.stages[StageId("lib[cpu]")].needs == {"source": "fetch"}


@pytest.mark.parametrize("name", ["fetch", "patch"])
def test_stages_cannot_be_called_like_steps_of_every_recipe(name: str) -> None:
    with pytest.raises(RecipeError, match=f"'{name}' is the name of a built-in step"):
        plan_of(PATCHED.replace("stages.lib", f"stages.{name}").replace('"lib"', f'"{name}"'))


def test_a_test_of_one_package_sees_what_the_others_in_its_index_see() -> None:
    text = MANY.replace('packages = ["small", "small-lib"]', 'packages = ["small-lib"]')
    text = text.replace('imports = ["small"]', 'imports = ["ctypes"]\naxes = ["python", "gpu"]')
    alone = text.replace('axes = ["python"]\nrequires', 'axes = []\npython = "3.11"\nrequires')
    alone = alone.replace('imports = ["ctypes"]\naxes = ["python", "gpu"]', 'imports = ["ctypes"]')
    for each in (text, alone):
        plan = plan_of(each)
        assert len(ids(plan, "test:smoke:pip")) == 6
        assert plan.stages[StageId("test:smoke:pip[py312-cpu]")].needs["index:0"] == "index:.[py312-cpu]"


def test_each_missing_lock_is_named() -> None:
    with pytest.raises(RecipeError) as caught:
        plan_of(MANY.replace('environment = "build"\nimports', 'environment = "test"\nimports') + TEST, environments={})
    assert [problem.message for problem in caught.value.problems] == [
        "environment 'build' has no lock for this variant (pylock.build-py311.toml)",
        "environment 'test' has no lock for this variant (pylock.test-py311.toml)",
    ]
    assert {problem.hint for problem in caught.value.problems} == {"run `axletree lock RECIPE`"}


TEST = '\n[environments.test]\nrequires = ["pytest"]\n'


def test_no_variant_is_an_error() -> None:
    with pytest.raises(RecipeError, match=r"matrix\.exclude removes all of them"):
        build_plan((), inputs_of(()), label=lambda _: "")


def test_dependants_and_upstream_are_each_others_reverse() -> None:
    plan = plan_of(MANY)
    users = plan.dependants()
    assert set(users[StageId("lib[cpu]")]) == {
        *(f"bind[py{minor}-cpu]" for minor in (311, 312, 313)),
        "pack:small-lib[cpu]",
    }
    assert plan.upstream([StageId("pack:small-lib[cpu]")]) == {"pack:small-lib[cpu]", "lib[cpu]", "fetch"}
    for stage, found in users.items():
        assert all(stage in plan.stages[user].needs.values() for user in found)


@given(recipe_texts())
@CLOSED
def test_each_stage_comes_after_what_it_needs(text: str) -> None:
    plan = plan_of(text)
    seen: set[StageId] = set()
    for stage in plan.stages.values():
        assert seen.issuperset(stage.needs.values())
        seen.add(stage.id)


@given(recipe_texts())
@CLOSED
def test_the_variants_of_a_stage_agree_on_its_axes_and_no_two_stages_could_be_one(text: str) -> None:
    plan = plan_of(text)
    values = {target.variant: target.axes for target in targets_at(text)}
    places = set()
    for stage in plan.stages.values():
        for variant in stage.variants:
            assert {axis: values[variant][axis] for axis in stage.step.axes} == stage.step.axes
        place = (stage.step.name, *sorted(stage.step.axes.items()))
        assert place not in places
        places.add(place)
    assert {variant for stage in plan.stages.values() for variant in stage.variants} == set(plan.variants)


@given(recipe_texts())
@CLOSED
def test_each_variant_alone_has_the_same_stages_as_in_the_whole(text: str) -> None:
    plan = plan_of(text)
    for variant in plan.variants:
        part = plan_of(text, only={variant})
        assert set(part.stages) == {stage.id for stage in plan.stages.values() if variant in stage.variants}
        for stage in part.stages.values():
            assert stage.needs == plan.stages[stage.id].needs
            assert stage.step == plan.stages[stage.id].step


def test_a_bundled_package_is_packed_from_a_tree_of_its_own() -> None:
    plan = plan_of(PATCHED.replace('from = "lib"', 'from = "lib"\nformats = ["wheel", "zip"]\nbundle = true'))
    names = [stage for stage in ids(plan) if stage.endswith("[cpu]")]
    assert [name for name in names if name.startswith(("bundle", "pack"))] == [
        "bundle:s[cpu]",
        "pack:s[cpu]",
        "pack-zip:s[cpu]",
    ]
    assert plan.stages[StageId("bundle:s[cpu]")].needs == {"tree": "lib[cpu]"}
    assert plan.stages[StageId("pack:s[cpu]")].needs == {"tree": "bundle:s[cpu]"}
    assert plan.stages[StageId("pack-zip:s[cpu]")].needs == {"tree": "lib[cpu]"}
    assert parameters_of(plan, "bundle:s[cpu]", RelocateParameters).relocate.graft_to == "s.libs"


def test_the_libraries_of_the_machine_are_known_to_what_bundles_only() -> None:
    text = PATCHED.replace('from = "lib"', 'from = "lib"\nbundle = true')
    one, other = plan_of(text, host_libraries="1"), plan_of(text, host_libraries="2")
    changed = [stage for stage in one.stages if one.stages[stage].step != other.stages[stage].step]
    assert changed == ["bundle:s[cpu]", "bundle:s[cu130]"]


BUILT = """
name = "s"
version = "1"
source.path = "."
axes.python = ["3.11"]
environments.build.requires = []
packages.s.from = "build"

[stages.build]
action = "build"
axes = ["python"]
environment = "build"
tools = ["cmake", "c++"]
"""


@pytest.mark.parametrize(
    ("change", "compilers"),
    [
        (("", ""), ("c++",)),
        ((', "c++"', ""), ()),
        (('"build"\naxes', '"run"\ncommands = ["true"]\naxes'), ()),
        (
            (
                'packages.s.from = "build"',
                'packages.s = { from = "build", files = ["s/**"] }\npackages.t = { from = "build", files = ["t/**"] }',
            ),
            (),
        ),
    ],
    ids=["one wheel", "no compiler", "commands", "two packages"],
)
def test_the_audit_knows_the_compilers_of_a_stage_that_builds_one_wheel(
    change: tuple[str, str], compilers: tuple[str, ...]
) -> None:
    plan = plan_of(BUILT.replace(*change, 1))
    assert parameters_of(plan, "audit:s[py311]", WheelAuditParameters).compilers == compilers


def test_only_a_relocation_that_drops_libraries_has_that_in_its_key() -> None:
    text = f'{SMALL}[stages.tree]\naction = "relocate"\naxes = ["gpu"]\ninputs = ["lib"]\n[stages.tree.relocate]\n'
    text += 'drop = ["*.a"]\n[packages.tree]\nfrom = "tree"\nlocal = "{gpu}"\n'
    more = text.replace("[packages.tree]", 'drop-needed = { "lib/*.so" = ["libcuda.so.1"] }\n[packages.tree]')
    plain, dropping = (
        msgspec.to_builtins(parameters_of(plan_of(each), ids(plan_of(each), "tree")[0], RelocateParameters))
        for each in (text, more)
    )
    assert "drop-needed" not in plain["relocate"]
    assert "drop_needed" not in plain
    assert dropping == {**plain, "drop_needed": {"lib/*.so": ("libcuda.so.1",)}}
