"""Compile stages: settings that change configure the kept folder again, and only what they touch is compiled."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

from support.shaped import compiled, make_shaped, trees

if TYPE_CHECKING:
    from pathlib import Path

    from support.tiny import Tiny

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("workspace")]


def anew(shaped: Tiny, stage: str) -> str:
    """The stage's tree, made with no workspace, no earlier result and nothing in a compiler cache."""
    for folder in ("workspaces", "results", "cache"):
        shutil.rmtree(shaped.store / folder)
    return trees(shaped.built())[stage]


def test_the_library_is_compiled_once_and_linear_algebra_twice(tmp_path: Path) -> None:
    shaped = make_shaped(tmp_path)
    run = shaped.built()
    assert compiled(run, "core") == ["linalg.c", "one.c", "two.c"]
    assert [compiled(run, f"linalg[{each}]") for each in ("nomagma", "magma")] in (
        [[], ["linalg.c"]],
        [["linalg.c"], ["linalg.c"]],
    )
    assert trees(run)["linalg[nomagma]"] != trees(run)["linalg[magma]"]
    made = {stage: trees(run)[stage] for stage in ("core", "linalg[nomagma]", "linalg[magma]")}
    for folder in ("workspaces", "results", "cache"):
        shutil.rmtree(shaped.store / folder)
    shaped.change('continues = "core"\n', "")
    again = trees(shaped.built())
    assert {stage: again[stage] for stage in made} == made


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ('options = { USE_MAGMA = "OFF" }', 'env = { CFLAGS = "-O1" }', ["linalg.c", "one.c", "two.c"]),
        ('files = ["lib/libferry.so", "include/**"]', "", []),
    ],
)
def test_a_changed_setting_compiles_what_it_touches(tmp_path: Path, old: str, new: str, expected: list[str]) -> None:
    shaped = make_shaped(tmp_path)
    shaped.recipe.write_text(
        shaped.recipe.read_text().partition("[stages.linalg]")[0].replace('[axes]\nmagma = ["off", "on"]\n', "")
    )
    shaped.built()
    shaped.change(old, new)
    run = shaped.built()
    assert compiled(run, "core") == expected
    assert trees(run)["core"] == anew(shaped, "core")
    shaped.change(new or "[stages.core]\n", old if new else f"[stages.core]\n{old}\n")
    run = shaped.built()
    assert trees(run)["core"] == anew(shaped, "core")


def test_a_feature_that_was_turned_off_fails_before_anything_is_compiled(tmp_path: Path) -> None:
    shaped = make_shaped(tmp_path)
    shaped.change(
        'options = { USE_MAGMA = "OFF" }',
        'options = { USE_CUDNN = "ON" }\nexpect = { USE_CUDNN = "ON", USE_MAGMA = "OFF" }',
    )
    run = shaped.build()
    assert run.code == 1
    assert "USE_CUDNN is ON (CMakeCache.txt" not in run.why()
    assert "USE_CUDNN is OFF (summary), not ON" in run.why()
    assert "CUDNN_ROOT" in run.why()
    assert compiled(run, "core") == []


def test_targets_that_install_nothing_are_told(tmp_path: Path) -> None:
    shaped = make_shaped(tmp_path)
    shaped.change('files = ["lib/libferry.so", "include/**"]\n', 'targets = ["ferry"]\n')
    run = shaped.build()
    assert run.code == 1
    assert compiled(run, "core") == ["one.c", "two.c"]
    assert "nothing was installed" in run.why()
    assert "one of `targets` must install files, as `install` does" in run.why()
