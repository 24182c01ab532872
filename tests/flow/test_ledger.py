"""Many variants with one command: what is done, what failed and why, what is left, whatever ends a run and when."""

from __future__ import annotations

import json
import shlex
import signal
import time
from typing import TYPE_CHECKING, Any

import pytest

from support.envelopes import result_of
from support.faulty import Project, make_project

if TYPE_CHECKING:
    from pathlib import Path

THREE = """\
name = "small"
version = "1.0"
summary = "A library."

[source]
path = "src"

[axes]
blas = ["mkl", "openblas", "generic"]

[stages.prepare]
action = "run"
commands = ["cp small.cpp $AXLETREE_OUT/"]

[stages.lib]
action = "run"
axes = ["blas"]
inputs = ["prepare"]
commands = [
  "test ! -e missing-{blas} || {{ echo 'small.cpp:1:10: fatal error: {blas}.h: No such file or directory'; exit 1; }}",
  "while test -e $PWD/wait-{blas}; do sleep 1; done",
  "mkdir $AXLETREE_OUT/lib; cp small.cpp $AXLETREE_OUT/lib/{blas}.txt",
]

[packages.small]
from = "lib"
local = "{blas}"
requires-python = ">=3.9"
"""


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return make_project(tmp_path / "project", THREE)


def ledger(project: Project) -> dict[str, Any]:
    """Variant -> entry, of the file."""
    recipes = json.loads((project.out / "ledger.json").read_text(encoding="utf-8"))["recipes"]
    entries: dict[str, Any] = recipes.get("small 1.0", {})
    return entries


def states(project: Project) -> dict[str, str]:
    """Variant -> state, as the command says."""
    ended = project.run("ledger", "small.toml", "--out", "dist", "--json")
    assert ended.out, ended.err
    return {each["variant"]: each["state"] for each in result_of(ended.out)["variants"]}


def test_what_the_index_refuses_failed_and_says_why(project: Project) -> None:
    assert project.build("-v", "mkl").code == 0
    project.edit("mkdir $AXLETREE_OUT/lib;", "mkdir $AXLETREE_OUT/lib; echo more > $AXLETREE_OUT/lib/more.txt;")
    (project.source / "missing-generic").touch()
    ended = project.build("--keep-going")
    assert (ended.code, "the file is already in the index with different content" in ended.err) == (2, True), (
        ended.out + ended.err
    )
    assert states(project) == {"mkl": "failed", "openblas": "failed", "generic": "failed"}
    causes = {name: entry["outcome"]["cause"] for name, entry in ledger(project).items()}
    assert causes["mkl"].startswith("not published: small-1.0+mkl-")
    assert causes["openblas"] == "not published because packages of mkl were rejected"
    assert causes["generic"].startswith("small.cpp:1:10: fatal error: generic.h")
    assert "None" not in project.run("ledger", "small.toml", "--out", "dist").out


def test_each_variant_names_its_own_package_that_the_index_refuses(project: Project) -> None:
    assert project.build("-v", "mkl", "-v", "openblas").code == 0
    project.edit("mkdir $AXLETREE_OUT/lib;", "mkdir $AXLETREE_OUT/lib; echo more > $AXLETREE_OUT/lib/more.txt;")
    assert project.build("-v", "mkl", "-v", "openblas").code == 2
    causes = {name: entry["outcome"]["cause"] for name, entry in ledger(project).items()}
    for name in ("mkl", "openblas"):
        assert causes[name].startswith(f"not published: small-1.0+{name}-"), causes


def test_the_reason_is_the_line_that_says_it_whatever_stands_before(project: Project) -> None:
    said = "echo a; echo b; echo 'gizmo: error: no gizmo for {blas}'; echo c; exit 1"
    project.edit("echo 'small.cpp:1:10: fatal error: {blas}.h: No such file or directory'; exit 1", said)
    (project.source / "missing-mkl").touch()
    assert project.build("-v", "mkl").code == 1
    assert ledger(project)["mkl"]["outcome"]["cause"] == "gizmo: error: no gizmo for mkl"
    project.edit("echo 'gizmo: error: no gizmo for {blas}'; ", "")
    assert project.build("-v", "mkl").code == 1
    assert ledger(project)["mkl"]["outcome"]["cause"] == "stage lib[mkl] failed with exit code 1"


def test_a_failure_is_kept_with_cause_and_log_and_the_rest_is_built(project: Project) -> None:
    (project.source / "missing-mkl").touch()
    ended = project.build("--keep-going")
    assert ended.code == 1
    assert "1 of 3 variants remain:" in ended.out
    assert "continue with: axletree build small.toml --out dist --keep-going --remaining" in ended.out
    assert states(project) == {"mkl": "failed", "openblas": "done", "generic": "done"}
    outcome = ledger(project)["mkl"]["outcome"]
    assert outcome["stage"] == "lib[mkl]"
    assert outcome["cause"] == "small.cpp:1:10: fatal error: mkl.h: No such file or directory"
    assert project.run("store", "gc", "--keep", "0", "--grace", "0").code == 0
    log = (project.out / outcome["log"]).read_text(encoding="utf-8")
    assert "fatal error: mkl.h" in log
    assert "==== fetch: done" in log
    assert states(project) == {"mkl": "failed", "openblas": "done", "generic": "done"}


def test_what_continues_has_the_options_of_the_run_but_no_login(project: Project) -> None:
    (project.source / "missing-mkl").touch()
    options = ["--set", "stages.lib.env.A=1 2", "--find-links", "more", "--offline", "--keep-going"]
    ended = project.build(
        "-v", "mkl", "-v", "openblas", *options, "--index-url", "https://me:secret@example.org/simple"
    )
    assert ended.code == 1
    (command,) = [line for line in ended.out.splitlines() if line.startswith("continue with: ")]
    words = shlex.split(command.removeprefix("continue with: "))
    assert words[:6] == ["axletree", "build", "small.toml", "--set", "stages.lib.env.A=1 2", "--out"]
    assert words[7:] == [
        "-v",
        "mkl",
        "-v",
        "openblas",
        "--find-links",
        "more",
        "--offline",
        "--keep-going",
        "--remaining",
    ]


def test_without_keep_going_what_was_not_reached_remains(project: Project) -> None:
    (project.source / "missing-mkl").touch()
    ended = project.run("build", "small.toml", "--out", "dist", "--skip", "generic", "-v", "mkl")
    assert ended.code == 1
    assert states(project) == {"mkl": "failed", "openblas": "never built", "generic": "skipped"}
    assert project.run("ledger", "small.toml", "--out", "dist").code == 1


def test_remaining_and_only_failed_pick_by_the_ledger(project: Project) -> None:
    (project.source / "missing-mkl").touch()
    assert project.run("build", "small.toml", "--out", "dist", "-v", "mkl").code == 1
    picked = project.build("--only-failed", "--json")
    assert picked.events[0]["variants"] == ["mkl"]
    rest = project.build("--remaining", "--keep-going", "--json")
    assert rest.events[0]["variants"] == ["mkl", "openblas", "generic"]
    (project.source / "missing-mkl").unlink()
    assert set(states(project).values()) == {"failed", "stale"}
    assert project.build("--remaining").code == 0
    again = project.build("--remaining")
    assert (again.code, again.out) == (0, "nothing remains: 3 variants in dist/ledger.json\n")
    assert project.run("ledger", "small.toml", "--out", "dist").code == 0


def test_a_changed_source_or_recipe_makes_what_was_done_stale(project: Project) -> None:
    assert project.build().code == 0
    before = ledger(project)
    assert project.build().code == 0
    assert {name: entry["outcome"] for name, entry in ledger(project).items()} == {
        name: entry["outcome"] for name, entry in before.items()
    }
    (project.source / "small.cpp").write_text("int other;\n", encoding="utf-8")
    assert set(states(project).values()) == {"stale"}
    ended = project.run("build", "small.toml", "--out", "dist", "-v", "mkl")
    assert ended.code == 2  # the root has another file under that name
    assert states(project)["mkl"] == "failed"


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_an_interrupted_run_is_told_and_gone_on_with(project: Project, how: signal.Signals) -> None:
    assert project.run("build", "small.toml", "--out", "dist", "-v", "openblas").code == 0
    (project.source / "wait-generic").touch()
    running = project.start("build", "small.toml", "--out", "dist")
    until = time.monotonic() + 60
    while "lib[generic]" not in running.said.read_text(encoding="utf-8"):
        assert time.monotonic() < until
        assert running.process.poll() is None
        time.sleep(0.05)
    assert states(project) == {"mkl": "running", "openblas": "running", "generic": "running"}
    running.process.send_signal(how)
    running.end(30)
    assert states(project) == dict.fromkeys(("mkl", "openblas", "generic"), "interrupted")
    (project.source / "wait-generic").unlink()
    assert project.build("--remaining").code == 0
    assert set(states(project).values()) == {"done"}


def test_two_runs_with_one_output_folder_keep_each_others_entries(project: Project) -> None:
    both = [project.start("build", "small.toml", "--out", "dist", "-v", name) for name in ("mkl", "generic")]
    assert [running.end(300).code for running in both] == [0, 0]
    assert states(project) == {"mkl": "done", "openblas": "never built", "generic": "done"}


def test_an_entry_names_the_variant_that_it_was_built_as(project: Project) -> None:
    """Two recipes of one name that differ in an axis, and one whose axis was renamed, meet in an output folder."""
    assert project.build("-v", "mkl").code == 0
    assert ledger(project)["mkl"]["outcome"]["values"] == {"blas": "mkl"}
    more = THREE.replace("[axes]\n", '[axes]\ngpu = ["cpu", "cu130"]\n')
    project.recipe.write_text(more)
    assert project.build("-v", "cpu-mkl").code == 0
    report = result_of(project.run("ledger", "small.toml", "--out", "dist", "--json").out)
    assert {each["variant"]: each["state"] for each in report["variants"]}["cpu-mkl"] == "done"
    assert [(each["variant"], each["values"]) for each in report["former"]] == [("mkl", {"blas": "mkl"})]
    project.recipe.write_text(THREE)
    assert states(project)["mkl"] == "done", "its own entry is still there"
    ended = project.run("ledger", "small.toml", "--out", "dist")
    assert "not variants of this recipe: 1 entry\n  cpu-mkl (blas mkl, gpu cpu): done" in ended.out
    renamed = THREE.replace("blas = [", "gpu = [").replace('"blas"', '"gpu"').replace("{blas}", "{gpu}")
    project.recipe.write_text(renamed)
    assert states(project) == dict.fromkeys(("mkl", "openblas", "generic"), "never built")


def test_a_damaged_ledger_is_left_alone(project: Project) -> None:
    assert project.build().code == 0
    (project.out / "ledger.json").write_text("{", encoding="utf-8")
    ended = project.build()
    assert ended.code == 2
    assert "move it elsewhere" in ended.err
    assert (project.out / "ledger.json").read_text(encoding="utf-8") == "{"


SHARED = THREE.replace('axes = ["blas"]\ninputs', "axes = []\ninputs").replace('local = "{blas}"\n', "")
SHARED = SHARED.replace("missing-{blas}", "missing").replace("{blas}.h", "x.h").replace("{blas}", "any")


def test_what_is_built_for_each_value_and_is_the_same_is_published_once(tmp_path: Path) -> None:
    project = make_project(tmp_path / "project", SHARED)
    plans = [result_of(project.run("plan", "small.toml", "--json", *more).out) for more in ((), ("--no-share", "blas"))]
    counts = [sum(row["stage"].startswith("lib") for row in plan["stages"]) for plan in plans]
    assert counts == [1, 3]
    assert plans[0]["sharing"] is None
    assert plans[1]["sharing"]["stages"] - plans[1]["sharing"]["shared_stages"] > 0
    assert project.build("--no-share", "blas").code == 0
    assert list(project.wheels()) == ["small-1.0-py3-none-any.whl"]
    assert set(states(project).values()) == {"done"}
    text = project.run("plan", "small.toml", "--no-share", "blas", "-v", "mkl").out
    assert "nothing to run" in text


def test_what_is_built_for_each_value_and_differs_is_refused_with_both_names(tmp_path: Path) -> None:
    project = make_project(tmp_path / "project", SHARED)
    project.edit("cp small.cpp $AXLETREE_OUT/lib/", "echo $TMPDIR > $AXLETREE_OUT/lib/")
    ended = project.build("--no-share", "blas")
    assert ended.code == 2
    assert "small-1.0-py3-none-any.whl: the variants mkl and openblas would produce different files" in ended.err
    assert 'index = "{blas}"' in ended.err
    assert project.wheels() == {}
    assert project.build().code == 0
