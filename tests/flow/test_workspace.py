"""Workspaces that stages keep: they save work, and the result is the same without them."""

from __future__ import annotations

import json
import subprocess
import time
from typing import TYPE_CHECKING, Any

import pytest

from support.kept import TOOLS, compiled, make_kept, without_workspace
from support.waiting import until

if TYPE_CHECKING:
    from pathlib import Path

    from support.tiny import Tiny

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("workspace")]

HALF_WRITTEN = """\
$(STATE)/two.o: two.cpp
	echo half > $@
	while [ -e hang ]; do sleep 0.1; done
	c++ $(CXXFLAGS) $(DEFINES) -fPIC -g -c $< -o $@
"""
"""A rule whose output is there before it is right, as that of any program that takes its time to write."""


def begin(kept: Tiny) -> subprocess.Popen[str]:
    """Start a build; its events can be read while it runs."""
    command = [*kept.program, "build", str(kept.recipe), "--json", "--out", str(kept.out)]
    return subprocess.Popen(command, env=kept.variables(), stdout=subprocess.PIPE, text=True)


def wait_for(build: subprocess.Popen[str], event: str, stage: str) -> dict[str, Any]:
    """Read events until one of a stage comes."""
    assert build.stdout is not None
    for line in build.stdout:
        found: dict[str, Any] = json.loads(line)
        if (found.get("event"), found.get("stage")) == (event, stage):
            return found
    raise AssertionError(f"the build ended without {event} of {stage}")


@pytest.mark.parametrize("tool", TOOLS)
def test_only_what_changed_is_compiled(tool: str, tmp_path: Path) -> None:
    kept = make_kept(tmp_path, tool)
    assert compiled(kept.built()) == {"one", "two", "three"}
    kept.edit("src/two.cpp", "2 * FACTOR", "3 * FACTOR")
    assert compiled(kept.built()) == {"two"}
    kept.edit("src/names.h", "kept", "changed")  # comes as the result of another stage
    run = kept.built()
    assert compiled(run) == {"one"}
    assert run.trees["build"] == without_workspace(kept)


def test_a_new_and_a_removed_file_are_noticed(tmp_path: Path) -> None:
    kept = make_kept(tmp_path, "ninja")
    kept.built()
    (kept.source / "three.cpp").unlink()
    (kept.source / "four.cpp").write_text("int four() { return 4; }\n")
    run = kept.built()
    assert compiled(run) == {"four"}
    assert run.trees["build"] == without_workspace(kept)


@pytest.mark.parametrize("tool", TOOLS)
def test_what_build_tools_do_not_notice_empties_the_workspace(tool: str, tmp_path: Path) -> None:
    kept = make_kept(tmp_path, tool)
    before = kept.built()
    kept.change("-DFACTOR=1", "-DFACTOR=5")
    run = kept.built()
    assert compiled(run) == {"one", "two", "three"}
    assert run.trees["build"] != before.trees["build"]
    assert run.trees["build"] == without_workspace(kept)


def test_a_build_that_edits_its_source_finds_it_as_it_was(tmp_path: Path) -> None:
    kept = make_kept(tmp_path, "make")
    kept.edit("src/build.sh", "make ", "sed -i 's/FACTOR/FACTOR * 2/' two.cpp; rm -f three.cpp.orig; make ")
    kept.built()
    kept.edit("src/one.cpp", "NAME", 'NAME "!"')
    run = kept.built()
    assert run.trees["build"] == without_workspace(kept)


def test_files_and_folders_may_take_each_others_names(tmp_path: Path) -> None:
    kept = make_kept(tmp_path, "make")
    (kept.source / "data").mkdir()
    (kept.source / "data" / "inner").write_text("1")
    (kept.source / "empty").mkdir()
    kept.edit("src/build.sh", "make ", "touch data/made 2> /dev/null || true; ls -R > $AXLETREE_OUT/listing; make ")
    kept.built()
    (kept.source / "data" / "inner").unlink()
    (kept.source / "data").rmdir()
    (kept.source / "data").write_text("a file now")
    (kept.source / "empty").rmdir()
    (kept.source / "lone.txt").write_text("1")
    kept.built()
    (kept.source / "data").unlink()
    (kept.source / "data").mkdir()
    (kept.source / "data" / "other").symlink_to("../lone.txt")
    run = kept.built()
    assert run.trees["build"] == without_workspace(kept)


def test_what_a_killed_attempt_left_does_no_harm(tmp_path: Path) -> None:
    kept = make_kept(tmp_path, "make")
    with (kept.source / "Makefile").open("a") as makefile:
        makefile.write(HALF_WRITTEN)
    (kept.source / "hang").touch()
    build = begin(kept)
    wait_for(build, "stage-started", "build")
    until(lambda: any(path.read_text() == "half\n" for path in kept.store.glob("workspaces/*/state/two.o")), build)
    build.kill()
    build.communicate()
    (kept.source / "hang").unlink()
    run = kept.built()
    assert run.trees["build"] == without_workspace(kept)


def test_a_failed_attempt_keeps_what_it_compiled(tmp_path: Path) -> None:
    kept = make_kept(tmp_path, "make")
    kept.edit("src/two.cpp", "return 2", "retrun 2")
    assert kept.build().code == 1
    kept.edit("src/two.cpp", "retrun 2", "return 2")
    run = kept.built()
    assert "two" in compiled(run)
    assert compiled(run) < {"one", "two", "three"}
    assert run.trees["build"] == without_workspace(kept)


def test_two_builds_take_turns_in_a_workspace(tmp_path: Path) -> None:
    """The second starts its stage while the first is at work, and must not come near before it is done."""
    kept = make_kept(tmp_path, "make")
    gate = kept.home / "gate"
    script = kept.source / "build.sh"
    script.write_text(
        f'mkdir "$AXLETREE_WORKSPACE/taken"\nwhile [ ! -e {gate} ]; do sleep 0.1; done\n'
        f'{script.read_text()}rmdir "$AXLETREE_WORKSPACE/taken"\n'
    )
    kept.change('"bash build.sh"', '"bash -eu build.sh"')
    first = begin(kept)
    wait_for(first, "stage-started", "build")
    until(lambda: list(kept.store.glob("workspaces/*/state/taken")), first)
    kept.edit("src/two.cpp", "2 * FACTOR", "3 * FACTOR")
    second = begin(kept)
    wait_for(second, "stage-started", "build")
    time.sleep(0.5)
    gate.touch()
    finished = [wait_for(build, "stage-finished", "build") for build in (first, second)]
    for build in (first, second):
        build.communicate()
        assert build.returncode == 0
    assert [event["status"] for event in finished] == ["done", "done"]
    assert finished[0]["tree"] != finished[1]["tree"]
    assert finished[1]["tree"] == without_workspace(kept)
