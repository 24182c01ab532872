"""After a stage failed: what still runs, what is said, what runs again once it is mended, and how to look inside."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from support.faulty import BOUND, LIBRARY, make_project

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from support.faulty import Project

    Golden = Callable[[str, str], None]

FORK = """\
name = "fork"
version = "1.0"
source = { path = "src" }

[stages.left]
action = "run"
commands = ["cat left.txt > $AXLETREE_OUT/left"]

[stages.lefter]
action = "run"
inputs = ["left"]
commands = ["cp $AXLETREE_IN_LEFT/left $AXLETREE_OUT/lefter"]

[stages.right]
action = "run"
commands = ["echo right > $AXLETREE_OUT/right"]

[stages.righter]
action = "run"
inputs = ["right"]
commands = ["cp $AXLETREE_IN_RIGHT/right $AXLETREE_OUT/righter"]

[stages.both]
action = "run"
inputs = ["lefter", "righter"]
commands = ["touch $AXLETREE_OUT/both"]

[packages.left]
from = "lefter"

[packages.right]
from = "righter"
index = "right"
"""
"""Two branches with a package each, one of which fails for want of a file, and a stage that needs both."""


def test_keep_going_runs_what_does_not_depend_on_the_failure(tmp_path: Path, golden: Golden) -> None:
    project = make_project(tmp_path / "project", FORK)
    ended = project.build("--keep-going")
    golden("flow/keep-going.txt", project.account(ended))
    assert ended.code == 1
    # The other branch is whole, so it is published; the failed one left nothing.
    assert [path.name for path in project.out.rglob("*.whl")] == ["right-1.0-py3-none-any.whl"]
    assert not (project.out / "simple").exists()
    (project.source / "left.txt").write_text("left\n", encoding="utf-8")
    ended = project.build("--json")
    assert ended.code == 0
    assert sorted(path.name for path in project.out.rglob("*.whl")) == [
        "left-1.0-py3-none-any.whl",
        "right-1.0-py3-none-any.whl",
    ]


def test_without_keep_going_nothing_new_starts(tmp_path: Path) -> None:
    project = make_project(tmp_path / "project", FORK)
    project.edit('commands = ["cat left.txt', 'resources = { cores = 1 }\ncommands = ["cat left.txt')
    ended = project.build("--json")
    assert ended.code == 1
    statuses = ended.statuses()
    assert statuses["left"] == "failed"
    assert statuses["lefter"] == statuses["both"] == statuses["pack:left"] == "blocked"
    failed_at = ended.finished("left")["time"]
    late = [e["stage"] for e in ended.events if e["event"] == "stage-started" and e["time"] > failed_at]
    assert late == []
    assert statuses["righter"] in {"cancelled", "done"}
    assert project.published() == [] or statuses["righter"] == "done"
    finish = ended.events[-1]
    assert (finish["event"], finish["status"], finish["failed"]) == ("run-finished", "failed", 1)
    assert finish["ran"] + finish["cached"] + finish["failed"] + finish["blocked"] == len(statuses)


def test_only_what_is_needed_runs_after_mending(tmp_path: Path) -> None:
    project = make_project(tmp_path / "project", BOUND)
    good = (project.source / "bind.cpp").read_text(encoding="utf-8")
    (project.source / "bind.cpp").write_text("nonsense\n", encoding="utf-8")
    ended = project.build("--json", "--keep-going")
    assert ended.code == 1
    assert ended.statuses()["audit:libsmall"] == "done"
    (project.source / "bind.cpp").write_text(good, encoding="utf-8")
    ended = project.build("--json")
    assert ended.code == 0, ended.out
    # The whole source is an input of both compile stages, but the library comes out as it was: behind it nothing runs.
    again = {name.partition("[")[0] for name, status in ended.statuses().items() if status == "done"}
    assert again == {"fetch", "lib", "bind", "pack:small", "audit:small", "index:.", "test:smoke:uv"}


def test_a_failure_is_not_kept(tmp_path: Path) -> None:
    """A stage that failed of something outside of its key runs again, without anything changed."""
    project = make_project(tmp_path / "project", LIBRARY)
    flag = tmp_path / "flag"
    project.edit('"mkdir -p $AXLETREE_OUT/lib"', f'"test -e {flag}; mkdir -p $AXLETREE_OUT/lib"')
    assert project.build().code == 1
    flag.touch()
    ended = project.build("--json")
    assert ended.code == 0
    assert ended.statuses()["fetch"] == "cached"


@pytest.fixture
def failed(tmp_path: Path) -> Project:
    """A project whose library failed to compile."""
    project = make_project(tmp_path / "project", LIBRARY, files={"src/small.cpp": "nonsense\n"}, USER_VARIABLE="mine")
    assert project.build().code == 1
    return project


def test_shell_opens_the_failed_stage(failed: Project) -> None:
    where = failed.run("shell", "lib", "--", "pwd")
    assert where.code == 0
    assert where.out.startswith((f"{failed.store}/work/", "/axletree/store/work/"))  # as the stage saw it
    assert where.out.endswith("/source\n")
    assert "small.cpp" in failed.run("shell", "lib", "--", "ls").out
    said = failed.run("shell", "lib", "--", "env").out
    variables = dict(line.partition("=")[::2] for line in said.splitlines())
    assert variables["CXXFLAGS"].startswith("-ffile-prefix-map=")
    assert variables["AXLETREE_OUT"].startswith((f"{failed.store}/work/", "/axletree/store/work/"))
    assert variables["SOURCE_DATE_EPOCH"] == "315532800"
    assert "USER_VARIABLE" not in variables
    assert "AXLETREE_STORE" not in variables


def test_shell_takes_options_of_a_command_for_the_commands(failed: Project) -> None:
    assert failed.run("shell", "lib", "ls", "-l").out.startswith("total ")
    assert failed.run("shell", "lib", "--", "ls", "-l").out.startswith("total ")


def test_shell_names_no_job_server_that_is_gone(tmp_path: Path) -> None:
    project = make_project(tmp_path / "project", LIBRARY, files={"src/small.cpp": "nonsense\n"})
    project.edit('tools = ["c++"]', 'tools = ["c++"]\nparallel = "tokens"')
    assert project.build().code == 1
    said = project.run("shell", "lib", "env").out
    (flags,) = [line for line in said.splitlines() if line.startswith("MAKEFLAGS=")]
    assert flags.startswith("MAKEFLAGS=-j")
    assert "jobserver" not in flags


def test_shell_opens_the_source_in_a_kept_workspace(tmp_path: Path) -> None:
    files = {"src/code/small.cpp": "nonsense\n"}
    project = make_project(tmp_path / "project", LIBRARY, files=files)
    project.edit('tools = ["c++"]', 'tools = ["c++"]\nworkspace = true\ndirectory = "code"')
    assert project.build().code == 1
    where = project.run("shell", "lib", "pwd").out
    assert where.startswith((f"{project.store}/workspaces/", "/axletree/workspace/"))
    assert where.endswith("/source/code\n")


def test_shell_repeats_the_failure_and_then_mends_it(failed: Project) -> None:
    compile_it = 'c++ $CXXFLAGS -shared -fPIC -o "$AXLETREE_OUT/lib/libsmall.so" small.cpp'
    ended = failed.run("shell", "lib", "--", "bash", "-c", compile_it)
    assert ended.code == 1
    assert "small.cpp:1:1: error: " in ended.err
    ended = failed.run("shell", "lib", "--", "bash", "-c", f"echo 'int answer;' > small.cpp; {compile_it}; exit 7")
    assert ended.code == 7


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("libb", "--", "pwd"), "did you mean 'lib'?"),
        (("fetch", "--", "pwd"), "stage fetch succeeded, so its folder was removed"),
        (("lib", "--", "no-such-program"), "no-such-program"),
    ],
)
def test_shell_says_what_is_wrong(arguments: tuple[str, ...], says: str, failed: Project) -> None:
    ended = failed.run("shell", *arguments)
    assert ended.code == 2
    assert says in ended.err
    assert "Traceback" not in ended.err


def test_a_report_says_that_it_failed(failed: Project) -> None:
    page = (failed.out / "report.html").read_text(encoding="utf-8")
    assert "nonsense" in page
    assert "failed" in page.lower()


def test_a_background_process_does_not_hold_a_stage_up(tmp_path: Path) -> None:
    """A server that a build leaves running keeps the stage's output open; it ends with the stage."""
    project = make_project(tmp_path / "project", LIBRARY)
    project.edit('"mkdir -p $AXLETREE_OUT/lib"', '"mkdir -p $AXLETREE_OUT/lib; setsid sleep 600 & sleep 0.1"')
    ended = project.start("build", "small.toml", "--out", "dist").end(60)
    assert ended.code == 0
    assert project.processes() == []
