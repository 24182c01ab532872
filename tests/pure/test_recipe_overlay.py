"""A recipe that extends another: how two documents become one, and where a fault of either is."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from axletree.core.errors import RecipeError
from axletree.recipe.axes import expand
from axletree.recipe.documents import Document, read_document
from axletree.recipe.overlay import SHIPPED, base_of, extend
from axletree.recipe.parse import parse_document
from axletree.recipe.target import resolve
from support.recipes import SMALL

if TYPE_CHECKING:
    from axletree.recipe.model import Recipe

BASE = (
    SMALL.replace('source = { path = "src" }', 'source = { path = "../src" }').replace(
        'inputs = ["lib"]', 'inputs = ["lib"]\nenv = { A = "base", B = "base" }'
    )
    + """
files = ["test/a.py"]

[[patches]]
file = "p/a.patch"

[[override]]
when = { gpu = "cu130" }
stage = "bind"
env = { A = "override" }
"""
)
HEAD = 'extends = "base.toml"\n'


def merged(own: str, *, base: str = BASE, folder: str = "") -> Document:
    return extend(read_document(base, "base.toml"), read_document(HEAD + own, "own.toml"), folder=folder)


def recipe_of(own: str, **more: str) -> Recipe:
    return parse_document(merged(own, **more))


def problems(own: str, **more: str) -> list[tuple[str | None, int | None, str]]:
    with pytest.raises(RecipeError) as caught:
        recipe_of(own, **more)
    return [(problem.file, problem.line, problem.message) for problem in caught.value.problems]


def test_nothing_changed_is_the_base() -> None:
    assert recipe_of("") == parse_document(read_document(BASE, "base.toml"))


def test_tables_merge_and_other_values_replace() -> None:
    recipe = recipe_of('name = "mine"\n[axes]\npython = ["3.13"]\n[stages.bind]\nenv = { B = "own", C = "own" }\n')
    assert (recipe.name, recipe.version) == ("mine", "1.0")
    assert recipe.axes == {"python": ("3.13",), "gpu": ("cpu", "cu130")}
    assert recipe.stages["bind"].env == {"A": "base", "B": "own", "C": "own"}
    assert recipe.stages["bind"].inputs == ("lib",)


def test_axes_keep_their_order() -> None:
    recipe = recipe_of('[axes]\ngpu = ["cpu"]\npython = ["3.12"]\n')
    assert [variant.id for variant in expand(recipe)] == ["py312-cpu"]


def test_overrides_and_patches_are_added() -> None:
    own = '[[patches]]\nfile = "b.patch"\n[[override]]\nstage = "bind"\nenv = { A = "last" }\n'
    recipe = recipe_of(own)
    assert [patch.file for patch in recipe.patches] == ["p/a.patch", "b.patch"]
    assert [override.env["A"] for override in recipe.override] == ["override", "last"]


def test_a_key_holds_against_overrides_of_the_base_but_not_its_own() -> None:
    own = '[stages.bind.env]\nA = "own"\n'
    later = '[[override]]\nstage = "bind"\nwhen = { python = "3.12" }\nenv = { A = "later" }\n'
    recipe = recipe_of(own + later)
    found = {each.id: resolve(recipe, each).stages[1].env["A"] for each in expand(recipe)}
    assert found == {"py311-cpu": "own", "py311-cu130": "own", "py312-cpu": "later", "py312-cu130": "later"}


def test_keys_can_be_removed() -> None:
    recipe = recipe_of('remove = ["stages.bind.env.A", "patches", "tests.smoke"]\n')
    assert recipe.stages["bind"].env == {"B": "base"}
    assert (recipe.patches, recipe.tests) == ((), {})
    replaced = recipe_of('remove = ["patches"]\n[[patches]]\nfile = "b.patch"\n')
    assert [patch.file for patch in replaced.patches] == ["b.patch"]


def test_paths_are_relative_to_where_they_were_written() -> None:
    own = '[[patches]]\nfile = "b.patch"\n'
    recipe = recipe_of(own, folder="sub")
    assert [patch.file for patch in recipe.patches] == ["sub/p/a.patch", "b.patch"]
    assert (recipe.tests["smoke"].files, recipe.source.path) == (("sub/test/a.py",), "sub/../src")
    shipped = recipe_of(own, folder=SHIPPED)
    assert [patch.file for patch in shipped.patches] == ["@shipped/p/a.patch", "b.patch"]
    twice = extend(merged("", folder=SHIPPED), read_document(HEAD, "third.toml"), folder="deep")
    assert parse_document(twice).patches[0].file == "@shipped/p/a.patch"


def test_another_kind_of_source_replaces_the_old_one() -> None:
    source = recipe_of('source = { git = "https://e.org/r", ref = "v1" }\n').source
    assert (source.path, source.git, source.ref) == (None, "https://e.org/r", "v1")


def test_faults_name_the_file_that_has_them() -> None:
    lines = BASE.splitlines()
    base = BASE.replace('version = "1.0"', 'version = "no"')
    assert problems("[stages.bind]\nenvv = {}\n", base=base) == [
        ("own.toml", 3, "unknown key"),
        ("base.toml", 2, "'no' is not a valid version (PEP 440)"),
    ]
    assert problems("[stages.bind]\nworkspace = 3\n") == [("own.toml", 3, "expected true or false, found the number 3")]
    ((file, line, message),) = problems('[[override]]\nstage = "nope"\nenv = { A = "1" }\n')
    assert (file, line) == ("own.toml", 3)
    assert "nope" in message
    ((file, line, _),) = problems('remove = ["stages.lib"]\n')[:1]
    assert (file, line) == ("base.toml", 1 + lines.index('inputs = ["lib"]'))


REMOVED = [
    ('remove = ["stages.bnid"]', "the base recipe does not set stages.bnid", "did you mean 'bind'?"),
    ('remove = ["stages.nope.env"]', "the base recipe does not set stages.nope.env", None),
    ('remove = ["a b"]', "'a b' is not a valid key (expected one such as 'stages.build.env')", None),
    ("remove = [3]", "3 is not a valid key (expected one such as 'stages.build.env')", None),
    ("remove = 3", "expected a list of keys", 'for example, ["stages.build.env.FORCE_CUDA"]'),
]


@pytest.mark.parametrize(("own", "message", "hint"), REMOVED)
def test_what_cannot_be_removed(own: str, message: str, hint: str | None) -> None:
    with pytest.raises(RecipeError) as caught:
        recipe_of(own)
    (problem,) = caught.value.problems
    assert (problem.file, problem.line, problem.message, problem.hint) == ("own.toml", 2, message, hint)


@pytest.mark.parametrize("base", ["../a.toml", "/etc/a.toml", "a/../../b.toml", "sub/", "..//x"])
def test_a_base_outside_is_refused(base: str) -> None:
    with pytest.raises(RecipeError, match="must be a relative path inside the recipe's folder"):
        base_of(read_document(f'extends = "{base}"\n', "own.toml"))


@pytest.mark.parametrize("base", ["pytorch", "a.toml", "./a.toml", "sub/a.toml"])
def test_bases_that_may_be(base: str) -> None:
    assert base_of(read_document(f'extends = "{base}"\n', "own.toml")) == base


def test_without_a_base_there_is_nothing_to_remove() -> None:
    with pytest.raises(RecipeError, match="the recipe removes keys, but does not extend another recipe"):
        parse_document(read_document('remove = ["a"]\n' + SMALL, "own.toml"))
