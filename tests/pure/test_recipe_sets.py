"""``--set KEY=VALUE``: what a value means, which keys there are, where a fault is, and that the change acts."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from axletree.core.errors import AxletreeError, RecipeError, UsageError
from axletree.recipe.axes import expand
from axletree.recipe.defaults import stand_in
from axletree.recipe.documents import place_of, read_document
from axletree.recipe.parse import parse_document
from axletree.recipe.properties import DataFile
from axletree.recipe.sets import apply_sets, decides_locks, normal_sets
from axletree.recipe.target import Target, resolve
from support.recipes import SMALL

if TYPE_CHECKING:
    from axletree.recipe.model import Recipe

TABLES = """\
data = ["gpu.toml"]

[properties.gpu.cpu]
arch-list = ""
"""
GPU = DataFile(
    name="gpu.toml", filename="gpu.toml", text='[properties.gpu.cu130]\narch-list = "7.5;8.0"\nconda = "cuda130"\n'
)
WITH_TABLES = SMALL.replace("[axes]", TABLES + "\n[axes]", 1).replace("GPU={gpu}", "ARCHS={gpu.arch-list}")
OVERRIDDEN = (
    SMALL.replace('inputs = ["lib"]', 'inputs = ["lib"]\nenv = { A = "own", B = "own" }\nresources = { cores = 2 }')
    + """
[[override]]
when = { gpu = "cu130" }
stage = ["lib", "bind"]
env = { A = "override" }
resources = { cores = 8, memory = "1 GB" }
"""
)


def changed(text: str, *sets: str) -> Recipe:
    data = [GPU] if "gpu.toml" in text else []
    return parse_document(apply_sets(read_document(text, "recipe.toml"), sets), data=data)


def target(recipe: Recipe, variant: str) -> Target:
    return next(resolve(recipe, each) for each in expand(recipe) if each.id == variant)


def env_of(recipe: Recipe, variant: str, stage: str = "bind") -> dict[str, str]:
    return next(each for each in target(recipe, variant).stages if each.name == stage).env


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("version=2.1.3", "2.1.3"),  # no TOML
        ("version=2.1", "2.1"),  # a number in TOML, and still text here
        ('version="3.0"', "3.0"),  # a string of TOML without its quotes
        ("version = 4", "4"),
        ("'version'=5.0", "5.0"),
    ],
)
def test_a_key_that_takes_text_gets_it_as_typed(word: str, expected: str) -> None:
    assert changed(SMALL, word).version == expected


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ('axes.python=["3.12"]', ("3.12",)),
        ("axes.python=3.10", ("3.10",)),
        ('axes.python="3.12"', ("3.12",)),
        ('axes.python=["3.12", "3.13"]', ("3.12", "3.13")),
    ],
)
def test_a_key_that_takes_a_list_gets_one(word: str, expected: tuple[str, ...]) -> None:
    assert changed(SMALL, word).axes["python"] == expected


def test_other_types_are_those_of_toml() -> None:
    recipe = changed(
        SMALL,
        "stages.bind.workspace=true",
        "stages.bind.resources.cores=4",
        'stages.bind.env={ A = "1" }',
        "stages.bind.env.FORCE_CUDA=1",
        'stages.bind.expect."A B"=ON',
    )
    bind = recipe.stages["bind"]
    assert (bind.workspace, bind.resources.cores, bind.expect) == (True, 4, {"A B": "ON"})
    assert bind.env == {"A": "1", "FORCE_CUDA": "1"}
    assert recipe.stages["lib"] == changed(SMALL).stages["lib"]


def test_the_last_word_on_a_key_counts() -> None:
    assert changed(SMALL, "version=2", "version=3").version == "3"
    assert normal_sets(["version=2", "axes.python=3.12", "version = 3"]) == ("axes.python=3.12", "version=3")
    assert normal_sets(["a=1", "b=2"]) == normal_sets(["b=2", "a=1"])


def test_a_property_of_an_axis_goes_before_the_data() -> None:
    recipe = changed(WITH_TABLES, "gpu.arch-list=9.0")
    assert [recipe.properties["gpu"][value]["arch-list"] for value in ("cpu", "cu130")] == ["9.0", "9.0"]
    recipe = changed(WITH_TABLES, "properties.gpu.cu*.arch-list=9.0")
    assert [recipe.properties["gpu"][value]["arch-list"] for value in ("cpu", "cu130")] == ["", "9.0"]
    (lib, *_) = target(recipe, "py311-cu130").stages
    assert "ARCHS=9.0" in lib.commands[0]


def test_what_is_set_holds_against_overrides() -> None:
    recipe = changed(OVERRIDDEN, "stages.bind.env.A=set", "stages.bind.resources.cores=3")
    assert env_of(recipe, "py311-cu130") == {"A": "set", "B": "own"}
    assert env_of(recipe, "py311-cpu") == {"A": "set", "B": "own"}
    assert env_of(recipe, "py311-cu130", "lib") == {"A": "override"}
    bind = target(recipe, "py311-cu130").stages[1]
    assert (bind.resources.cores, bind.resources.memory) == (3, 10**9)
    assert env_of(changed(OVERRIDDEN), "py311-cu130")["A"] == "override"


FAULTS = [
    ("vesrion=2", "--set vesrion", "a recipe has no key 'vesrion'", "did you mean 'version'?"),
    ("stages.bnid.env.A=1", "--set stages.bnid.env.A", "the recipe has no stages.bnid", "did you mean 'bind'?"),
    ("stages.bind.evn.A=1", "--set stages.bind.evn.A", "stages.bind has no key 'evn'", "did you mean 'env'?"),
    ("gpu.arch-lsit=8", "--set gpu.arch-lsit", "axis 'gpu' has no property 'arch-lsit'", "did you mean 'arch-list'?"),
    (
        "properties.gpu.cu130={arch-lsit='8'}",
        "--set properties.gpu.cu130",
        "axis 'gpu' has no property 'arch-lsit'",
        "did you mean 'arch-list'?",
    ),
    (
        "gpu.conda=x",
        "--set gpu.conda",
        "nothing in the recipe reads {gpu.conda}",
        "properties of gpu that it reads: arch-list",
    ),
    ("axes.blas=['mkl']", "--set axes.blas", "nothing in the recipe depends on axis 'blas'", None),
    ("gup.arch-list=8", "--set gup.arch-list", "a recipe has no key 'gup'", "did you mean gpu.arch-list?"),
    (
        "properties.gpu.cu99.arch-list=8",
        "--set properties.gpu.cu99.arch-list",
        "axis 'gpu' has no value 'cu99'",
        "cu130",
    ),
    ("properties.pgu.x.y=8", "--set properties.pgu.x.y", "the recipe has no axis 'pgu'", "did you mean 'gpu'?"),
    ("tests.smoke.imports.x=1", "--set tests.smoke.imports.x", "is a list, which can be set only as a whole", "=[...]"),
    ("name.x=1", "--set name.x", "name is a single value and has no keys", None),
    ("extends=pytorch", "--set extends", "a recipe has no key 'extends'", None),
    ("version", "--set", "'version' is not KEY=VALUE", "--set version=2.1.3"),
    ("=3", "--set", "'=3' is not KEY=VALUE", "--set version=2.1.3"),
    ("version=new", "--set version", "'new' is not a valid version (PEP 440)", None),
    (
        "stages.bind.workspace=maybe",
        "--set stages.bind.workspace",
        "expected true or false, found the string 'ma",
        None,
    ),
    ("stages.bind.action=compil", "--set stages.bind.action", "unexpected value 'compil'", '"compile"'),
    ("axes.python=3.x", "--set axes.python", "'3.x'", None),
]


SHORT = 'name = "My.Op"\nversion = "1"\nsource.path = "."\naxes.python = ["3.12"]\n'
FILLED_IN = [
    ("stages.build.env.CFLAGS=-O3", ("stages", "build", "env", "CFLAGS"), "-O3"),
    ("packages.my-op.local=x", ("packages", "my-op", "local"), "x"),
    ("environments.test.requires=pytest", ("environments", "test", "requires"), ["pytest"]),
    ("tests.imports.commands=pytest", ("tests", "imports", "commands"), ["pytest"]),
]


@pytest.mark.parametrize(("word", "path", "value"), FILLED_IN)
def test_tables_of_the_defaults_take_keys(word: str, path: tuple[str, ...], value: object) -> None:
    document = read_document(SHORT, "recipe.toml")
    found: object = apply_sets(document, [word], stand_in(document.values)).values
    for part in path:
        assert isinstance(found, dict)
        found = found[part]
    assert found == value


@pytest.mark.parametrize(
    ("word", "hint"),
    [
        ("stages.biuld.env.A=1", "'build'"),
        ("packages.myop.local=x", "'my-op'"),
        ("tests.import.commands=x", "'imports'"),
    ],
)
def test_a_table_that_the_defaults_do_not_have_is_a_fault(word: str, hint: str) -> None:
    document = read_document(SHORT, "recipe.toml")
    with pytest.raises(AxletreeError, match="the recipe has no") as caught:
        apply_sets(document, [word], stand_in(document.values))
    assert f"did you mean {hint}" in str(caught.value)
    with pytest.raises(AxletreeError, match=r"the recipe has no stages\.build"):
        apply_sets(read_document(WITH_TABLES, "recipe.toml"), ["stages.build.env.A=1"])


@pytest.mark.parametrize(("word", "file", "message", "hint"), FAULTS, ids=[word for word, *_ in FAULTS])
def test_a_fault_names_the_option(word: str, file: str, message: str, hint: str | None) -> None:
    with pytest.raises(AxletreeError, match=re.escape(message)) as caught:
        changed(WITH_TABLES, word)
    (problem,) = caught.value.problems
    assert (problem.file, problem.line, problem.excerpt) == (file, None, None)
    assert hint is None or hint in str(problem.hint)


def test_all_wrong_keys_are_named_at_once() -> None:
    with pytest.raises(UsageError) as caught:
        changed(SMALL, "a=1", "version=2", "b=2")
    assert [problem.file for problem in caught.value.problems] == ["--set a", "--set b"]


def test_a_fault_of_the_file_keeps_its_line() -> None:
    with pytest.raises(RecipeError) as caught:
        changed(SMALL.replace('version = "1.0"', 'version = "no"'), "axes.python=x")
    places = [(problem.file, problem.line) for problem in caught.value.problems]
    assert ("recipe.toml", 2) in places
    assert ("--set axes.python", None) in places


def test_an_axis_can_be_narrowed() -> None:
    text = OVERRIDDEN + '\n[[override]]\nwhen = { gpu = "cu13" }\nstage = "lib"\nenv = { C = "1" }\n'
    assert len(expand(changed(OVERRIDDEN, "axes.gpu=cpu"))) == 2
    with pytest.raises(RecipeError, match="axis 'gpu' has no value 'cu13'") as caught:
        changed(text, "axes.gpu=cpu")  # a value that it never had is a mistake all the same
    assert len(caught.value.problems) == 1


def test_another_kind_of_source_leaves_nothing_of_the_old_one() -> None:
    git = SMALL.replace(
        'source = { path = "src" }', 'source = { git = "https://e.org/r", ref = "v1", submodules = true }'
    )
    source = changed(git, "source.path=../src").source
    assert (source.path, source.git, source.ref, source.submodules) == ("../src", None, None, False)
    assert changed(git, "source.ref=v2").source.git == "https://e.org/r"


def test_keys_that_only_the_defaults_have_can_be_set() -> None:
    document = read_document('name = "x"\nversion = "1"\nsource.path = "."\naxes.python = ["3.11"]\n', "r.toml")
    defaults = stand_in(document.values)
    found = apply_sets(document, ["stages.build.env.A=1", "environments.test.requires=pytest"], defaults)
    assert found.values["stages"] == {"build": {"env": {"A": "1"}}}
    assert found.values["environments"] == {"test": {"requires": ["pytest"]}}
    assert place_of(found, ("stages", "build", "env", "A")).file == "--set stages.build.env.A"
    for text, near in [("stages.biuld.env.A=1", "'build'"), ("environments.tset.requires=x", "'test'")]:
        with pytest.raises(UsageError) as caught:
            apply_sets(document, [text], defaults)
        assert near in (caught.value.problems[0].hint or "")
    with pytest.raises(UsageError):
        apply_sets(document, ["stages.build.env.A=1"])


@pytest.mark.parametrize(
    ("text", "decides"),
    [
        ("stages.build.env.A=1", False),
        ("packages.x.local=y", False),
        ("tests.imports.commands=true", False),
        ("axes.python=3.12", True),
        ("environments.build.requires=x", True),
        ("gpu.arch-list=8.0", True),
        ("version=2", True),
        ("source.ref=v2", True),
    ],
)
def test_which_changes_decide_what_is_locked(text: str, *, decides: bool) -> None:
    assert decides_locks(text) is decides
