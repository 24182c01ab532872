"""The same with docker, whose daemon runs as root: the wheel of a namespace, files of the caller's, nothing left."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from support.inside import project, root_archive
from support.ordinary import NOBODY, ordinary_user
from support.tiny import pythons, wheel_digests

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from support.tiny import Tiny

pytestmark = [pytest.mark.proof, pytest.mark.timeout(900), pytest.mark.xdist_group("docker")]
WANTED = ("-v", "*bullseye*", "--package", "inside")


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """Variables by which docker finds a daemon of the tests' own, without any network."""
    program = shutil.which("dockerd", path=f"{os.environ.get('PATH')}:/usr/sbin")
    if program is None or shutil.which("docker") is None or os.geteuid() != 0:
        pytest.skip("needs root and docker (scripts/setup daemon)")
    folder = tmp_path_factory.mktemp("docker")
    folder.chmod(0o711)
    address = f"unix://{folder}/docker.sock"
    options = ["--iptables=false", "--ip6tables=false", "--bridge=none", "--host", address]
    options += [f"--{name}={folder / name}" for name in ("data-root", "exec-root", "pidfile")]
    with (folder / "log").open("wb") as log:
        running = subprocess.Popen([program, *options], stdout=log, stderr=subprocess.STDOUT)
    variables = {"DOCKER_HOST": address}
    try:
        deadline = time.monotonic() + 60
        while docker(variables, "info").returncode != 0:
            if running.poll() is not None or time.monotonic() > deadline:
                pytest.skip(f"no docker daemon here: {(folder / 'log').read_text()[-400:]}")
            time.sleep(0.1)
        (folder / "docker.sock").chmod(0o666)
        yield variables
    finally:
        running.send_signal(signal.SIGTERM)
        running.wait(60)


def docker(environ: dict[str, str], *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["docker", *words], env=os.environ | environ, capture_output=True, text=True, check=False, timeout=120
    )


def wait(happened: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 120
    while not happened():
        assert time.monotonic() < deadline
        time.sleep(0.1)


def made(root: Path, daemon: dict[str, str]) -> Tiny:
    """A project and its archive below one folder; locked."""
    archive = root / "system.tar"
    shutil.copy(root_archive(), archive)
    return project(root, archive).with_environ(**daemon)


def test_docker_makes_the_wheel_of_a_namespace(daemon: dict[str, str], tmp_path: Path) -> None:
    tiny = made(tmp_path, daemon)
    assert tiny.call("lock", str(tiny.recipe)).returncode == 0
    tiny.built(*WANTED)
    tiny.out.rename(tiny.home / "of-namespaces")
    shutil.rmtree(tiny.store / "results")
    ran = tiny.built(*WANTED, "--runner", "docker")
    assert {stage.partition("[")[0] for stage in ran.stages("done")} >= {"ext", "test:there:uv"}
    assert wheel_digests(tiny.out / "bullseye") == wheel_digests(tiny.home / "of-namespaces" / "bullseye")
    assert docker(daemon, "ps", "--all", "--quiet").stdout == ""


def test_results_belong_to_the_user_who_asked_a_daemon_of_root(
    daemon: dict[str, str], tmp_path_factory: pytest.TempPathFactory
) -> None:
    root = tmp_path_factory.mktemp("ordinary")
    tiny = made(root, daemon)
    for path in (root, *root.rglob("*")):
        os.chown(path, NOBODY, NOBODY)
    socket = Path(daemon["DOCKER_HOST"].removeprefix("unix://")).parent
    used = [root, socket, Path(__file__).parents[2], Path(sys.base_prefix)]
    theirs = replace(tiny, prefix=ordinary_user([*used, *(Path(each.path).parents[1] for each in pythons().values())]))
    locked = theirs.call("lock", str(tiny.recipe))
    assert locked.returncode == 0, locked.stderr
    theirs.built(*WANTED, "--runner", "docker")
    assert {path.lstat().st_uid for path in (*tiny.store.rglob("*"), *tiny.out.rglob("*"))} == {NOBODY}


def test_a_killed_driver_leaves_no_container(daemon: dict[str, str], tmp_path: Path) -> None:
    tiny = made(tmp_path, daemon)
    tiny.change('  "c++ -g', '  "touch /axletree/store/alive; sleep 600",\n  "c++ -g')
    assert tiny.call("lock", str(tiny.recipe)).returncode == 0
    command = [*tiny.program, "build", str(tiny.recipe), "--out", str(tiny.out), *WANTED, "--runner", "docker"]
    driver = subprocess.Popen(command, env=tiny.variables(), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    wait(lambda: (tiny.store / "alive").exists() or driver.poll() is not None)
    assert driver.poll() is None, driver.communicate()
    driver.kill()
    driver.communicate()
    wait(lambda: docker(daemon, "ps", "--all", "--quiet").stdout == "")
