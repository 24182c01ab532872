"""Compile stages: settings that change configure the kept folder again, and only what they touch is compiled."""

from __future__ import annotations

import shutil
import subprocess
from typing import TYPE_CHECKING, Any

import pytest

from axletree.core.values import Digest
from axletree.store import Store
from support.shaped import compiled, make_shaped, trees
from support.tiny import need_pythons
from support.wheels import wheel_bytes

if TYPE_CHECKING:
    from pathlib import Path

    from support.tiny import Run, Tiny

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


def test_what_cmake_did_not_take_from_the_recipe_is_told_with_its_line(tmp_path: Path) -> None:
    shaped = make_shaped(tmp_path)
    shaped.change(
        'options = { USE_MAGMA = "OFF" }',
        'options.USE_MAGMA = "OFF"\noptions.USE_CUDNN = "ON"\noptions.USE_MAGNA = "ON"',
    )
    found = findings(shaped.built())
    lines = shaped.recipe.read_text().splitlines()
    line = {name: next(n for n, text in enumerate(lines, 1) if name in text) for name in ("USE_CUDNN", "USE_MAGNA")}
    assert {(each["rule"], each["severity"], each["where"]) for each in found} == {
        ("build/option-off", "warning", f"{shaped.recipe}:{line['USE_CUDNN']}"),
        ("build/option-unused", "warning", f"{shaped.recipe}:{line['USE_MAGNA']}"),
    }
    assert any("USE_CUDNN is OFF" in each["message"] for each in found)
    shaped.recipe.write_text("# A line more, which changes no key.\n" + shaped.recipe.read_text())
    again = {(each["rule"], each["where"]) for each in findings(shaped.built())}
    assert ("build/option-off", f"{shaped.recipe}:{line['USE_CUDNN'] + 1}") in again
    shaped.change('options.USE_CUDNN = "ON"\noptions.USE_MAGNA = "ON"', 'options.USE_CUDNN = "OFF"')
    assert findings(shaped.built()) == []


def findings(run: Run) -> list[dict[str, Any]]:
    """What the stage that compiles has found."""
    (core,) = (event for event in run.events if event["event"] == "stage-finished" and event["stage"] == "core")
    return [*core.get("findings", ())]


def test_targets_that_install_nothing_are_told(tmp_path: Path) -> None:
    shaped = make_shaped(tmp_path)
    shaped.change('files = ["lib/libferry.so", "include/**"]\n', 'targets = ["ferry"]\n')
    run = shaped.build()
    assert run.code == 1
    assert compiled(run, "core") == ["one.c", "two.c"]
    assert "nothing was installed" in run.why()
    assert "one of `targets` must install files, as the `install` target does" in run.why()


ENGINE = """\
cmake_minimum_required(VERSION 3.18)
project(ferry C)
find_library(ENGINE engine REQUIRED)
find_path(HEADERS engine.h REQUIRED)
add_library(ferry SHARED one.c)
target_include_directories(ferry PRIVATE ${HEADERS})
target_link_libraries(ferry ${ENGINE})
install(TARGETS ferry LIBRARY DESTINATION lib)
"""


@pytest.mark.parametrize("soname", ["libengine.so.3", "libengine.so.2.1"])
def test_cmake_finds_libraries_and_headers_of_wheels(tmp_path: Path, soname: str) -> None:
    """As those of MKL: wheels put them into ``lib`` and ``include``, under the SONAME alone."""
    (python,) = need_pythons(1)
    shaped = make_shaped(tmp_path)
    library = tmp_path / soname
    command = ["cc", "-shared", "-fPIC", "-x", "c", "-", f"-Wl,-soname,{soname}", "-o", str(library)]
    subprocess.run(command, input=b"int engine(void) { return 3; }", check=True)
    content = {
        f"demo-1.0.data/data/lib/{soname}": library.read_bytes(),
        "demo-1.0.data/data/include/engine.h": b"int engine(void);\n",
    }
    links = shaped.home / "links"
    links.mkdir()
    (links / "demo-1.0-py3-none-any.whl").write_bytes(wheel_bytes(content))
    (shaped.source / "CMakeLists.txt").write_text(ENGINE)
    (shaped.source / "one.c").write_text("#include <engine.h>\nint one(void) { return engine(); }\n")
    shaped.recipe.write_text(
        f'name = "ferry"\nversion = "1.0"\nsource = {{ path = "src" }}\n[axes]\npython = ["{python}"]\n'
        '[environments.c]\naxes = ["python"]\nrequires = ["demo"]\n[stages.core]\naction = "compile"\n'
        'axes = ["python"]\nenvironment = "c"\ntools = ["cc", "cmake", "ninja"]\n'
    )
    assert shaped.call("lock", str(shaped.recipe)).returncode == 0
    run = shaped.built()
    tree = Store.open(shaped.store).get_tree(Digest(trees(run)[f"core[py{python.replace('.', '')}]"]))
    assert [entry.path for entry in tree.entries] == ["lib/libferry.so"]
