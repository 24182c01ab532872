"""`env import` as people call it: what it prints, adds to a recipe and refuses."""

from __future__ import annotations

import json
import sys
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import rattler
from click.testing import CliRunner

from axletree.app.env_import import import_environment
from axletree.cli.main import cli
from axletree.core.errors import AxletreeError
from axletree.environment.delta import Order
from axletree.environment.description import Description, InstalledPackage
from axletree.environment.export import exported
from support.conda import demo, index, put, put_python, text

if TYPE_CHECKING:
    from click.testing import Result

FILES = sorted((Path(__file__).parents[1] / "golden" / "imported").glob("*.yml"))
YML = """\
name: demo
channels: [./channel, nodefaults]
dependencies:
  - python=3.11
  - zlib=1.3=h1_0   # for cmake
"""


@pytest.fixture
def folder(tmp_path: Path, isolated_home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("environment.yml").write_text(YML)
    return tmp_path


def call(*arguments: str | Path) -> Result:
    return CliRunner().invoke(cli, ["env", *map(str, arguments)], catch_exceptions=True)


def refused(*arguments: str | Path) -> str:
    result = call(*arguments)
    assert isinstance(result.exception, AxletreeError), result.output
    return str(result.exception)


def tables(toml: str) -> dict[str, Any]:
    found: dict[str, Any] = tomllib.loads(toml)["environments"]
    return found


def test_a_table_is_printed_and_reported(folder: Path) -> None:
    printed = call("import", "environment.yml")
    assert printed.exit_code == 0, printed.output
    assert printed.stdout.startswith("# From environment.yml.\n# line 2, `nodefaults`: left out, because")
    assert '  "zlib=1.3=h1_0",  # for cmake\n' in printed.stdout
    assert tables(printed.stdout)["demo"] == {
        "axes": [],
        "python": "3.11",
        "provider": "conda",
        "channels": ["./channel"],
        "requires": ["zlib=1.3=h1_0"],
    }
    result = json.loads(call("import", "environment.yml", "--json").stdout)["result"]
    assert result["table"] == printed.stdout
    assert [note["line"] for note in result["notes"]] == [2]


def test_what_is_imported_can_be_created_and_imported_again(folder: Path) -> None:
    """A file of environments needs no name, version and source; what is exported of it says the same again."""
    channel = folder / "channel"
    put_python(channel)
    put(channel, demo(name="zlib", version="1.3", build="h1_0"), [text("include/zlib.h")])
    index(channel)
    added = call("import", "environment.yml", "--out", "envs.toml")
    assert added.exit_code == 0, added.output
    assert "added environment demo to envs.toml\n1 note, also in envs.toml as comments:\n" in added.stdout
    assert added.stdout.endswith("create it: axletree env create envs.toml --environment demo\n")
    made = call("create", "envs.toml", "--environment", "demo")
    assert made.exit_code == 0, made.output + str(made.exception)
    assert (folder / ".axletree/env/demo-any/prefix/include/zlib.h").exists()
    (folder / "again").mkdir()
    for unlocked in ([], ["--unlocked"]):
        Path("again/environment.yml").write_text(call("export", "envs.toml", *unlocked).stdout)
        (again,) = tables(call("import", "again/environment.yml").stdout).values()
        asked = {"zlib=1.3=h1_0"} if unlocked else {"zlib=1.3=h1_0", "python=3.11.7=h1_0_cpython"}
        assert set(again["requires"]) - {"python_abi=3.11=8_cp311"} == asked
        assert again["python"] == "3.11"
        assert again["channels"] == [channel.as_uri()]
    assert "the file has only environments, so there is nothing to build" in str(
        CliRunner().invoke(cli, ["build", "envs.toml"]).exception
    )
    checked = CliRunner().invoke(cli, ["check", "envs.toml"])
    assert checked.stdout == "ok: envs, 1 variant, 0 stages\n"
    whole = CliRunner().invoke(cli, ["check", "envs.toml", "--expanded"]).stdout
    assert tomllib.loads(whole) == tomllib.loads(Path("envs.toml").read_text())


def test_what_is_exported_for_conda_comes_back_as_it_was(folder: Path) -> None:
    """Of any environment: match specs, wheels, tricky names of channels."""
    requires = ("zlib", "numpy >=1.26,<2", "libblas=*=*mkl", "ours::x[build_number='>2']", "y ==1.0 h*_0")
    wheels = ("mkl", "a[x,y]>=1,<2; python_version >= '3.9'", "b @ https://wheels.example/b-1-py3-none-any.whl")
    fields: dict[str, Any] = {"folder": "/e", "recipe": "r", "variant": "cu124", "name": "dev", "python": "3.13t"}
    fields |= {"order": Order(), "packages": (InstalledPackage(name="zlib", version="1!1.3+a", build="h1_0"),)}
    conda = Description(provider="conda", requires=requires, channels=("ours", "file:///a%20b"), deltas=(), **fields)
    venv = Description(provider="venv", requires=wheels, channels=(), deltas=(), **fields)
    found = []
    for description in (conda, venv):
        Path("back.yml").write_text(exported(description, "environment.yml", platform="linux-64", locked=False))
        (table,) = tables(import_environment(Path("back.yml"), name=None, recipe=None).table).values()
        found.append(table)
    assert tuple(found[0]["requires"]) == requires
    assert found[0]["channels"] == ["ours", "file:///a%20b"]
    assert tuple(found[1]["wheels"]) == wheels
    assert [table["python"] for table in found] == ["3.13t", "3.13t"]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_rattler_takes_what_is_imported(path: Path) -> None:
    (table,) = tables(import_environment(path, name=None, recipe=None).table).values()
    for spec in table["requires"]:
        rattler.MatchSpec(spec, strict=False)


def test_paths_are_relative_to_the_recipe(folder: Path) -> None:
    (folder / "sub").mkdir()
    yml = "channels: [../ours, ./mine, conda-forge]\ndependencies: [a, pip: [-r reqs/a.txt, -r b.txt]]\n"
    Path("sub/environment.yml").write_text(yml)
    printed = tables(call("import", "sub/environment.yml").stdout)["imported"]
    assert printed["channels"] == ["./ours", "./sub/mine", "conda-forge"]
    assert printed["requires-from"] == "sub/reqs/a.txt"
    assert call("import", "sub/environment.yml", "--out", "recipes/r.toml", "--name", "ours").exit_code == 0
    added = tables(Path("recipes/r.toml").read_text())["ours"]
    assert added["channels"] == ["../ours", "../sub/mine", "conda-forge"]
    assert added["requires-from"] == "../sub/reqs/a.txt"


def test_a_recipe_keeps_what_it_has(folder: Path) -> None:
    recipe = folder / "r.toml"
    recipe.write_text('name = "x"  # ours\n\n[axes]\n\n[environments.demo]\naxes = []\n')
    before = recipe.read_text()
    message = refused("import", "environment.yml", "--out", recipe)
    assert f"{recipe}:5: environments.demo: the recipe already has an environment called 'demo'" in message
    assert recipe.read_text() == before
    assert call("import", "environment.yml", "--out", recipe, "--name", "other").exit_code == 0
    assert recipe.read_text().startswith(before)
    assert tables(recipe.read_text()).keys() == {"demo", "other"}
    for wrong, said in (
        ("environments = {}\n", ":1: environments: the environments are written in braces"),
        ("x = [\n", "is not valid TOML"),
    ):
        recipe.write_text(wrong)
        assert said in refused("import", "environment.yml", "--out", recipe)
        assert recipe.read_text() == wrong
    assert not list(folder.glob(".r.toml*"))


def test_what_can_not_be_imported_is_told(folder: Path) -> None:
    assert "nothing.yml: the file cannot be read: No such file" in refused("import", "nothing.yml")
    assert "'A b' is not a valid name" in refused("import", "environment.yml", "--name", "A b")
    Path("pixi.toml").write_text("")
    assert "pixi.toml: .toml files are not supported" in refused("import", "pixi.toml")
    Path("requirements.txt").write_text("numpy\n")
    assert "requirements.txt: .txt files are not supported" in refused("import", "requirements.txt")
    for data, said in (
        (b"dependencies:\n  - caf\xe9\n", ":2: the file is not UTF-8: byte 0xe9"),
        (b"\xff\xfed\0e\0p\0", ":1: the file is not UTF-8"),
        (b"\x7fELF\x02\x01\x01\0", ":1: the file is not a text file: it contains the character U+007F"),
        (b"[" * 600, "nested too deeply"),
        (b"dependencies:\n" + b"- a\n" * 5_001, "the file has more than 5000 dependencies"),
        (b"x" * (2 << 20), "larger than 1 MiB, the limit for files of environments"),
    ):
        Path("bad.yml").write_bytes(data)
        assert said in refused("import", "bad.yml")
    assert (f"{sys.version_info.major}.{sys.version_info.minor}") in import_environment(
        FILES[1], name=None, recipe=None
    ).table
