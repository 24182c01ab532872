"""Recipes that recipes import, as they are found and read: by name and by path, once each, without a cycle."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from axletree.app.imports import LoadedImports, check_imports, load_imports, refuse_doubles
from axletree.app.lacking import lacking_findings
from axletree.app.planning import PlanRequest, prepare
from axletree.app.recipes import files_of, load_recipe
from axletree.cli.recipe_options import split_sources
from axletree.core.errors import AxletreeError, LockError, RecipeError, UsageError
from axletree.recipe.axes import expand
from axletree.recipe.locks import LockedWheel
from axletree.recipe.target import resolve
from axletree.store import Store
from support.faulty import PYTHON, Project
from support.targets import inputs_of, locked

if TYPE_CHECKING:
    from pathlib import Path

    from axletree.core.errors import Problem

RECIPE = """\
name = "NAME"
version = "1.0"
source = { path = "src" }

[stages.lib]
action = "run"
commands = ["make"]

[packages.NAME]
from = "lib"
"""


def write(folder: Path, name: str, text: str = "", *, called: str = "") -> Path:
    path = folder / f"{name}.toml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(RECIPE.replace("NAME", called or path.stem) + text, encoding="utf-8")
    return path


def imports(*named: str) -> str:
    """Tables that import recipes by their paths."""
    return "".join(f'[recipes.{path.rpartition("/")[2].removesuffix(".toml")}]\nrecipe = "{path}"\n' for path in named)


def load(path: Path) -> LoadedImports:
    loaded = load_recipe(path)
    found = load_imports(loaded)
    check_imports(found, [resolve(loaded.recipe, each) for each in expand(loaded.recipe)])
    return found


def problem_of(path: Path) -> Problem:
    with pytest.raises(AxletreeError) as caught:
        load(path)
    assert len(caught.value.problems) == 1
    return caught.value.problems[0]


def test_paths_are_relative_to_the_recipe_that_imports_and_each_recipe_is_read_once(tmp_path: Path) -> None:
    write(tmp_path, "libs/low")
    write(tmp_path, "libs/more/mid", imports("../low.toml"))
    top = write(tmp_path, "top", imports("libs/more/mid.toml", "libs/more/../low.toml"))
    found = load(top)
    assert list(found.recipes) == ["top", "mid", "low"]  # each before those that it imports
    assert found.links == {"top": {"mid": "mid", "low": "low"}, "mid": {"low": "low"}, "low": {}}
    assert found.recipes["low"].path == tmp_path / "libs/low.toml"


def test_a_recipe_that_ships_is_imported_by_its_name_and_has_its_own_locks(tmp_path: Path) -> None:
    axes = 'axes = { python = ["3.11"], gpu = ["cu126"] }\n'
    path = write(tmp_path, "top", imports("magma") + 'axes = { blas = "OpenBLAS" }\n')
    path.write_text(path.read_text().replace("\n[stages", f"{axes}\n[stages", 1), encoding="utf-8")
    found = load(path)
    assert found.recipes["magma"].asked == "magma"
    assert found.recipes["magma"].words == ("magma",)


def test_what_a_base_imports_is_relative_to_the_base(tmp_path: Path) -> None:
    write(tmp_path, "base/low")
    write(tmp_path, "base/common", imports("low.toml"))
    (tmp_path / "top.toml").write_text('extends = "base/common.toml"\nname = "top"\n', encoding="utf-8")
    assert load(tmp_path / "top.toml").recipes["low"].path == tmp_path / "base/low.toml"


def test_a_recipe_that_imports_itself(tmp_path: Path) -> None:
    problem = problem_of(write(tmp_path, "top", imports("top.toml")))
    assert (problem.message, problem.line) == ("the recipe imports itself", 12)
    assert 'inputs = ["lib"]' in (problem.hint or "")


def test_a_cycle_names_all_files_and_lines(tmp_path: Path) -> None:
    write(tmp_path, "low", '[environments.a]\naxes = []\npython = "3.11"\n' + imports("top.toml"))
    write(tmp_path, "mid", imports("low.toml"))
    problem = problem_of(write(tmp_path, "top", imports("mid.toml")))
    places = [f"{tmp_path}/top.toml, line 12", f"{tmp_path}/mid.toml, line 12", f"{tmp_path}/low.toml, line 15"]
    assert (
        problem.message == f"the recipes import each other in a cycle: {' -> '.join([*places, f'{tmp_path}/top.toml'])}"
    )
    assert (problem.file, problem.line) == (f"{tmp_path}/low.toml", 15)


def test_two_files_of_one_name_are_a_conflict_that_names_both(tmp_path: Path) -> None:
    write(tmp_path, "one/low")
    write(tmp_path, "two/low", called="low")
    write(tmp_path, "mid", imports("one/low.toml"))
    problem = problem_of(write(tmp_path, "top", imports("mid.toml", "two/low.toml")))
    assert problem.message == (
        f"two recipes are named 'low': {tmp_path}/two/low.toml, and {tmp_path}/one/low.toml "
        f"(imported by {tmp_path}/mid.toml, line 12)"
    )
    assert (problem.file, problem.line) == (f"{tmp_path}/top.toml", 14)


def test_a_recipe_of_the_name_of_the_one_that_is_built(tmp_path: Path) -> None:
    write(tmp_path, "low", called="top")
    problem = problem_of(write(tmp_path, "top", imports("low.toml")))
    assert "two recipes are named 'top'" in problem.message
    assert "the recipe that is built" in problem.message


@pytest.mark.parametrize(
    ("named", "message", "hint"),
    [
        ("lows.toml", "recipe file {0}/lows.toml does not exist", "did you mean {0}/low.toml?"),
        ("../nowhere/low.toml", "does not exist", "folder {1}/nowhere does not exist"),
        ("magmo", "no recipe named 'magmo' ships with Axletree", "did you mean 'magma'?"),
        ("low", "no recipe named 'low' ships with Axletree", "for the file in this folder, write low.toml"),
    ],
)
def test_recipes_that_are_not_there(named: str, message: str, hint: str, tmp_path: Path) -> None:
    write(tmp_path, "low")
    problem = problem_of(write(tmp_path, "top", imports(named)))
    assert message.format(tmp_path, tmp_path.parent) in problem.message
    assert problem.hint == hint.format(tmp_path, tmp_path.parent)
    assert problem.line == 12


def test_faults_of_imported_recipes_are_told_in_their_own_files(tmp_path: Path) -> None:
    write(tmp_path, "low")
    write(
        tmp_path, "mid", imports("low.toml") + '[stages.more]\naction = "run"\ncommands = ["x"]\ninputs = ["low/lob"]\n'
    )
    problem = problem_of(write(tmp_path, "top", imports("mid.toml")))
    assert (problem.file, problem.line, problem.hint) == (f"{tmp_path}/mid.toml", 16, "did you mean 'lib'?")


def test_an_imported_recipe_whose_stages_are_not_locked_names_its_own_command(tmp_path: Path) -> None:
    (tmp_path / "low").mkdir()
    (tmp_path / "low/src").mkdir()
    (tmp_path / "low/src/pyproject.toml").write_text('[project]\nname = "low"\nversion = "1"\n', encoding="utf-8")
    (tmp_path / "low/low.toml").write_text(
        'source = { path = "src" }\naxes = { python = ["3.11"] }\n', encoding="utf-8"
    )
    top = write(tmp_path, "top", imports("low/low.toml") + 'axes = { python = "3.11" }\n')
    with pytest.raises(RecipeError) as caught:
        load(top)
    assert not isinstance(caught.value, LockError)  # `build` would lock the other recipe, in vain
    assert f"axletree lock {tmp_path}/low/low.toml" in str(caught.value)


def test_sources_of_imported_recipes_are_named(tmp_path: Path) -> None:
    write(tmp_path, "low")
    loaded = load_recipe(write(tmp_path, "top", imports("low.toml")))
    assert load_imports(loaded, {"low": tmp_path}).recipes["low"].recipe.source.path == str(tmp_path)
    for name, hint in (("lou", "did you mean 'low'?"), ("top", "recipes that it imports: low")):
        with pytest.raises(UsageError) as caught:
            load_imports(loaded, {name: tmp_path})
        assert caught.value.problems[0].hint == hint
    with pytest.raises(UsageError, match="source folder does not exist"):
        load_imports(loaded, {"low": tmp_path / "none"})


def test_files_of_imported_recipes_are_files_of_the_recipe(tmp_path: Path) -> None:
    """An editable tree is planned again after one of them changed."""
    low, mid = write(tmp_path, "low"), write(tmp_path, "mid", imports("low.toml"))
    lock = tmp_path / "low/source.lock.toml"
    lock.parent.mkdir()
    lock.touch()
    assert files_of(write(tmp_path, "top", imports("mid.toml", "none.toml"))) == (tmp_path / "top.toml", mid, low, lock)
    assert files_of(write(tmp_path, "low", imports("mid.toml"))) == (low, lock, mid)


def test_folders_on_the_command_line() -> None:
    own, others = split_sources(["src", "low=../low", "mid=a=b"])
    assert (str(own), {name: str(folder) for name, folder in others.items()}) == (
        "src",
        {"low": "../low", "mid": "a=b"},
    )
    assert [str(split_sources([text])[0]) for text in ("./low=x", "/a=b")] == ["low=x", "/a=b"]
    for twice in (["a", "b"], ["low=a", "low=b"]):
        with pytest.raises(UsageError, match="twice: a and b"):
            split_sources(twice)


def test_a_distribution_that_the_lock_has_too(tmp_path: Path) -> None:
    write(tmp_path, "low")
    text = imports("low.toml") + '[environments.e]\naxes = []\npython = "3.11"\npackages = ["low/low"]\n'
    loaded = load_recipe(write(tmp_path, "top", text))
    targets = [resolve(loaded.recipe, each) for each in expand(loaded.recipe)]
    for name in ("low", "lower"):
        wheel = LockedWheel(name=name, version="0.9", filename="x.whl", size=1, sha256="0" * 64)
        environments = {each.lock: locked(each, wheels=[wheel]) for each in targets[0].environments}
        inputs = inputs_of(targets, environments=environments)
        if name == "lower":
            refuse_doubles(loaded, targets, inputs)
            continue
        with pytest.raises(
            RecipeError, match=r"the environment gets low from a recipe, but its lock has low 0\.9"
        ) as caught:
            refuse_doubles(loaded, targets, inputs)
        assert caught.value.problems[0].line == 16


def test_a_plan_tells_of_each_recipe_what_is_not_locked(tmp_path: Path) -> None:
    environment = '[environments.e]\naxes = []\npython = "3.11"\nrequires = ["cmake"]\n'
    low = write(tmp_path, "low", environment)
    low.write_text(low.read_text().replace('["make"]', '["make"]\nenvironment = "e"'), encoding="utf-8")
    more = '[stages.more]\naction = "run"\ncommands = ["x"]\ninputs = ["low/lib"]\nenvironment = "e"\n'
    top = write(tmp_path, "top", imports("low.toml") + environment + more)
    (tmp_path / "src").mkdir()
    request = PlanRequest(recipe=str(top), out=tmp_path / "dist")
    prepared = prepare(request, Store.open(tmp_path / "store"), environ={}, only_plan=True)
    fixes = [finding.fix for finding in lacking_findings(prepared) if finding.where == "locks"]
    assert fixes == [f"run `axletree lock {low}`", f"run `axletree lock {top}`"]


def test_env_does_not_build_packages_of_other_recipes(tmp_path: Path) -> None:
    write(tmp_path, "low")
    text = imports("low.toml") + f'[environments.e]\naxes = []\npython = "{PYTHON}"\npackages = ["low/low"]\n'
    project = Project(tmp_path)
    ended = project.run("env", "create", write(tmp_path, "top", text))
    assert ended.code == 2
    assert "top.toml:16: environments.e.packages: the environment has packages of other recipes" in ended.err


def test_an_imported_stage_with_an_image_is_refused(tmp_path: Path) -> None:
    low = write(tmp_path, "low", '[images.i]\nfrom = "debian:12"\n')
    low.write_text(low.read_text().replace('commands = ["make"]', 'commands = ["make"]\nimage = "i"'), encoding="utf-8")
    text = imports("low.toml") + '[stages.more]\naction = "run"\ncommands = ["x"]\ninputs = ["low/lib"]\n'
    request = PlanRequest(recipe=str(write(tmp_path, "top", text)), out=tmp_path / "dist")
    with pytest.raises(RecipeError, match="runs in an image, which an imported recipe cannot do") as caught:
        prepare(request, Store.open(tmp_path / "store"), environ={}, only_plan=True)
    assert caught.value.problems[0].file == str(low)
