"""The devel tree under real installers: uninstalled, upgraded and installed again by pip and uv, after kills too."""

from __future__ import annotations

import os
import random
import signal
import subprocess
from typing import TYPE_CHECKING

import pytest

from axletree_runtime import _devel
from axletree_runtime._sdk import load_sdk
from support.devel_sdk import INSTALLERS, ROOT, Environment, make_environment, make_wheels, records, snapshot
from support.small_sdk import make_site

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

ALL = ("rocm", "rocm-sdk-core", "rocm-sdk-libraries", "rocm-sdk-devel")
_KILLED = """
import os, signal, sys
left = int(sys.argv.pop(1))
def count(event, words):
    global left
    if event.startswith(("os.", "open", "shutil.", "fcntl.")):
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
from rocm_sdk._cli import main
import tarfile, shutil, csv, filecmp, fcntl
sys.addaudithook(count)
main()
sys.stdout.write(f"{-left}\\n")
"""
"""The SDK's command, killed right before one of the system's calls that change or open files."""


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two versions of the small SDK."""
    folder = tmp_path_factory.mktemp("wheels")
    out = folder / "wheels"
    for version in ("7.1.0", "7.2.0"):
        make_wheels(make_site(folder / version, version=version, devel_files={f"include/of-{version}.h": b""}), out)
    return out


@pytest.fixture(params=INSTALLERS)
def environment(request: pytest.FixtureRequest, tmp_path: Path, wheels: Path) -> Environment:
    made = make_environment(tmp_path / "venv", request.param)
    made.install(wheels, *(f"{dist}==7.1.0" for dist in ALL))
    return made


def devel_names(environment: Environment) -> list[str]:
    return [name for name in environment.left() if "devel" in name]


def init(environment: Environment, *words: str) -> Path:
    done = environment.command("init", *words)
    assert (done.returncode, done.stderr) == (0, "")
    return environment.site / ROOT


def test_fault_c_uninstalling_leaves_nothing_not_even_what_tools_made(environment: Environment) -> None:
    root = init(environment)
    (root / "empty/folder").mkdir(parents=True)
    (root / "lib/made by a tool").write_text("")
    (root / "lib/dangling").symlink_to("nowhere")
    environment.uninstall("rocm-sdk-devel")
    assert devel_names(environment) == []
    found = subprocess.run([environment.python, "-c", f"import {ROOT}"], capture_output=True, text=True, check=False)
    assert "ModuleNotFoundError" in found.stderr  # no namespace package either
    environment.uninstall(*ALL[:-1])
    assert environment.left() == []


@pytest.mark.parametrize("mode", ["symlink", "copy"])
def test_fault_c_in_other_link_modes_too(environment: Environment, mode: str) -> None:
    init(environment, "--link-mode", mode)
    core = environment.site / "_rocm_sdk_core"
    before = snapshot(core)
    environment.uninstall("rocm-sdk-devel")
    assert devel_names(environment) == []
    assert snapshot(core) == before  # nobody followed a link


def test_an_upgrade_takes_the_old_tree_with_it(environment: Environment, wheels: Path) -> None:
    root = init(environment)
    assert (root / "include/of-7.1.0.h").is_file()
    environment.install(wheels, *(f"{dist}==7.2.0" for dist in ALL))
    assert not os.path.lexists(root)
    init(environment)
    assert sorted(path.name for path in (root / "include").glob("*.h")) == ["of-7.2.0.h"]
    environment.install(wheels, *(f"{dist}==7.1.0" for dist in ALL))
    init(environment)
    assert sorted(path.name for path in (root / "include").glob("*.h")) == ["of-7.1.0.h"]
    environment.uninstall(*ALL)
    assert environment.left() == []


def test_other_packages_may_be_installed_again_or_go_first(environment: Environment, wheels: Path) -> None:
    root = init(environment)
    record = records(environment.site)
    again = "--force-reinstall" if environment.installer == "pip" else "--reinstall"
    environment.install(wheels, again, "rocm-sdk-core==7.1.0", "rocm-sdk-libraries==7.1.0")
    init(environment)
    core = environment.site / "_rocm_sdk_core/lib/libamdhip64.so.7"
    assert (root / "lib/libamdhip64.so").samefile(core)
    assert records(environment.site) == record
    environment.uninstall("rocm-sdk-libraries")
    done = environment.command("init")
    assert done.returncode == 0
    assert "rocm-sdk-libraries is missing" in done.stderr
    assert not (root / "lib/libhiprand.so.1").exists()
    environment.uninstall("rocm-sdk-core", "rocm")
    environment.uninstall("rocm-sdk-devel")
    assert environment.left() == []


def killed(environment: Environment, at: int, *words: str) -> bool:
    """Whether the SDK's command was killed before it was done; ``at``: before which call."""
    command = [str(environment.python), "-c", _KILLED, str(at), *words]
    done = subprocess.run(command, env=_variables(), capture_output=True, text=True, check=False)
    assert done.returncode in (0, -signal.SIGKILL), done.stderr
    return done.returncode != 0


def calls(environment: Environment, *words: str) -> int:
    """How many calls it makes if nobody kills it."""
    command = [str(environment.python), "-c", _KILLED, "0", *words]
    done = subprocess.run(command, env=_variables(), capture_output=True, text=True, check=True)
    return int(done.stdout.split()[-1])


def _variables() -> dict[str, str]:
    return {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}  # what is compiled would count as calls the first time only


def of_the_tree(environment: Environment) -> dict[str, object]:
    """All of the devel package and its tree, RECORD included; without what holds times."""
    parts = ("_devel.json", "_devel_members.json", "__pycache__")
    found = snapshot(environment.site)
    return {path: what for path, what in found.items() if "sdk_devel" in path and not any(map(path.count, parts))}


def survive(environment: Environment, wheels: Path, points: int, seed: int, *, uninstall_each: int) -> int:
    """Kill expansions at random points; each time ``init`` must give the same as if nothing had been, and what is
    uninstalled then must be gone. Returns the number of kills."""
    total = calls(environment, "init")
    assert total > 100
    sdk, clean = load_sdk(environment.site / "rocm_sdk"), of_the_tree(environment)
    rnd, kills = random.Random(seed), 0
    for number in range(points):
        if number % uninstall_each == 0:
            environment.uninstall("rocm-sdk-devel")
            assert devel_names(environment) == []
            environment.install(wheels, "rocm-sdk-devel==7.1.0")
        else:
            _devel.deinit(sdk)
        for _ in range(1 + number % 2):  # and the next one, which finds what the first left
            kills += killed(environment, rnd.randint(1, total + 10), "init")
        _devel.expand(sdk)
        assert of_the_tree(environment) == clean
    environment.uninstall("rocm-sdk-devel")
    assert devel_names(environment) == []
    return kills


def test_fault_b_killed_at_random_points_then_init_then_uninstall(tmp_path: Path, wheels: Path) -> None:
    environment = make_environment(tmp_path / "venv", "uv")
    environment.install(wheels, *(f"{dist}==7.1.0" for dist in ALL))
    assert survive(environment, wheels, 5, seed=7, uninstall_each=2) > 3


@pytest.mark.proof
@pytest.mark.parametrize("installer", INSTALLERS)
def test_fault_b_killed_at_a_hundred_points(tmp_path: Path, wheels: Path, installer: str) -> None:
    environment = make_environment(tmp_path / "venv", installer)
    environment.install(wheels, *(f"{dist}==7.1.0" for dist in ALL))
    assert survive(environment, wheels, 75, seed=11, uninstall_each=1) >= 100


def test_fault_b_uninstalling_right_after_a_kill_leaves_nothing(tmp_path: Path, wheels: Path) -> None:
    """Without another ``init``: what RECORD says is true at each moment at which files lie there."""
    for installer, points in (("uv", 4), ("pip", 1)):
        environment = make_environment(tmp_path / installer, installer)
        environment.install(wheels, *(f"{dist}==7.1.0" for dist in ALL))
        total = calls(environment, "init")
        rnd = random.Random(3)
        for _ in range(points):
            environment.uninstall("rocm-sdk-devel")
            environment.install(wheels, "rocm-sdk-devel==7.1.0")
            killed(environment, rnd.randint(1, total), "init")
            environment.uninstall("rocm-sdk-devel")
            assert devel_names(environment) == []


def _gpus(environment: Environment, wheels: Path) -> None:
    environment.install(wheels, "rocm-sdk-libraries-gfx110x==7.1.0")


def _nothing(_environment: Environment, _wheels: Path) -> None:
    pass


@pytest.mark.parametrize(
    ("prepare", "words"),
    [
        (_gpus, ("init",)),
        (_nothing, ("init", "--link-mode", "symlink")),
        (_nothing, ("deinit",)),
        (_nothing, ("repair",)),
    ],
)
def test_what_is_killed_while_it_changes_a_tree_can_be_done_again(
    tmp_path: Path, wheels: Path, prepare: Callable[[Environment, Path], None], words: tuple[str, ...]
) -> None:
    environment = make_environment(tmp_path / "venv", "uv")
    environment.install(wheels, *(f"{dist}==7.1.0" for dist in ALL))

    def start() -> None:
        if prepare is _gpus:
            environment.uninstall("rocm-sdk-libraries-gfx110x")
        assert environment.command("init", "--link-mode", "hardlink").returncode == 0
        prepare(environment, wheels)

    prepare(environment, wheels)
    start()
    total = calls(environment, *words)
    clean = of_the_tree(environment)
    rnd = random.Random(5)
    for _ in range(4):
        start()
        killed(environment, rnd.randint(1, total), *words)
        assert environment.command(*words).returncode == 0
        assert of_the_tree(environment) == clean
    environment.uninstall("rocm-sdk-devel")
    assert devel_names(environment) == []
