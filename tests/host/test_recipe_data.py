"""Data files on disk, and presets, by the commands that people call."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from axletree.app.recipes import load_recipe
from axletree.app.shipped import recipes_folder
from axletree.cli.main import main
from axletree.core.errors import RecipeError
from support.envelopes import result_of
from support.recipes import SMALL

if TYPE_CHECKING:
    from collections.abc import Callable

TEXT = SMALL.replace("GPU={gpu} ", "GPU={gpu} ARCH='{gpu.arch-list}' ").replace(
    "[axes]", 'data = ["d/gpu.toml"]\n\n[axes]'
)
GPU = '[properties.gpu."*"]\narch-list = "8.0"\n'
PRESETS = Path(__file__).parents[2] / "recipes" / "pytorch" / "presets.toml"


@pytest.fixture
def recipe(tmp_path: Path) -> Path:
    """A recipe with a data file, not in the working folder."""
    (tmp_path / "r" / "d").mkdir(parents=True)
    (tmp_path / "r" / "small.toml").write_text(TEXT)
    (tmp_path / "r" / "d" / "gpu.toml").write_text(GPU)
    return tmp_path / "r" / "small.toml"


def call(capsys: pytest.CaptureFixture[str], *args: object) -> tuple[int, str, str]:
    """Exit code, stdout, stderr."""
    with pytest.raises(SystemExit) as caught:
        main([str(arg) for arg in args])
    code = caught.value.code
    assert isinstance(code, int)
    return code, *capsys.readouterr()


def test_a_data_file_is_found_beside_the_recipe(
    recipe: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert load_recipe(recipe).recipe.properties["gpu"]["cu130"] == {"arch-list": "8.0"}
    monkeypatch.chdir(recipe.parents[1])
    assert call(capsys, "check", "r/small.toml") == (0, "ok: small 1.0, 4 variants, 2 stages\n", "")


def into_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


BREAK: dict[str, tuple[Callable[[Path], object], str]] = {
    "absent": (Path.unlink, "small.toml:5: data[0]: cannot read d/gpu.toml: No such file or directory"),
    "folder": (into_folder, "data[0]: cannot read d/gpu.toml: Is a directory"),
    "binary": (
        lambda path: path.write_bytes(b"a\n\xff"),
        "cannot read d/gpu.toml: the file is not UTF-8: byte 0xff (line 2)",
    ),
    "large": (lambda path: path.write_bytes(b"#" * (1 << 20) + b"#"), "larger than 1 MiB"),
    "no-toml": (lambda path: path.write_text("[properties\n"), "d/gpu.toml:1: the file is not valid TOML"),
    "lacking": (lambda path: path.write_text(GPU.replace("*", "cpu")), "gpu has no property 'arch-list' for 'cu130'"),
}


@pytest.mark.parametrize("how", BREAK)
def test_faulty_data_files(recipe: Path, capsys: pytest.CaptureFixture[str], how: str) -> None:
    spoil, message = BREAK[how]
    spoil(recipe.parent / "d" / "gpu.toml")
    code, out, err = call(capsys, "check", recipe)
    assert (code, out) == (2, "")
    assert message in err
    assert err.count("small.toml:") + err.count("gpu.toml:1") == 1, "one problem, and nothing that follows from it"


def test_check_json_names_the_data_file(recipe: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (recipe.parent / "d" / "gpu.toml").write_text(f"{GPU}minor = 'x'\n")
    _, out, _ = call(capsys, "check", "--json", recipe)
    (problem,) = result_of(out)["recipes"][0]["problems"]
    assert (problem["file"], problem["line"]) == (str(recipe.parent / "d" / "gpu.toml"), 3)


def test_a_file_outside_is_never_read(recipe: Path) -> None:
    secret = recipe.parents[1] / "secret.toml"
    secret.write_text("password = 'hunter2'\n")
    recipe.write_text(TEXT.replace("d/gpu.toml", "../secret.toml"))
    with pytest.raises(RecipeError, match="must be a relative path inside the folder") as caught:
        load_recipe(recipe)
    assert "hunter2" not in str(caught.value)


def test_data_of_shipped_recipes_ships() -> None:
    folder = recipes_folder()
    assert folder is not None
    for path in folder.glob("*.toml"):
        assert load_recipe(path).recipe.name


@pytest.fixture
def with_presets(recipe: Path) -> Path:
    """The recipe with PyTorch's presets."""
    (recipe.parent / "d" / "presets.toml").write_bytes(PRESETS.read_bytes())
    recipe.write_text(TEXT.replace('"d/gpu.toml"', '"d/gpu.toml", "d/presets.toml"'))
    return recipe


def test_matrix_of_a_preset(with_presets: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = call(capsys, "matrix", with_presets, "--preset", "conda-forge-2024-12")
    assert code == 0
    assert "conda-forge-2024-12: 21 configurations, 75 variants, 87 packages" in out.splitlines()
    _, out, _ = call(capsys, "matrix", with_presets, "--preset", "conda-forge-2026-08", "--json")
    document = result_of(out)
    assert document["recipe"] == "small"
    document = document["preset"]
    assert document["totals"] == {"configurations": 16, "variants": 80, "packages": 192}
    assert {row["packages"] for row in document["configurations"]} == {12}
    assert len({variant["id"] for variant in document["variants"]}) == 80


def test_matrix_of_a_preset_that_is_not_there(with_presets: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = call(capsys, "matrix", with_presets, "--preset", "conda-forge-2024")
    assert code == 2
    assert "recipe small has no preset 'conda-forge-2024'\n  hint: did you mean 'conda-forge-2024-12'?" in err
    code, _, err = call(capsys, "matrix", with_presets, "--preset", "conda-forge-2024-12", "--github")
    assert code == 2
    assert "--preset and --github cannot be combined" in err
