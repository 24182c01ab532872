"""The commands on recipes, called as a user calls them, and where recipes are found."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from axletree import __version__
from axletree.app import recipes
from axletree.cli.main import COMMANDS, LazyGroup, load, main
from axletree.core.errors import HostError, RecipeError, UsageError
from support.envelopes import result_of
from support.recipes import SMALL

if TYPE_CHECKING:
    import click

ROOT = Path(__file__).parents[2]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with a recipe of four variants."""
    (tmp_path / "small.toml").write_text(SMALL)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def call(capsys: pytest.CaptureFixture[str], *args: str) -> tuple[int, str, str]:
    """Exit code, stdout, stderr."""
    with pytest.raises(SystemExit) as caught:
        main(args)
    code = caught.value.code
    assert isinstance(code, int)
    return code, *capsys.readouterr()


@pytest.mark.parametrize("name", COMMANDS)
def test_help_is_what_the_table_of_commands_says(name: str) -> None:
    command, summary = load(name), COMMANDS[name]
    assert (command.help or "").split("\n", 1)[0] == summary
    assert command.get_short_help_str(limit=200) == summary


def test_what_the_machine_refuses_is_no_traceback(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse(self: LazyGroup, ctx: click.Context) -> object:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS), "there/file")

    monkeypatch.setattr(LazyGroup, "invoke", refuse)
    with pytest.raises(SystemExit) as ended:
        main(["recipes"])
    assert ended.value.code == 3
    assert capsys.readouterr().err == "error: there/file: Read-only file system\n"


def test_help_imports_nothing_of_recipes() -> None:
    code = (
        "import sys\nfrom axletree.cli.main import main\n"
        "try:\n    main(['--help'])\nexcept SystemExit:\n    pass\n"
        "print([name for name in sys.modules if name.startswith(('packaging', 'axletree.recipe', 'axletree.app'))])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_planning_imports_nothing_that_fetches_or_reads_elf_files(tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "one.toml").write_text(
        'name = "one"\nversion = "1"\nsource = { path = "src" }\n'
        '[stages.lib]\naction = "run"\ncommands = ["true"]\n[packages.one]\nfrom = "lib"\nprefix = "one"\n'
    )
    code = (
        "import sys\nfrom axletree.cli.main import main\n"
        "try:\n    main(['plan', 'one.toml'])\nexcept SystemExit as ended:\n    print(ended.code)\n"
        "heavy = ('urllib3', 'ssl', 'rattler', 'axletree.binary.elf')\n"
        "print(sorted(name for name in sys.modules if name.startswith(heavy)))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-2:] == ["0", "[]"], done.stdout


def test_check(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = call(capsys, "check", "small.toml", "torch-scatter")
    lines = out.splitlines()
    assert (code, err) == (0, "")
    assert lines[0] == "ok: small 1.0, 4 variants, 2 stages"
    assert lines[1].startswith("ok: torch-scatter ")


def test_check_tells_all_errors_of_all_recipes(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "bad.toml").write_text(SMALL.replace('from = "bind"', 'from = "bond"').replace("imports", "import"))
    code, out, err = call(capsys, "check", "bad.toml", "small.toml", "none.toml")
    assert code == 2
    assert out == "ok: small 1.0, 4 variants, 2 stages\n"
    assert "bad.toml:29: packages.small.from: unknown stage 'bond'" in err
    assert "bad.toml:36: tests.smoke.import: unknown key" in err
    assert "recipe file none.toml does not exist" in err


def test_check_json(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "bad.toml").write_text(SMALL.replace('from = "bind"', 'from = "bond"'))
    code, out, err = call(capsys, "check", "--json", "small.toml", "bad.toml")
    document = json.loads(out)
    assert (code, err, document["schema"], document["command"]) == (2, "", 1, "check")
    good, bad = document["result"]["recipes"]
    assert (good["name"], good["variants"], good["problems"]) == ("small", 4, [])
    assert [(problem["line"], problem["key"]) for problem in bad["problems"]] == [(29, "packages.small.from")]


def test_matrix(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = call(capsys, "matrix", "small.toml", "-v", "py311-*", "-v", "*-cpu", "--skip", "py311-cpu")
    assert code == 0
    assert [line.split() for line in out.splitlines()] == [
        ["Variant", "python", "gpu"],
        ["py311-cu130", "3.11", "cu130"],
        ["py312-cpu", "3.12", "cpu"],
    ]


def test_matrix_github_is_one_line_for_a_job_matrix(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = call(capsys, "matrix", "small.toml", "--github", "-v", "*-cpu")
    assert code == 0
    assert out.count("\n") == 1
    assert json.loads(out) == {
        "include": [
            {"variant": "py311-cpu", "python": "3.11", "gpu": "cpu"},
            {"variant": "py312-cpu", "python": "3.12", "gpu": "cpu"},
        ]
    }


def test_matrix_json(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = call(capsys, "matrix", "small.toml", "--json")
    document = result_of(out)
    assert (code, document["recipe"], document["version"]) == (0, "small", "1.0")
    assert document["axes"] == {"python": ["3.11", "3.12"], "gpu": ["cpu", "cu130"]}
    assert document["variants"][0] == {"id": "py311-cpu", "values": {"python": "3.11", "gpu": "cpu"}}


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["matrix", "small.toml", "-v", "py39-cpu"], "no variant matches 'py39-cpu'"),
        (["matrix", "small.toml", "--skip", "*"], "removes every selected variant"),
        (["matrix", "small.toml", "--json", "--github"], "cannot be combined"),
        (["matrix", "torch-scattr"], "did you mean 'torch-scatter'?"),
        (["matrix", "smal.toml"], "did you mean small.toml?"),
        (["matrix", "small"], "to use the file in this folder, write small.toml"),
        (["matrix", "none/small.toml"], "folder none does not exist"),
        (["matrix", "./"], "is a folder"),
        (["check"], "Missing argument"),
        (["schema", "wheels"], "no schema exists for 'wheels'"),
    ],
)
def test_bad_usage(folder: Path, capsys: pytest.CaptureFixture[str], args: list[str], message: str) -> None:
    code, out, err = call(capsys, *args)
    assert (code, out) == (2, "")
    assert message in err


def test_a_suffix_alone_makes_no_file_similar(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = call(capsys, "matrix", "e.toml")
    assert (code, err) == (2, "error: recipe file e.toml does not exist\n")


def test_recipes(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = call(capsys, "recipes")
    assert code == 0
    assert out.splitlines()[0].split() == ["Name", "Version", "Variants", "Summary"]
    assert any(line.startswith("torch-scatter ") for line in out.splitlines())
    code, out, _ = call(capsys, "recipes", "--json")
    document = json.loads(out)
    assert (document["schema"], document["command"], document["version"]) == (1, "recipes", __version__)
    assert "torch-scatter" in [row["name"] for row in document["result"]["recipes"]]


@pytest.mark.parametrize(
    ("args", "title"), [([], "Axletree recipe"), (["recipe"], "Axletree recipe"), (["events"], "Axletree event")]
)
def test_schema(capsys: pytest.CaptureFixture[str], args: list[str], title: str) -> None:
    code, out, _ = call(capsys, "schema", *args)
    assert code == 0
    assert json.loads(out)["title"] == title


def test_a_recipe_knows_its_folder(folder: Path) -> None:
    loaded = recipes.load_recipe("small.toml")
    assert (loaded.path, loaded.places.companion) == (Path("small.toml"), Path("small"))
    assert recipes.load_recipe(folder / "small.toml").places.companion == folder / "small"


def test_shipped_recipes_are_found_by_name() -> None:
    names = [row.name for row in recipes.list_recipes().recipes]
    assert "torch-scatter" in names
    assert all(recipes.load_recipe(name).path.is_file() for name in names)


def test_files_that_are_no_recipes(folder: Path) -> None:
    (folder / "latin.toml").write_bytes(b'name = "a"\nsummary = "\xe9"\n')
    with pytest.raises(RecipeError, match=r"latin\.toml:2: the file is not UTF-8: byte 0xe9"):
        recipes.load_recipe("latin.toml")
    (folder / "large.toml").write_bytes(b"#" * ((1 << 20) + 1))
    with pytest.raises(RecipeError, match="larger than 1 MiB"):
        recipes.load_recipe("large.toml")
    (folder / "link.toml").symlink_to("link.toml")
    with pytest.raises((HostError, UsageError)):
        recipes.load_recipe("link.toml")


def test_a_byte_order_mark_does_no_harm(folder: Path) -> None:
    (folder / "mark.toml").write_text("\ufeff" + SMALL, encoding="utf-8")
    assert recipes.load_recipe("mark.toml").recipe.name == "small"
