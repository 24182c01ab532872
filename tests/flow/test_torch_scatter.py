"""The main job on real input: torch-scatter's sdist to a tested wheel in an index, with the real PyTorch CPU build.

The store lies in the checkout's ``.cache`` and is kept between runs: the first run compiles for minutes, later ones
find what did not change. What is asserted holds for both.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

from axletree.core.errors import HostError
from axletree.host.indexes import read_indexes
from axletree.host.interpreters import find_interpreter
from axletree.host.simple_api import find_file
from axletree.recipe.locks import parse_lock
from axletree.recipe.settings import Settings
from support.envelopes import events_of, result_of

ROOT = Path(__file__).parents[2]
RECIPE = ROOT / "recipes" / "torch-scatter.toml"
LOCK = ROOT / "recipes" / "torch-scatter" / "pylock.test-py311-cpu-torch2_13_0.toml"
WHEEL = "torch_scatter-2.1.2+torch.2.13.cpu-cp311-cp311-"

Built = tuple[Path, list[dict[str, Any]]]
"""Output folder and events of a build."""

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1500), pytest.mark.xdist_group("torch-scatter")]


def _axletree(*words: str | Path, environ: dict[str, str]) -> subprocess.CompletedProcess[str]:
    argv = [sys.executable, "-m", "axletree", *map(str, words)]
    return subprocess.run(argv, capture_output=True, text=True, env=environ, cwd=ROOT, check=False)


@pytest.fixture(scope="module")
def environ() -> dict[str, str]:
    """An environment whose store is kept; skips where this machine cannot have the input."""
    try:
        find_interpreter("3.11", environ=os.environ)
    except HostError as error:
        pytest.skip(f"needs Python 3.11: {error}")
    if shutil.which("c++") is None:
        pytest.skip("needs a C++ compiler")
    torch = next(wheel for wheel in parse_lock(LOCK.read_text(), file=str(LOCK)).wheels if wheel.name == "torch")
    settings = read_indexes(Settings(), os.environ, home=Path.home(), cwd=ROOT)
    try:
        find_file(torch.filename, torch.sha256, settings, extra=["https://download.pytorch.org/whl/cpu"])
    except HostError as error:
        pytest.skip(f"PyTorch's CPU build cannot be had: {error}")
    return {**os.environ, "AXLETREE_STORE": str(ROOT / ".cache" / "test-store")}


@pytest.fixture(scope="module")
def built(environ: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Built:
    """The output folder of a build, and its events."""
    out = tmp_path_factory.mktemp("torch-scatter") / "dist"
    done = _axletree("build", RECIPE, "--out", out, "--json", environ=environ)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    return out, events_of(done.stdout)


@pytest.fixture(scope="module")
def wheel(built: Built) -> Path:
    (found,) = (built[0] / "torch-2.13" / "cpu").glob("*.whl")
    return found


def test_every_stage_is_done(built: Built) -> None:
    finished = {event["stage"]: event["status"] for event in built[1] if event["event"] == "stage-finished"}
    assert len(finished) == 10
    assert set(finished.values()) <= {"done", "cached"}


def test_wheel_says_what_it_was_built_for(wheel: Path) -> None:
    assert wheel.name.startswith(WHEEL)
    with zipfile.ZipFile(wheel) as archive:
        assert archive.testzip() is None
        metadata = archive.read("torch_scatter-2.1.2+torch.2.13.cpu.dist-info/METADATA").decode()
    assert "Version: 2.1.2+torch.2.13.cpu\n" in metadata
    assert "Requires-Dist: torch==2.13.0\n" in metadata
    assert "Summary: PyTorch Extension Library of Optimized Scatter Operations\n" in metadata


def test_wheel_holds_no_path_of_this_machine(wheel: Path, environ: dict[str, str]) -> None:
    with zipfile.ZipFile(wheel) as archive:
        for member in archive.namelist():
            content = archive.read(member)
            assert environ["AXLETREE_STORE"].encode() not in content, member
            assert str(Path.home()).encode() + b"/" not in content, member


def test_readelf_agrees_with_the_audit(wheel: Path, tmp_path: Path) -> None:
    """The extension needs PyTorch's libraries and carries no path towards them."""
    if shutil.which("readelf") is None:
        pytest.skip("needs readelf")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path)
    extensions = sorted(tmp_path.rglob("*.so"))
    assert len(extensions) == 4
    for extension in extensions:
        listing = subprocess.run(["readelf", "-d", extension], capture_output=True, text=True, check=True).stdout
        assert "Shared library: [libtorch_cpu.so]" in listing
        assert "RPATH" not in listing
        assert "RUNPATH" not in listing


@pytest.mark.parametrize("client", ["pip", "uv"])
def test_clients_install_from_the_published_index(
    client: str, built: Built, environ: dict[str, str], tmp_path: Path
) -> None:
    """From the output folder itself: the index has the package, the locked wheels have the rest."""
    wheels = _wheelhouse(environ, tmp_path)
    index = (built[0] / "torch-2.13" / "cpu" / "simple").as_uri()
    target = tmp_path / "site"
    python = ["--python-version=3.11", "--only-binary=:all:"]  # the recipe's, whatever runs the tests
    argv = {
        "pip": [sys.executable, "-m", "pip", "install", "--isolated", "--no-cache-dir", "--no-compile", *python],
        "uv": ["uv", "pip", "install", "--no-config", "--offline", f"--python={sys.executable}", *python],
    }[client]
    quiet = {"PATH": f"{Path(sys.executable).parent}:{environ['PATH']}", "HOME": str(tmp_path), "UV_LINK_MODE": "copy"}
    quiet["PIP_CONFIG_FILE"] = os.devnull
    for requirement, fails in (("torch-scatter==2.1.2+torch.2.13.cpu", False), ("torch-scatter==2.1.3", True)):
        done = subprocess.run(
            [*argv, "--no-deps", f"--index-url={index}", f"--find-links={wheels}", f"--target={target}", requirement],
            capture_output=True,
            text=True,
            env=quiet,
            check=False,
        )
        assert (done.returncode != 0) is fails, done.stderr
    assert (target / "torch_scatter" / "scatter.py").exists()


def test_torch_can_only_be_the_locked_one(built: Built, environ: dict[str, str], tmp_path: Path) -> None:
    """Without the locked wheel the resolution fails: no other PyTorch is fetched in its place."""
    index = (built[0] / "torch-2.13" / "cpu" / "simple").as_uri()
    done = subprocess.run(
        [
            *(sys.executable, "-m", "pip", "download", "--isolated", "--python-version=3.11", "--only-binary=:all:"),
            *(f"--index-url={index}", "torch-scatter"),
        ],
        capture_output=True,
        text=True,
        env={"PATH": environ["PATH"], "HOME": str(tmp_path), "PIP_CONFIG_FILE": os.devnull},
        cwd=tmp_path,
        check=False,
    )
    assert done.returncode != 0
    assert "torch==2.13.0" in done.stdout + done.stderr
    assert not list(tmp_path.glob("torch-*.whl"))


def test_second_run_does_nothing(built: Built, environ: dict[str, str]) -> None:
    done = _axletree("build", RECIPE, "--out", built[0], environ=environ)
    assert done.returncode == 0
    assert "nothing to do: 10 stages are in the store" in done.stdout


def test_report_tells_the_story(built: Built) -> None:
    report = (built[0] / "report.html").read_text()
    for text in (WHEEL, "test:imports:uv", "install", "2.13.0+cpu"):
        assert text in report


def test_tests_of_the_recipe_ran_with_both_clients(built: Built, environ: dict[str, str]) -> None:
    plan = result_of(_axletree("plan", RECIPE, "--json", environ=environ).stdout)
    assert all(stage["status"] == "cached" for stage in plan["stages"])
    tested = [event for event in built[1] if event.get("stage", "").startswith("test:imports")]
    assert {event["stage"].split("[")[0] for event in tested} == {"test:imports:pip", "test:imports:uv"}


def _wheelhouse(environ: dict[str, str], folder: Path) -> Path:
    """The locked wheels, linked out of the store by their digests."""
    house = folder / "wheels"
    house.mkdir()
    for wheel in parse_lock(LOCK.read_text(), file=str(LOCK)).wheels:
        (house / wheel.filename).symlink_to(
            Path(environ["AXLETREE_STORE"]) / "blobs" / wheel.sha256[:2] / wheel.sha256[2:]
        )
    return house


@pytest.mark.proof
@pytest.mark.timeout(2400)
def test_an_older_image_makes_wheels_for_older_systems(environ: dict[str, str], tmp_path: Path) -> None:
    """The same project in Debian 11; pip and uv install its wheel there, in Debian 12 and on this machine."""
    recipe = tmp_path / "bullseye.toml"
    shutil.copy(ROOT / "docs/proof/images/torch-scatter-bullseye.toml", recipe)
    locked = _axletree("lock", recipe, "-v", "py311-*", environ=environ)
    assert locked.returncode == 0, locked.stderr
    done = _axletree("build", recipe, "-v", "py311-*", "--out", tmp_path / "dist", "--json", environ=environ)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    (wheel,) = (tmp_path / "dist").rglob("*.whl")
    assert int(wheel.name.split("manylinux_2_")[1].split("_")[0]) <= 31
    finished = {event["stage"] for event in events_of(done.stdout) if event["event"] == "stage-finished"}
    tests = {stage.partition("[")[0] for stage in finished if stage.startswith("test:")}
    assert tests == {f"test:{name}:{client}" for name in ("imports", "there", "newer") for client in ("pip", "uv")}
