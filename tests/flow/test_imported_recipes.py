"""Two recipes and two axes in one plan: a library of one, compiled once, linked by an extension of the other."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from axletree.store import Store, verify
from support.faulty import PYTHON, SOURCES, Project, make_project
from support.waiting import until

if TYPE_CHECKING:
    from support.faulty import Ended

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("imported-recipes")]

COMMON = """\
name = "base"
version = "2.0"
summary = "A library."
source = { path = "base-src" }

[axes]
platform = ["cpu", "cu126"]
blas = ["mkl", "openblas"]

[[patches]]
file = "answer.patch"

[stages.lib]
action = "run"
axes = ["platform"]
tools = ["c++"]
commands = [
  "if test -e wait; then sleep 2; fi",
  "mkdir -p $AXLETREE_OUT/lib",
  "flags='-DNAME=name_{platform} -shared -fPIC -Wl,-soname,libsmall.so'",
  "c++ $CXXFLAGS $flags -o $AXLETREE_OUT/lib/libsmall.so small.cpp",
]

[stages.docs]
action = "run"
commands = ["exit 1"]

[packages.libsmall]
from = "lib"
prefix = "libsmall"
local = "{platform}"
"""
"""What `base` extends, in another folder: its patch and its source are relative to that."""

BASE = """\
extends = "common/common.toml"

[packages.libsmall]
summary = "A library of another recipe."
"""

PATCH = """\
--- a/small.cpp
+++ b/small.cpp
@@ -1 +1,2 @@
-extern "C" int small_answer() { return 41; }
+extern "C" int small_answer() { return 42; }
+extern "C" void NAME() {}
"""

EXTENSION = f"""\
name = "small"
version = "1.0"
summary = "An extension."
source = {{ path = "src" }}

[axes]
python = ["{PYTHON}"]
gpu = ["cpu", "cu126"]

[recipes.lower]
recipe = "lower/base.toml"
axes = {{ platform = "{{gpu}}", blas = "mkl" }}

[environments.plain]
axes = ["python", "gpu"]
packages = ["lower/libsmall"]

[stages.bind]
action = "run"
axes = ["python", "gpu"]
environment = "plain"
inputs = ["lower/lib"]
tools = ["c++"]
commands = [
  "cmp $AXLETREE_IN_LOWER_LIB/lib/libsmall.so $VIRTUAL_ENV/lib/python{{python}}/site-packages/libsmall/lib/libsmall.so",
  "mkdir $AXLETREE_OUT/small; cp __init__.py $AXLETREE_OUT/small/",
  "include=$(python -c 'import sysconfig; print(sysconfig.get_path(\\"include\\"))')",
  "suffix=$(python -c 'import sysconfig; print(sysconfig.get_config_var(\\"EXT_SUFFIX\\"))')",
  "c++ $CXXFLAGS -shared -fPIC -I$include -o $AXLETREE_OUT/small/_small$suffix bind.cpp \
-L$AXLETREE_IN_LOWER_LIB/lib -lsmall '-Wl,-rpath,$ORIGIN/../libsmall/lib'",
]

[packages.small]
from = "bind"
local = "{{gpu}}"
requires = ["libsmall==2.0+{{gpu}}"]
provided-by = {{ libsmall = ["libsmall.so"] }}

[tests.smoke]
packages = ["small"]
environment = "plain"
installers = ["uv"]
imports = ["small"]
commands = [
  "python -c 'import small; assert small.answer() == 42'",
  "python -c 'import ctypes, libsmall; ctypes.CDLL(libsmall.__path__[0] + \\"/lib/libsmall.so\\").name_{{gpu}}'",
]
"""
FILES = {
    "lower/base.toml": BASE,
    "lower/common/common.toml": COMMON,
    "lower/common/answer.patch": PATCH,
    "lower/common/base-src/small.cpp": SOURCES["small.cpp"].replace("42", "41"),
}


VARIANT = f"py{PYTHON.replace('.', '')}"


@pytest.fixture(scope="session")
def first(tmp_path_factory: pytest.TempPathFactory) -> tuple[Project, Ended, Ended]:
    """The project with what two builds said: of the lower recipe alone, then of the one that imports it."""
    project = make_project(tmp_path_factory.mktemp("imported") / "project", EXTENSION, files=FILES)
    words = ("--package", "libsmall", "-v", "cpu-mkl", "--json")
    alone = project.run("build", "lower/base.toml", "--out", "lower-dist", *words)
    assert alone.code == 0, alone.out + alone.err
    built = project.build("--json")
    assert built.code == 0, built.out + built.err
    return project, alone, built


@pytest.fixture
def project(first: tuple[Project, Ended, Ended], tmp_path: Path) -> Project:
    """The project with what was built, in another folder; the store is the same."""
    shutil.copytree(first[0].folder, tmp_path / "project", ignore=shutil.ignore_patterns("store", "home"))
    return Project(tmp_path / "project", {"AXLETREE_STORE": str(first[0].store)})


def test_what_was_built_alone_is_in_the_store_for_the_recipe_that_imports_it(
    first: tuple[Project, Ended, Ended],
) -> None:
    _, alone, built = first
    statuses = built.statuses()
    shared = ["fetch", "patch", "lib[cpu]", "pack:libsmall[cpu]", "audit:libsmall[cpu]"]
    other = [name.replace("cpu", "cu126") for name in shared if "cpu" in name]
    assert {name for name in statuses if name.startswith("base/")} == {f"base/{name}" for name in [*shared, *other]}
    assert {name: statuses[f"base/{name}"] for name in shared} == dict.fromkeys(shared, "cached")
    assert {name: statuses[f"base/{name}"] for name in other} == dict.fromkeys(other, "done")
    keys = [
        {each["stage"]: each["key"] for each in ended.events if each["event"] == "stage-finished"}
        for ended in (alone, built)
    ]
    assert [keys[0][name] for name in shared] == [keys[1][f"base/{name}"] for name in shared]
    assert {status for name, status in statuses.items() if not name.startswith("base/")} == {"done"}
    assert {f"test:smoke:uv[{VARIANT}-{gpu}]" for gpu in ("cpu", "cu126")} < statuses.keys()


def test_one_ledger_and_one_report_for_both(first: tuple[Project, Ended, Ended]) -> None:
    project, _, built = first
    variants = {each["variant"]: each["state"] for each in built.result["variants"]}
    assert variants == {f"{VARIANT}-cpu": "done", f"{VARIANT}-cu126": "done"}
    ledger = json.loads((project.out / "ledger.json").read_bytes())["recipes"]
    assert list(ledger) == ["small 1.0"]
    assert "base/lib[cu126]" in (project.out / "report.html").read_text(encoding="utf-8")
    assert "==== base/lib[cu126]: done" in (project.out / f"logs/{VARIANT}-cu126.log").read_text(encoding="utf-8")
    names = sorted(name.partition("-cp")[0] for name in project.wheels())
    assert names == ["small-1.0+cpu", "small-1.0+cu126"]  # the other recipe publishes its own packages


def test_a_changed_source_of_the_imported_recipe_makes_the_ledger_stale(project: Project) -> None:
    (project.folder / "lower/common/base-src/more.cpp").write_text("", encoding="utf-8")
    plan = project.run("plan", "small.toml", "-v", "*-cpu")
    assert re.search(r"base/fetch +run .*more\.cpp", plan.out), plan.out
    ledger = project.run("ledger", "small.toml", "--out", "dist")
    assert "2 stale" in ledger.out


def test_another_source_and_a_kill_in_the_middle(project: Project) -> None:
    """The folder replaces the source of the recipe that is named, and of no other."""
    other = project.folder / "checkout"
    shutil.copytree(project.folder / "lower/common/base-src", other)
    (other / "wait").touch()
    words = ("build", "small.toml", "--out", "other", "-v", "*-cpu", "--source", f"base={other}", "--json")
    running = project.start(*words)
    begun = re.compile(r'"event": ?"stage-started".*"stage": ?"base/lib\[cpu\]"')
    until(lambda: begun.search(running.said.read_text(encoding="utf-8")), running.process)
    os.kill(running.process.pid, signal.SIGKILL)
    running.end(60)
    until(lambda: not project.processes())
    assert not list((project.folder / "other").rglob("*.whl"))
    again = project.run(*words)
    assert again.code == 0, again.out + again.err
    statuses = again.statuses()
    assert (statuses["fetch"], statuses["base/fetch"], statuses["base/lib[cpu]"]) == ("cached", "cached", "done")
    report = verify(Store.open(Path(project.environ["AXLETREE_STORE"])))
    assert report.sound


def test_a_stage_of_the_imported_recipe_fails(project: Project) -> None:
    """What needs it is not reached, and the report names the file and line of the imported recipe."""
    path = project.folder / "lower/common/common.toml"
    path.write_text(path.read_text().replace('"c++ $CXXFLAGS', '"nosuch $CXXFLAGS'), encoding="utf-8")
    ended = project.build("-v", "*-cpu")
    line = 1 + path.read_text().split("\n").index('tools = ["c++"]')
    assert ended.code == 1
    assert re.search(r"base/lib\[cpu\] FAILED .* \(stages\.lib in lower/common/common\.toml, line \d+\)", ended.out)
    assert f'Add "nosuch" to stages.lib.tools in lower/common/common.toml, line {line}.' in ended.out
    assert "not reached:\n  base/pack:libsmall[cpu]\n" in ended.out
    assert f"bind[{VARIANT}-cpu]" in ended.out.partition("not reached:")[2]
    ledger = project.run("ledger", "small.toml", "--out", "dist", "-v", "*-cpu")
    assert "base/lib[cpu]:" in ledger.out
    assert project.run("shell", "small:base/lib[cpu]", "true").code == 0


def test_a_wheel_of_an_imported_recipe_that_requires_what_the_environment_lacks(project: Project) -> None:
    path = project.folder / "lower/base.toml"
    path.write_text(path.read_text() + 'requires = ["numpy>=2"]\n', encoding="utf-8")
    ended = project.build("-v", "*-cpu")
    assert ended.code == 1
    assert "libsmall 2.0+cpu requires numpy>=2, which the environment does not have" in ended.out
    assert "add it to the environment's requires and run `axletree lock small.toml" in ended.out


def test_a_lock_that_the_imported_recipe_lacks(project: Project) -> None:
    """Only of an environment that is needed: that of its tests does not matter."""
    path = project.folder / "lower/common/common.toml"
    environment = f'[environments.tools]\naxes = []\npython = "{PYTHON}"\nrequires = ["cmake"]\n'
    path.write_text(path.read_text() + environment, encoding="utf-8")
    assert project.run("plan", "small.toml").code == 0
    path.write_text(
        path.read_text().replace('tools = ["c++"]', 'tools = ["c++"]\nenvironment = "tools"'), encoding="utf-8"
    )
    ended = project.build()
    assert (ended.code, ended.out) == (2, "")
    assert "lower/base.toml: environment 'tools' has no lock for this variant (pylock.tools.toml)" in ended.err
    assert "run `axletree lock lower/base.toml`" in ended.err
