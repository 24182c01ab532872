"""Recipes that import recipes: how axes are mapped, what of an imported recipe is planned, and with which keys."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from axletree.core.values import StageId
from axletree.plan.actions.table import ACTIONS
from axletree.plan.graph import Plan, build_plan
from axletree.plan.imports import ImportedPart, PlanImports
from axletree.plan.keys import resolve_plan
from axletree.recipe.axes import variant_id
from axletree.recipe.checks.importing import imported_faults
from axletree.recipe.imported import ImportFault, ImportGraph, import_targets
from axletree.recipe.part import parts_of
from support.recipes import problems_of, recipe_of
from support.targets import SURROUNDINGS, ids, inputs_of, plan_of, targets_at

if TYPE_CHECKING:
    from collections.abc import Container

    from axletree.core.values import Key

BASE = """
name = "base"
version = "2.0"
source = { path = "src" }
[axes]
gpu = ["cu126", "cu130"]
blas = ["mkl", "openblas"]
[environments.build]
axes = []
python = "3.11"
requires = ["setuptools"]
[[patches]]
file = "all.patch"
[stages.lib]
action = "build"
axes = ["gpu"]
environment = "build"
tools = ["c++"]
[stages.docs]
action = "run"
commands = ["make docs"]
[packages.base]
from = "lib"
local = "{gpu}"
exclude = ["*.a"]
[packages.base-dev]
from = "lib"
local = "{gpu}"
files = ["*.a"]
[packages.base-docs]
from = "docs"
[tests.base]
packages = ["base"]
environment = "build"
imports = ["base"]
"""
"""A library for each GPU, cut into two packages, and what nobody else needs."""

MIDDLE = """
name = "middle"
version = "3.0"
source = { path = "src" }
[axes]
python = ["3.11", "3.12"]
gpu = ["cu126", "cu130"]
[recipes.base]
recipe = "base"
axes = { blas = "mkl" }
[stages.lib]
action = "run"
axes = ["gpu"]
inputs = ["base/lib"]
commands = ["make"]
"""

TOP = """
name = "top"
version = "1.0"
source = { path = "src" }
[axes]
python = ["3.11", "3.12"]
cuda = ["12.6", "13.0"]
[properties.cuda]
"12.6" = { gpu = "cu126" }
"13.0" = { gpu = "cu130" }
[recipes.low]
recipe = "base"
axes = { gpu = "{cuda.gpu}", blas = "mkl" }
[recipes.mid]
recipe = "middle"
axes = { gpu = "cu{cuda.nodot}" }
[environments.build]
axes = ["python", "cuda"]
packages = ["low/base"]
[stages.ext]
action = "run"
axes = ["python", "cuda"]
environment = "build"
inputs = ["low/lib", "mid/lib"]
commands = ["make"]
[packages.top]
from = "ext"
local = "{cuda}"
"""
"""A diamond: it takes from the base, and from what takes from the base."""

TEXTS = {"top": TOP, "middle": MIDDLE, "base": BASE}


def graph_of(texts: dict[str, str]) -> ImportGraph:
    """The recipes of some texts by name, each before those that it imports."""
    recipes = {name: recipe_of(text) for name, text in texts.items()}
    links = {name: {alias: table.recipe for alias, table in recipe.recipes.items()} for name, recipe in recipes.items()}
    return ImportGraph(recipes=recipes, links=links)


def faults_of(texts: dict[str, str], only: Container[str] | None = None) -> list[ImportFault]:
    graph = graph_of(texts)
    root = next(iter(texts))
    return import_targets(graph, targets_at(texts[root], only), lambda name, path: f"{name}.toml {path[-1]}")[1]


def planned(texts: dict[str, str], only: Container[str] | None = None) -> Plan:
    """The plan of the first recipe with all that it imports."""
    graph = graph_of(texts)
    root = next(iter(texts))
    targets = targets_at(texts[root], only)
    needed, faults = import_targets(graph, targets, lambda *_: "")
    assert not faults
    parts = {
        variant: tuple(
            ImportedPart(part=each, inputs=inputs_of([each.target]), axes=graph.recipes[each.target.recipe].axes)
            for each in several
        )
        for variant, several in needed.items()
    }
    axes = graph.recipes[root].axes
    imports = PlanImports(links=graph.links, parts=parts)
    return build_plan(targets, inputs_of(targets), label=lambda values: variant_id(values, axes), imports=imports)


def keys_of(plan: Plan, recipe: str = "") -> dict[StageId, Key]:
    """Keys as they follow from the plan alone: of an imported recipe by the ids in a plan of its own, or of all."""
    resolved = resolve_plan(plan, ACTIONS.__getitem__, SURROUNDINGS, lambda *_: None)
    stages = [stage for stage in plan.stages.values() if not recipe or stage.recipe == recipe]
    return {stage.own_id if recipe else stage.id: resolved[stage.id].key for stage in stages}


def test_a_diamond_is_one_plan_in_which_the_base_is_built_once() -> None:
    plan = planned(TEXTS)
    assert ids(plan, "base/install:lib") == ["base/install:lib[cu126]", "base/install:lib[cu130]"]
    assert ids(plan, "middle/lib") == ["middle/lib[cu126]", "middle/lib[cu130]"]
    assert ids(plan, "ext") == [f"ext[py{py}-cuda{cuda}]" for py in ("311", "312") for cuda in ("12.6", "13.0")]
    ext = plan.stages[StageId("ext[py311-cuda12.6]")]
    assert ext.needs == {
        "in:low-lib": "base/install:lib[cu126]",
        "in:mid-lib": "middle/lib[cu126]",
        "source": "fetch",
        "environment": "environment:build[py311-cuda12.6]",
    }
    assert plan.stages[StageId("middle/lib[cu126]")].needs["in:base-lib"] == ext.needs["in:low-lib"]
    assert plan.stages[StageId("base/lib[cu126]")].variants == ("py311-cuda12.6", "py312-cuda12.6")
    order = list(plan.stages)
    assert all(
        order.index(need) < order.index(stage.id) for stage in plan.stages.values() for need in stage.needs.values()
    )


def test_only_what_is_needed_of_an_imported_recipe_is_planned() -> None:
    plan = planned(TEXTS, only={"py311-cuda12.6"})
    assert ids(plan, "base/") == [
        "base/fetch",
        "base/patch",
        "base/environment:build",
        "base/lib[cu126]",
        "base/install:lib[cu126]",
        "base/pack:base[cu126]",
        "base/audit:base[cu126]",
    ]


def test_an_environment_needs_a_wheel_and_the_audit_that_it_passed() -> None:
    plan = planned(TEXTS, only={"py311-cuda12.6"})
    assert plan.stages[StageId("environment:build[py311-cuda12.6]")].needs == {
        "wheel:base": "base/pack:base[cu126]",
        "audit:base": "base/audit:base[cu126]",
    }


def test_keys_of_imported_stages_are_those_of_their_recipe_alone() -> None:
    """Also those of packages that share a tree with others, and so depend on them."""
    changed = BASE.replace("*.a", "*.la")
    for base in (BASE, changed):
        imported = keys_of(planned({**TEXTS, "base": base}), "base")
        alone = keys_of(plan_of(base))
        assert len(imported) == 11
        assert {name: alone[name] for name in imported} == imported
    name = StageId("pack:base[cu126]")
    assert keys_of(plan_of(BASE))[name] != keys_of(plan_of(changed))[name]


def test_a_recipe_that_imports_another_has_other_keys_when_the_other_changes() -> None:
    before = keys_of(planned(TEXTS))
    after = keys_of(planned({**TEXTS, "base": BASE.replace('tools = ["c++"]', 'tools = ["c++"]\nenv = { A = "1" }')}))
    same = {name for name in before if before[name] == after[name]}
    assert not {"ext[py311-cuda12.6]", "middle/lib[cu126]", "environment:build[py311-cuda13.0]"} & same
    assert {"fetch", "middle/fetch", "base/fetch"} <= same


def test_variants_that_the_import_is_not_for_run_without_it() -> None:
    top = TOP.replace('recipe = "base"', 'recipe = "base"\nwhen = { cuda = "13.0" }').replace(
        '"low/lib", "mid/lib"', '"low/lib"'
    )
    plan = planned({**TEXTS, "top": top})
    assert "in:low-lib" not in plan.stages[StageId("ext[py311-cuda12.6]")].needs
    assert "in:low-lib" in plan.stages[StageId("ext[py311-cuda13.0]")].needs
    assert plan.stages[StageId("environment:build[py311-cuda12.6]")].needs == {}
    assert ids(plan, "base/lib") == ["base/lib[cu130]"]


def test_a_recipe_may_call_what_it_imports_as_it_likes_but_ids_have_the_own_name() -> None:
    plan = planned({"top": TOP.replace("low", "blas-library"), "middle": MIDDLE, "base": BASE}, only={"py311-cuda12.6"})
    assert plan.stages[StageId("ext[py311-cuda12.6]")].needs["in:blas-library-lib"] == "base/install:lib[cu126]"


def test_two_recipes_that_use_one_at_different_variants_are_a_conflict_that_names_both() -> None:
    faults = faults_of({**TEXTS, "middle": MIDDLE.replace('blas = "mkl"', 'blas = "openblas"')})
    assert [each.recipe for each in faults] == ["middle"]
    assert faults[0].fault.path == ("recipes", "base")
    assert faults[0].fault.message == (
        "middle uses recipe base for blas openblas, but top (top.toml low) uses it for blas mkl (at py311-cuda12.6)"
    )


WRONG_VARIANTS = {
    "no value": (
        {**TEXTS, "base": BASE.replace('"cu130"]', '"cu128"]')},
        "recipe base has no gpu 'cu130', which variant py311-cuda13.0 of top asks for",
    ),
    "excluded": (
        {**TEXTS, "base": BASE + '[matrix]\nexclude = [{ gpu = "cu130", blas = "mkl" }]'},
        "recipe base excludes gpu cu130, blas mkl, which variant py311-cuda13.0 of top asks for",
    ),
    "condition of a stage": (
        {**TEXTS, "middle": MIDDLE + 'when = { gpu = ["cu126"] }'},
        "recipe middle has no stage 'lib' for gpu cu130",
    ),
    "condition of a package": (
        {**TEXTS, "base": BASE.replace("[packages.base]", '[packages.base]\nwhen = { gpu = "cu126" }')},
        "recipe base has no package 'base' for gpu cu130",
    ),
    "of another Python": (
        {
            **TEXTS,
            "base": BASE.replace("[axes]", '[axes]\npython = ["3.11"]').replace(
                'axes = ["gpu"]', 'axes = ["python", "gpu"]'
            ),
            "middle": MIDDLE.replace("axes = { blas", 'axes = { python = "3.11", blas'),
            "top": TOP.replace('"{cuda.gpu}", blas', '"{cuda.gpu}", python = "3.11", blas'),
        },
        "package 'base' of recipe base is for Python 3.11, but the environment has 3.12",
    ),
}


@pytest.mark.parametrize("name", WRONG_VARIANTS)
def test_what_an_imported_recipe_lacks_at_a_variant(name: str) -> None:
    texts, message = WRONG_VARIANTS[name]
    assert message in [each.fault.message for each in faults_of(texts)]
    assert not faults_of(TEXTS)


def test_variants_that_are_not_built_may_lack_it() -> None:
    texts = {**TEXTS, "base": BASE.replace('"cu130"]', '"cu128"]')}
    assert not faults_of(texts, only={"py311-cuda12.6", "py312-cuda12.6"})


WRONG_ALONE = {
    "unknown recipe": ("low/lib", "loe/lib", "unknown recipe 'loe'", "did you mean 'low'?"),
    "no name": ("low/lib", "low/", "'low/' is not a stage of another recipe", "write RECIPE/STAGE"),
    "no recipe": (
        'packages = ["low/base"]',
        'packages = ["base"]',
        "'base' is not a package of another",
        "RECIPE/PACKAGE",
    ),
    "twice": ('"low/base"]', '"low/base", "low/base"]', "package 'low/base' is listed twice", None),
    "same distribution": ('"low/base"]', '"low/base", "mid/Base"]', "packages of the same distribution", "remove one"),
    "conda": (
        'packages = ["low/base"]',
        'packages = ["low/base"]\nprovider = "system"',
        "provider 'system' cannot install packages of other recipes",
        "venv",
    ),
    "condition": (
        'recipe = "middle"',
        'recipe = "middle"\nwhen = { cuda = "11.8" }',
        "axis 'cuda' has no value '11.8'",
        "its values",
    ),
    "hidden condition": (
        'recipe = "base"',
        'recipe = "base"\nwhen = { torch = "2" }',
        "recipe 'low' differs by axis 'torch', which stage 'ext' does not use",
        'add "torch" to stages.ext.axes',
    ),
    "placeholder": ("cu{cuda.nodot}", "cu{kuda}", "{kuda} uses unknown axis 'kuda'", "did you mean 'cuda'?"),
    "one variable": (
        '"low/lib", "mid/lib"]',
        '"low/lib", "low-lib"]',
        "inputs 'low/lib' and 'low-lib' would share the variable AXLETREE_IN_LOW_LIB",
        None,
    ),
    "source": ('commands = ["make"]', 'commands = ["make"]\nsource-from = "mid/lib"', "unknown stage 'mid/lib'", None),
}


@pytest.mark.parametrize("name", WRONG_ALONE)
def test_faults_that_the_recipe_alone_shows(name: str) -> None:
    old, new, message, hint = WRONG_ALONE[name]
    text = TOP.replace('python = ["3.11", "3.12"]', 'python = ["3.11", "3.12"]\ntorch = ["2", "3"]')
    text += '[stages.low-lib]\naction = "run"\ncommands = ["make"]\n'
    assert old in text
    assert not problems_of(text)
    found = [each for each in problems_of(text.replace(old, new)) if message in each.message]
    assert found, problems_of(text.replace(old, new))
    assert hint is None or hint in (found[0].hint or "")


WRONG_TOGETHER = {
    "stage": ("low/lib", "low/lob", "recipe base has no stage 'lob'", "did you mean 'lib'?"),
    "package": ("low/base", "low/bade", "recipe base has no package 'bade'", "did you mean 'base'?"),
    "axis": ('blas = "mkl"', 'blas = "mkl", blaz = "mkl"', "recipe base has no axis 'blaz'", "did you mean 'blas'?"),
    "unmapped axis": (
        ', blas = "mkl"',
        "",
        "recipe base needs a value for its axis 'blas', which top does not have",
        "set recipes.low.axes.blas; its values: mkl, openblas",
    ),
    "axis of an environment": (
        '[environments.build]\naxes = ["python", "cuda"]',
        '[environments.build]\naxes = ["python"]',
        "package 'low/base' differs by axis 'cuda', which environment 'build' does not use",
        'add "cuda" to environments.build.axes',
    ),
    "axis of a stage": (
        'axes = ["python", "cuda"]\nenvironment = "build"',
        'axes = ["python"]',
        "stage 'mid/lib' differs by axis 'cuda', which stage 'ext' does not use",
        'add "cuda" to stages.ext.axes',
    ),
}


@pytest.mark.parametrize("name", WRONG_TOGETHER)
def test_faults_that_the_imported_recipes_show(name: str) -> None:
    old, new, message, hint = WRONG_TOGETHER[name]
    others = {"low": recipe_of(BASE), "mid": recipe_of(MIDDLE)}
    assert old in TOP
    assert not list(imported_faults(recipe_of(TOP), others))
    text = TOP.replace(old, new)
    text = text.replace('local = "{cuda}"', "") if "stage 'mid" in message else text
    found = {fault.message: fault.hint for fault in imported_faults(recipe_of(text), others)}
    assert hint in (found[message] or "")


def test_only_wheels_can_be_installed() -> None:
    zipped = BASE.replace("[packages.base]", '[packages.base]\nformats = ["zip"]').partition("[tests.base]")[0]
    others = {"low": recipe_of(zipped), "mid": recipe_of(MIDDLE)}
    messages = [fault.message for fault in imported_faults(recipe_of(TOP), others)]
    assert messages == ["package 'base' of recipe base is not a wheel, so it cannot be installed here"]


def test_a_relocation_of_an_imported_tree_needs_it_at_each_of_its_variants() -> None:
    text = TOP.replace('recipe = "base"', 'recipe = "base"\nwhen = { cuda = "13.0" }')
    text += '[stages.moved]\naction = "relocate"\naxes = ["cuda"]\ninputs = ["low/lib"]\n[stages.moved.relocate]\n'
    assert [each.message for each in problems_of(text)] == [
        "variant py311-cuda12.6 does not have stage 'low/lib', which this stage relocates"
    ]
    assert not problems_of(text.replace("[stages.moved]", '[stages.moved]\nwhen = { cuda = "13.0" }'))


def test_a_package_that_is_asked_for_keeps_what_it_takes_of_imported_recipes() -> None:
    parts = parts_of(recipe_of(TOP), targets_at(TOP), formats=(), packages=("top",))
    assert {part.stages[0].inputs for part in parts} == {("low/lib", "mid/lib")}
