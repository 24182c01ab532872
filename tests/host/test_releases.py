"""Releases and GPUs in upstream's words, by the commands that people call."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from axletree.app import planning
from axletree.app.releases import patterns_for_gpu
from axletree.cli.main import main
from axletree.core.errors import UsageError
from axletree.store.store import Store

if TYPE_CHECKING:
    from pathlib import Path

    from axletree.recipe.target import Target

TEXT = """\
name = "demo"
version = "2.6.0"
source = { path = "src-{version}" }

[axes]
gpu = ["cpu", "cu126", "cu130", "none"]

[stages.lib]
action = "run"
axes = ["gpu"]
commands = ["make VERSION={version}+{gpu}"]

[packages.demo]
from = "lib"
local = "{gpu}"
requires-python = ">=3.11"
requires = ["demo-data=={version.minor}.*"]
"""


@pytest.fixture
def recipe(tmp_path: Path) -> Path:
    """A recipe whose source is named after its version."""
    (tmp_path / "src-2.6.0").mkdir()
    (tmp_path / "src-2.6.0" / "a.txt").write_text("a\n")
    path = tmp_path / "demo.toml"
    path.write_text(TEXT)
    return path


def planned(recipe: Path, release: str | None, *patterns: str) -> Target:
    store = Store.open(recipe.parent / "store")
    request = planning.PlanRequest(recipe=str(recipe), patterns=patterns, release=release, out=recipe.parent / "dist")
    prepared = planning.prepare(request, store, environ=os.environ)
    return prepared.targets[0]


def test_packages_are_called_by_the_release_and_the_source_stays(recipe: Path) -> None:
    target = planned(recipe, "nightly=20260822", "cu126")
    assert target.packages[0].version == "2.6.0.dev20260822+cu126"
    assert target.packages[0].requires == ("demo-data==2.6.*",)
    assert target.stages[0].commands == ("make VERSION=2.6.0.dev20260822+cu126",)
    assert (target.source.version, target.source.location) == ("2.6.0", "src-2.6.0")
    assert planned(recipe, None, "cu126").packages[0].version == "2.6.0+cu126"
    assert planned(recipe, "tag=v2.7.0-rc1", "cpu").packages[0].version == "2.7.0+cpu"


@pytest.mark.parametrize(
    ("release", "message"),
    [
        ("nightly=2026", "is not a date"),
        ("git=1a2b3c4", "version 2.6.0\\+git1a2b3c4 already has a local label"),
        ("2.6.0+cu118", "already has a local label \\('cu118'\\)"),
        ("latest", "is neither a version"),
    ],
)
def test_what_is_no_release(recipe: Path, release: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        planned(recipe, release)


def test_a_local_version_where_packages_add_none(recipe: Path) -> None:
    recipe.write_text(TEXT.replace('local = "{gpu}"', 'index = "{gpu}"'))
    assert planned(recipe, "git=1a2b3c4d", "cpu").packages[0].version == "2.6.0+git1a2b3c4"


@pytest.mark.parametrize("desired", ["cu126", "12.6", "12.6-aarch64"])
def test_variants_of_a_gpu(recipe: Path, desired: str) -> None:
    assert patterns_for_gpu(str(recipe), desired, (), ()) == ("cu126",)


def test_a_gpu_that_no_variant_is_for(recipe: Path) -> None:
    with pytest.raises(
        UsageError, match=r"no variant is built for rocm7\.1\n  hint: values of axis gpu: cpu, cu126, cu130"
    ):
        patterns_for_gpu(str(recipe), "rocm7.1", (), ())
    with pytest.raises(UsageError, match="no variant is built for cpu"):
        patterns_for_gpu(str(recipe), "cpu", ("cu*",), ())
    with pytest.raises(UsageError, match="is not a valid DESIRED_CUDA"):
        patterns_for_gpu(str(recipe), "cuda", (), ())


def test_commands(recipe: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AXLETREE_STORE", str(recipe.parent / "store"))
    for args in (
        ["matrix", str(recipe), "--gpu", "13.0"],
        ["plan", str(recipe), "--gpu", "13.0", "--release", "rc=2"],
        ["build", str(recipe), "--gpu", "13.0", "--release", "rc=x", "--out", str(recipe.parent / "dist")],
    ):
        with pytest.raises(SystemExit):
            main(args)
    out, err = capsys.readouterr()
    assert "cu130    cu130" in out
    assert "lib[cu130]" in out
    assert "lib[cpu]" not in out
    assert err == "error: 'x' is not a number (expected, for example, rc=2)\n"
