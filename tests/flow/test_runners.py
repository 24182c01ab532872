"""Stages in containers of an engine: the same results as in namespaces, and nothing is left of what is killed."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import psutil
import pytest

from axletree.core.images import ImageId
from axletree.execute.containers import store_label
from axletree.plan.containers import image_reference
from support.images import need
from support.inputs import CACHE
from support.inside import logs, project, root_archive
from support.tiny import wheel_digests

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from support.tiny import Tiny

BULLSEYE = ("-v", "*bullseye*")
SECONDS = 60.0
"""How long after a kill something of a build may still be there, on however busy a machine."""
HELD = """\
  \"\"\"
  if test -e /axletree/store/hold; then
    setsid sh -c 'trap "" TERM INT HUP; touch /axletree/store/alive; while :; do sleep 1; done' MARK &
    while test -e /axletree/store/hold; do sleep 0.1; done
  fi
  \"\"\",
"""
"""Waits while a file is there, with a process in a session of its own that ignores polite signals."""


@pytest.fixture(scope="module")
def podman() -> dict[str, str]:
    """Variables by which podman keeps its images and containers where only tests do; kept between runs."""
    need("podman", "runc")
    storage = CACHE / "podman"
    storage.mkdir(parents=True, exist_ok=True)
    settings = storage / "storage.conf"
    places = f'graphroot = "{storage / "root"}"\nrunroot = "{storage / "run"}"\n'
    settings.write_text(f'[storage]\ndriver = "overlay"\n{places}')
    variables = {"CONTAINERS_STORAGE_CONF": str(settings)}
    done = subprocess.run(["podman", "info"], env=os.environ | variables, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        pytest.skip(f"podman does not work here: {done.stderr[-300:]}")
    return variables


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory, podman: dict[str, str]) -> Tiny:
    """Built in both ways; not to be changed."""
    return built_twice(tmp_path_factory.mktemp("runners"), "bullseye", podman)


def built_twice(root: Path, suite: str, podman: dict[str, str]) -> Tiny:
    """A project, built in namespaces, then once more in containers, in the same store."""
    tiny = project(root, root_archive(suite), suite=suite).with_environ(**podman)
    locked = tiny.call("lock", str(tiny.recipe))
    assert locked.returncode == 0, locked.stderr
    tiny.built("-v", f"*{suite}*", "--package", "inside")
    tiny.out.rename(tiny.home / "of-namespaces")
    forget_results(tiny)
    ran = tiny.built("-v", f"*{suite}*", "--runner", "podman")
    assert {stage.partition("[")[0] for stage in ran.stages("done")} >= {"ext", "test:there:uv"}
    return tiny


def forget_results(tiny: Tiny) -> None:
    """Have all run again; images and Pythons stay."""
    for folder in ("results", "environments", "logs"):
        shutil.rmtree(tiny.store / folder)


def listed(tiny: Tiny) -> list[str]:
    """Containers of the store, running or not."""
    wanted = f"label=axletree.store={store_label(tiny.store)}"
    command = ["podman", "ps", "--all", "--filter", wanted, "--format", "{{.Names}}"]
    environ = os.environ | dict(tiny.environ)
    return subprocess.run(command, env=environ, capture_output=True, text=True, check=True).stdout.split()


def processes(*words: str) -> list[psutil.Process]:
    """Living processes with one of these words in their command lines."""
    found = []
    for process in psutil.process_iter(["cmdline", "status"]):
        line = " ".join(process.info["cmdline"] or ())
        if process.info["status"] != psutil.STATUS_ZOMBIE and any(word in line for word in words):
            found.append(process)
    return found


@pytest.fixture
def held(base: Tiny, tmp_path: Path) -> Tiny:
    """A project of the test's own, in the same store, whose stage waits in its container."""
    tiny = copied_project(base, tmp_path)
    tiny.change('  "c++ -g', HELD.replace("MARK", mark(tiny)) + '  "c++ -g')
    return tiny


def copied_project(base: Tiny, root: Path) -> Tiny:
    tiny = project(root, root_archive())
    shutil.copytree(base.folder / "tiny", tiny.folder / "tiny")
    return type(tiny)(
        folder=tiny.folder, store=base.store, home=tiny.home, versions=tiny.versions, environ=base.environ
    )


def mark(tiny: Tiny) -> str:
    """A word in the command line of what the stage leaves in the background."""
    return f"held-{tiny.folder.parent.name}"


def start(tiny: Tiny) -> subprocess.Popen[str]:
    """A build that has come to the stage that waits."""
    (tiny.store / "alive").unlink(missing_ok=True)
    (tiny.store / "hold").touch()
    command = [sys.executable, "-P", "-m", "axletree", "build", str(tiny.recipe), "--json", "--out", str(tiny.out)]
    driver = subprocess.Popen(
        [*command, *BULLSEYE, "--package", "inside", "--runner", "podman"],
        env=tiny.variables(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    wait(lambda: (tiny.store / "alive").exists() or driver.poll() is not None)
    assert driver.poll() is None, driver.communicate()
    assert processes(mark(tiny))
    return driver


def wait(happened: Callable[[], object]) -> None:
    deadline = time.monotonic() + SECONDS
    while not happened():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def records(tiny: Tiny) -> dict[str, int]:
    return {path.name: path.stat().st_ino for path in (tiny.store / "results").glob("*/*.json")}


def kill_build(tiny: Tiny, kill: Callable[[Tiny, subprocess.Popen[str], list[str]], None]) -> None:
    """Kill something of a build in its held stage: nothing is left then, and no result is lost."""
    driver = start(tiny)
    before, names = records(tiny), listed(tiny)
    assert len(names) == 1
    kill(tiny, driver, names)
    wait(lambda: not processes(mark(tiny), *names) and not listed(tiny))
    assert records(tiny) == before, "a stage that was killed has a result, or another lost its own"


def go_on(tiny: Tiny) -> None:
    """The next build runs only what was killed, and removes what never came to run."""
    (tiny.store / "hold").unlink()
    leave_container(tiny)
    before = records(tiny)
    again = tiny.built(*BULLSEYE, "--package", "inside", "--runner", "podman")
    assert {stage.partition("[")[0] for stage in again.stages("done")} == {"ext"}, "all else was there, or is the same"
    assert listed(tiny) == []
    assert before.items() < records(tiny).items()
    for key in records(tiny).keys() - before.keys():
        (tiny.store / "results" / key[:2] / key).unlink()
    shutil.rmtree(tiny.out)


def leave_container(tiny: Tiny) -> None:
    """A container as it is if the client and the driver are killed before it starts."""
    (image,) = (path.name for path in (tiny.store / "images").iterdir())
    label = f"axletree.store={store_label(tiny.store)}"
    command = ["podman", "create", "--name", f"axletree-{mark(tiny)}", "--label", label]
    command += ["--network", "none", image_reference("bullseye", ImageId(image)), "true"]
    subprocess.run(command, env=os.environ | dict(tiny.environ), capture_output=True, check=True)
    assert listed(tiny)


def kill_driver(_: Tiny, driver: subprocess.Popen[str], __: list[str]) -> None:
    driver.kill()
    driver.communicate()


def cancel(_: Tiny, driver: subprocess.Popen[str], __: list[str]) -> None:
    driver.send_signal(signal.SIGINT)
    driver.communicate()
    assert driver.returncode == 130


def kill_client(tiny: Tiny, driver: subprocess.Popen[str], names: list[str]) -> None:
    """The driver runs a stage that was killed once more, and in the end says what happened."""
    for _ in range(2):
        (tiny.store / "alive").unlink()
        for process in processes(f"run --rm --interactive --name {names[0]}"):
            process.kill()
        wait(lambda: (tiny.store / "alive").exists() or driver.poll() is not None)
        names[:] = listed(tiny) or names
    out, _err = driver.communicate()
    assert driver.returncode == 1
    assert "killed by another process" in out


def test_wheels_are_equal_to_those_of_namespaces(base: Tiny) -> None:
    assert_equal_wheels(base, "bullseye")


@pytest.mark.proof
@pytest.mark.timeout(900)
def test_wheels_of_bookworm_are_equal_too(podman: dict[str, str], tmp_path: Path) -> None:
    assert_equal_wheels(built_twice(tmp_path, "bookworm", podman), "bookworm")


def assert_equal_wheels(tiny: Tiny, index: str) -> None:
    ours, theirs = (wheel_digests(place / index) for place in (tiny.out, tiny.home / "of-namespaces"))
    assert len(ours) == 1
    assert ours == theirs


def test_programs_saw_the_image_and_results_belong_to_the_caller(base: Tiny) -> None:
    assert any("(10, 31, True) 11.11" in text for text in logs(base, "inside.made()"))
    places = [*base.store.glob("*"), *base.store.glob("environments/*/*"), *base.store.glob("results/*/*")]
    assert {path.lstat().st_uid for path in places} == {os.geteuid()}
    assert listed(base) == []
    assert not [*(base.store / "scratch").iterdir()]


def test_a_failure_is_told_with_paths_of_this_machine(base: Tiny, tmp_path: Path) -> None:
    tiny = copied_project(base, tmp_path)
    tiny.change('  "c++ -g', '  "c++ missing.cpp || pwd && false",\n  "c++ -g')
    failed = tiny.call("build", str(tiny.recipe), "--out", str(tiny.out), *BULLSEYE, "--runner", "podman")
    assert failed.returncode == 1
    (text,) = logs(tiny, "missing.cpp")
    for said in (text, failed.stdout + failed.stderr):
        assert "missing.cpp" in said
        assert "/axletree/" not in said
    assert f"\n{tiny.store}/work/" in text
    assert listed(tiny) == []


def test_containers_and_namespaces_continue_in_the_same_kept_folder(base: Tiny, tmp_path: Path) -> None:
    tiny = copied_project(base, tmp_path)
    tiny.change('tools = ["c++"]', 'tools = ["c++"]\nworkspace = true')
    said = '"pwd; ls $AXLETREE_WORKSPACE; date +%N > $AXLETREE_WORKSPACE/kept-by-the-stage"'
    tiny.change('  "c++ -g', f'  {said},\n  "c++ -g')
    tiny.built(*BULLSEYE, "--runner", "podman")
    (kept,) = (base.store / "workspaces").glob("*/state/kept-by-the-stage")
    first = kept.read_text()
    tiny.edit("src/inside.cpp", "#include <dlfcn.h>", "#include <dlfcn.h>  // changed")
    tiny.built(*BULLSEYE)
    assert kept.read_text() != first
    second = next(text for text in logs(tiny, "date +%N") if "\nkept-by-the-stage\n" in text)
    assert f"\n{kept.parents[1]}/source\n" in second
    tiny.change("-O1", "-O2")
    tiny.built(*BULLSEYE, "--runner", "podman", "--replace")
    texts = [text for text in logs(tiny, "date +%N") if "-O2" in text]
    assert len(texts) == 1
    assert "\nkept-by-the-stage\n" not in texts[0], "other settings, another folder: it was emptied"


@pytest.mark.parametrize(("kill", "rounds"), [(kill_driver, 5), (kill_client, 3), (cancel, 1)])
def test_nothing_is_left_of_what_is_killed(kill: Callable[..., None], rounds: int, held: Tiny) -> None:
    """A client is killed twice in each round: the driver starts its stage once more."""
    for _ in range(rounds):
        kill_build(held, kill)
    go_on(held)


@pytest.mark.proof
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("kill", [kill_driver, kill_client])
def test_nothing_is_left_of_twenty_kills(kill: Callable[..., None], held: Tiny) -> None:
    for _ in range(20):
        kill_build(held, kill)
        go_on(held)


def engine(folder: Path, name: str, script: str) -> Path:
    """A folder with a program in the place of an engine."""
    folder.mkdir(exist_ok=True)
    program = folder / name
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    return folder


DAEMON = "Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is the docker daemon running?"
SOCKET = "permission denied while trying to connect to the Docker daemon socket at unix:///var/run/docker.sock"
REAL = 'case "$*" in *--hostname*) echo "Error: unknown flag: --hostname" >&2; exit 125;; esac; exec PODMAN "$@"'
ENGINES = {
    "docker": (f'case $1 in --version) ;; *) echo "{DAEMON}" >&2; exit 1;; esac', DAEMON, "start the Docker daemon"),
    "docker-socket": (f'case $1 in --version) ;; *) echo "{SOCKET}" >&2; exit 1;; esac', SOCKET, "group docker"),
    "podman": (REAL, "unknown flag: --hostname", "--runner namespace"),
}


@pytest.mark.parametrize("kind", ENGINES)
def test_an_engine_that_does_not_work_is_told_before_anything_runs(kind: str, base: Tiny, tmp_path: Path) -> None:
    script, words, cure = ENGINES[kind]
    name = kind.partition("-")[0]
    folder = engine(tmp_path / "bin", name, script.replace("PODMAN", shutil.which("podman") or ""))
    tiny = copied_project(base, tmp_path)
    tiny.change("-O1", "-O2")
    tiny = tiny.with_environ(PATH=f"{folder}:{tiny.variables()['PATH']}")
    failed = tiny.call("build", str(tiny.recipe), "--out", str(tiny.out), *BULLSEYE, "--runner", name)
    assert failed.returncode == 3
    assert words in failed.stderr
    assert cure in failed.stderr
    assert "started" not in failed.stderr


def test_stages_without_an_image_need_no_engine(base: Tiny, tmp_path: Path) -> None:
    tiny = copied_project(base, tmp_path)
    folder = engine(tmp_path / "bin", "docker", ENGINES["docker"][0])
    tiny = tiny.with_environ(PATH=f"{folder}:{tiny.variables()['PATH']}")
    tiny.built("-v", "*host*", "--runner", "docker", "--package", "inside")
    tiny.built(*BULLSEYE, "--runner", "docker", "--package", "inside")  # all has a result


def test_an_engine_that_is_not_installed(base: Tiny, tmp_path: Path) -> None:
    tiny = copied_project(base, tmp_path)
    tiny.change("-O1", "-O3")
    tiny = tiny.with_environ(PATH=":".join(each for each in tiny.variables()["PATH"].split(":") if "pyenv" in each))
    failed = tiny.call("build", str(tiny.recipe), "--out", str(tiny.out), *BULLSEYE, "--runner", "podman")
    assert failed.returncode == 3
    assert "podman is not installed" in failed.stderr
    assert "--runner namespace" in failed.stderr
