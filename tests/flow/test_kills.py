"""Whatever is killed when: nothing of a build stays alive, nothing finished is lost, the next run makes it whole."""

from __future__ import annotations

import os
import random
import shutil
import signal
import time
from typing import TYPE_CHECKING

import psutil
import pytest

from axletree.disk import PART
from axletree.store import Store, verify
from support.faulty import BOUND, LIBRARY, make_project, without_namespaces

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from support.faulty import Project, Running

SECONDS = 60.0
"""How long after a kill or a signal something of the build may still be there, on however busy a machine."""

STUBBORN = LIBRARY.replace(
    "[stages.lib]",
    """[stages.first]
action = "run"
commands = ["touch $AXLETREE_OUT/done"]

[stages.lib]
inputs = ["first"]""",
).replace(
    '  "mkdir -p $AXLETREE_OUT/lib",\n',
    """  "mkdir -p $AXLETREE_OUT/lib",
  \"\"\"
  if test -e "$PWD/wait"; then
    trap '' TERM INT HUP
    setsid sh -c 'trap "" TERM INT HUP; echo "grandchild $PWD"; touch ../alive; while :; do sleep 1; done' &
    while :; do sleep 1; done
  fi
  \"\"\",
""",
)
"""A compile stage that ignores every polite signal, and has a grandchild that left its session and ignores them too."""


def test_random_kills(tmp_path: Path) -> None:
    kill_again_and_again(tmp_path, kills=5, seed=0)


@pytest.mark.proof
@pytest.mark.parametrize("seed", range(5))
def test_fifty_random_kills(seed: int, tmp_path: Path) -> None:
    assert kill_again_and_again(tmp_path, kills=10, seed=seed) > 0, "no kill came between the first result and the last"


@pytest.mark.proof
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("seed", range(10, 16))
def test_three_hundred_random_kills(seed: int, tmp_path: Path) -> None:
    assert kill_again_and_again(tmp_path, kills=50, seed=seed) > 0, "no kill came between the first result and the last"


def kill_again_and_again(folder: Path, *, kills: int, seed: int) -> int:
    """Kill builds at random moments, from fresh stores and from stores that lost some results; build on each time.

    Returns how many kills came between the first result and the last.
    """
    choose = random.Random(seed)
    calm = make_project(folder / "calm", BOUND)
    started = time.monotonic()
    assert calm.build().code == 0
    longest = time.monotonic() - started
    wheels = calm.wheels()
    assert len(wheels) == 2
    stages = len(calm.records())
    project = make_project(folder / "project", BOUND)
    killed = interrupted = 0
    while killed < kills:
        forget(project, choose)
        process = project.start("build", "small.toml", "--out", "dist").process
        time.sleep(choose.uniform(0.0, longest))
        alive = process.poll() is None
        process.kill()
        process.wait()
        assert gone(project) == []
        killed += alive
        assert project.wheels().items() <= wheels.items()
        finished = {stage: record.stat().st_ino for stage, record in project.records().items()}
        interrupted += alive and 0 < len(finished) < stages
        ended = project.build()
        assert ended.code == 0, ended.out + ended.err
        assert project.wheels() == wheels
        assert finished.items() <= {stage: record.stat().st_ino for stage, record in project.records().items()}.items()
        assert [path for path in project.folder.rglob(".*") if PART in path.name] == []
    assert verify(Store.open(project.store)).sound
    return interrupted


def forget(project: Project, choose: random.Random) -> None:
    """Start from nothing now and then, else from a store that lacks some results."""
    shutil.rmtree(project.out, ignore_errors=True)
    if choose.random() < 0.25:
        shutil.rmtree(project.store, ignore_errors=True)
    elif project.store.exists():
        for record in project.records().values():
            if choose.random() < 0.5:
                record.unlink()


def gone(project: Project) -> list[str]:
    """What is left of a build a moment after its end: nothing."""
    deadline = time.monotonic() + SECONDS
    while (left := project.processes()) and time.monotonic() < deadline:
        time.sleep(0.02)
    return left


def stubborn(project: Project, prefix: Sequence[str] = ()) -> Running:
    """A build that has come to its stubborn stage."""
    (project.source / "wait").touch()
    running = project.start("build", "small.toml", "--out", "dist", "--json", prefix=prefix)
    wait_for(lambda: any(project.store.glob("work/*/alive")), running)
    assert any("grandchild" in each for each in project.processes())
    return running


def wait_for(happened: Callable[[], bool], running: Running) -> None:
    deadline = time.monotonic() + 120
    while not happened():
        assert running.process.poll() is None, running.end(0)
        assert time.monotonic() < deadline
        time.sleep(0.02)


KINDS: dict[str, Callable[[], list[str]]] = {"namespaces": list, "no namespaces": without_namespaces}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_stubborn_stage_ends_with_the_build(number: signal.Signals, kind: str, tmp_path: Path) -> None:
    project = make_project(tmp_path / "project", STUBBORN)
    running = stubborn(project, KINDS[kind]())
    if number == signal.SIGINT:
        os.killpg(running.process.pid, number)  # as a terminal does
    else:
        running.process.send_signal(number)
    ended = running.end(SECONDS)
    assert gone(project) == []
    assert ended.code == (-signal.SIGKILL if number == signal.SIGKILL else 130)
    assert not project.out.exists() or project.published() == []
    assert verify(Store.open(project.store)).sound
    (project.source / "wait").unlink()
    assert project.build().code == 0
    assert len(project.wheels()) == 1


def test_finished_stages_do_not_run_again_after_an_interruption(tmp_path: Path) -> None:
    project = make_project(tmp_path / "project", STUBBORN)
    for started in (["fetch", "first", "lib"], ["lib"]):
        for sign in project.store.glob("work/*/alive"):
            sign.unlink()
        running = stubborn(project)
        running.process.terminate()
        events = running.end(SECONDS).events
        assert sorted(event["stage"] for event in events if event["event"] == "stage-started") == started
        assert (events[-1]["event"], events[-1]["status"]) == ("run-finished", "cancelled")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_at_any_moment(number: signal.Signals, tmp_path: Path) -> None:
    project = make_project(tmp_path / "project")
    for moment in (0.3, 0.6, 1.0):
        running = project.start("build", "small.toml", "--out", "dist")
        time.sleep(moment)
        running.process.send_signal(number)
        assert running.end(SECONDS).code in {130, 0, -number}  # the last two before Python is up, and too late
        assert gone(project) == []
    assert project.build().code == 0
    assert project.sound()


PAIR = """\
name = "pair"
version = "1.0"
source = { path = "src" }

[stages.one]
action = "run"
commands = ["touch ../alive; while test -e wait; do sleep 0.1; done; touch $AXLETREE_OUT/one"]

[stages.two]
action = "run"
commands = ["touch $AXLETREE_OUT/two"]

[stages.three]
action = "run"
inputs = ["two"]
commands = ["touch $AXLETREE_OUT/three"]
"""


@pytest.mark.parametrize("inner", [False, True])
def test_a_killed_stage_is_told_and_the_others_go_on(inner: bool, tmp_path: Path) -> None:  # noqa: FBT001
    project = make_project(tmp_path / "project", PAIR, files={"src/wait": ""})
    running = project.start("build", "small.toml", "--out", "dist", "--json", "--keep-going")
    kill_stage(running, project, "one", inner=inner)
    kill_stage(running, project, "one", inner=inner)  # it ran again
    ended = running.end(60)
    assert ended.code == 1
    assert ended.statuses() == {"fetch": "done", "one": "failed", "two": "done", "three": "done"}
    assert "killed by another process" in ended.finished("one")["message"]
    assert "had already been killed once" in ended.finished("one")["message"]
    assert gone(project) == []
    (project.source / "wait").unlink()
    assert project.build().code == 0


def test_a_stage_that_was_killed_once_runs_again(tmp_path: Path) -> None:
    project = make_project(tmp_path / "project", PAIR, files={"src/wait": ""})
    running = project.start("build", "small.toml", "--out", "dist", "--json")
    kill_stage(running, project, "one")
    wait_for(lambda: any(project.store.glob("work/*/alive")), running)
    for wait in project.store.glob("work/*/source/wait"):
        wait.unlink()
    ended = running.end(60)
    assert (ended.code, set(ended.statuses().values())) == (0, {"done"}), ended.out
    starts = [event["jobs"] for event in ended.events if event["event"] == "stage-started" and event["stage"] == "one"]
    assert starts[1:] == [1]


def kill_stage(running: Running, project: Project, stage: str, *, inner: bool = False) -> None:
    """Kill the process of a stage that has come to its waiting, or the outer one around it."""
    wait_for(lambda: any(project.store.glob("work/*/alive")), running)
    victim = next(each for each in psutil.Process(running.process.pid).children() if is_stage(each, project, stage))
    for sign in project.store.glob("work/*/alive"):
        sign.unlink()
    (victim.children()[0] if inner else victim).kill()


def is_stage(process: psutil.Process, project: Project, stage: str) -> bool:
    """Whether a process runs a stage: the last word of its command is the stage's key."""
    key = process.cmdline()[-1]
    return f'"stage":"{stage}"' in (project.store / "requests" / f"{key}.json").read_text(encoding="utf-8")
