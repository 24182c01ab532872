"""pip and uv over split and official packages, whatever is there before: import works or says why, nothing is left.

From each state that an environment can be in, each step is taken. After it every file on disk belongs to exactly one
distribution, none of its files is missing, and ``import torch`` does what the installed versions call for.
"""

from __future__ import annotations

import csv
import itertools
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest

from axletree.app.split import load_split_rules, split_wheel
from axletree.host.archive import write_wheel_file
from axletree.package.wheel.info import WheelInfo
from axletree.package.wheel.metadata import create_metadata
from axletree.package.wheel.names import WheelName, parse_wheel_name
from axletree.package.wheel.writer import Member
from support.small_torch import make_small_torch

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

CLIENTS = ("pip", "uv")
PARTS = ("libtorch", "libtorch-cuda", "libtorch-cuda-linalg")
EVERYTHING = ("torch", *PARTS, "torch-split", "nvidia-nccl-cu13", "vision")
A, B, OFFICIAL = "2.14.1+cu130.split.1", "2.14.2+cu130.split.1", "2.14.1"
ANSWERS = {A: "28", OFFICIAL: "28", B: "32"}


class Site(NamedTuple):
    """An environment, one client for it, and the packages that can be had."""

    client: str
    python: Path
    packages: Path
    folder: Path

    def run(self, *words: str, index: str = "") -> subprocess.CompletedProcess[str]:
        """``pip WORDS`` or ``uv pip WORDS`` with one index root."""
        options = []
        if words[0] == "install":
            options = ["--index-url", (self.folder / index / "simple").as_uri()]
            options += ["--find-links", str(self.folder / "others"), "-q"]
        elif words[0] == "uninstall" and self.client == "pip":
            options = ["-y"]
        tool = [sys.executable, "-m", "pip", "--python", str(self.python), "--disable-pip-version-check"]
        if self.client == "uv":
            tool = [str(Path(sys.executable).with_name("uv")), "pip"]
            options += ["--python", str(self.python)]
        clean = {name: value for name, value in os.environ.items() if not name.startswith(("PIP_", "UV_"))}
        clean |= {"UV_CACHE_DIR": str(self.folder / "cache"), "UV_NO_CONFIG": "1", "PIP_CONFIG_FILE": os.devnull}
        return subprocess.run([*tool, *words, *options], env=clean, text=True, capture_output=True, check=False)

    def installed(self) -> dict[str, str]:
        """Distribution -> version."""
        stems = (path.name.removesuffix(".dist-info") for path in self.packages.glob("*.dist-info"))
        return {name.replace("_", "-"): version for name, _, version in (stem.partition("-") for stem in stems)}

    def check(self) -> None:
        """What must hold after every step."""
        owners: dict[str, str] = {}
        for record in self.packages.glob("*.dist-info/RECORD"):
            for path, *_ in csv.reader(record.read_text().splitlines()):
                assert owners.setdefault(path, record.parent.name) == record.parent.name, f"{path} has two owners"
        listed = {path for path in owners if not path.startswith("..")}
        present = {str(path.relative_to(self.packages)) for path in self.packages.rglob("*") if path.is_file()}
        present = {path for path in present if "__pycache__" not in path and not path.startswith("_virtualenv")}
        assert {path for path in listed if "__pycache__" not in path} == present
        installed = self.installed()
        done = subprocess.run(
            [self.python, "-B", "-c", "import torch; print(torch.value())"], text=True, capture_output=True, check=False
        )
        torch = installed.get("torch")
        wrong = [part for part in PARTS if installed.get(part) != torch]
        if torch is None:
            assert "ModuleNotFoundError: No module named 'torch'" in done.stderr
        elif torch == OFFICIAL or not wrong:
            assert done.stdout.strip() == ANSWERS[torch], done.stderr
        else:
            last = done.stderr.strip().splitlines()[-1]
            said = ", ".join(f"{part} is {installed.get(part, 'missing')}" for part in wrong)
            assert last.startswith(
                f"ImportError: torch {torch} does not match its parts: {said}. Install its parts again"
            )
            assert f"--find-links PLACE --force-reinstall --no-deps torch=={torch} libtorch=={torch} " in last


@pytest.fixture(scope="session")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Index roots ``official``, ``a`` and ``b``, and other packages."""
    folder = tmp_path_factory.mktemp("split")
    requires = ["nvidia-nccl-cu13==2.30.7; platform_system == 'Linux'"]
    for index, version, answer in (("a", "2.14.1", 7), ("b", "2.14.2", 8)):
        wheel = make_small_torch(folder / "official", version=version, answer=answer, requires=requires)
        split_wheel(wheel, load_split_rules("torch", wheel=wheel), folder / index)
        if index == "b":
            wheel.unlink()
    circle = [
        (f"circle-{name}", version, [f"circle-{other}=={version}"])
        for name, other in ("ab", "ba")
        for version in ("1.0", "2.0")
    ]
    others = [("nvidia-nccl-cu13", "2.30.7", []), ("vision", "1.0", ["torch==2.14.1"])]
    for name, version, needs in (*others, *circle):
        tag = WheelName(project=name, version=version, python="py3", abi="none", platform="any")
        (folder / "others").mkdir(exist_ok=True)
        write_wheel_file(
            folder / "others",
            tag,
            [Member(path=f"{name.replace('-', '_')}/x.py", data=b"")],
            metadata=create_metadata(name=name, version=version, requires=needs),
            wheel_info=WheelInfo(tags=tag.tags, purelib=True),
        )
    page = folder / "official" / "simple" / "torch" / "index.html"
    page.parent.mkdir(parents=True)
    official = next((folder / "official").glob("*.whl"))
    assert parse_wheel_name(official.name).version == OFFICIAL
    page.write_text(f'<a href="../../{official.name}">{official.name}</a>')
    return folder


@pytest.fixture
def client() -> str:
    """Tests that are not parametrised by it."""
    return "uv"


@pytest.fixture
def site(client: str, packages: Path, tmp_path: Path) -> Iterator[Site]:
    """An empty environment."""
    uv = Path(sys.executable).with_name("uv")
    subprocess.run([uv, "venv", "-q", "--no-config", "--python", sys.executable, tmp_path / "env"], check=True)
    python = tmp_path / "env" / "bin" / "python"
    found = next((tmp_path / "env" / "lib").glob("python*/site-packages"))
    site = Site(client, python, found, packages)
    yield site
    uninstall(*EVERYTHING)(site)
    left = [path for path in found.rglob("*") if path.is_file() and not path.name.startswith("_virtualenv")]
    assert left == []  # pip may leave folders that several packages had files in, without any file


def install(index: str, *words: str) -> Callable[[Site], None]:
    def step(site: Site) -> None:
        done = site.run("install", *words, index=index)
        assert done.returncode == 0, done.stderr

    return step


def uninstall(*names: str) -> Callable[[Site], None]:
    def step(site: Site) -> None:
        present = [name for name in names if name in site.installed()]
        if present:
            done = site.run("uninstall", *present)
            assert done.returncode == 0, done.stderr

    return step


OFFICIAL_TORCH = install("official", "torch==2.14.1")
SPLIT_A, SPLIT_B = install("a", "torch-split"), install("b", "torch-split")
STEPS = {
    "official": install("official", "--force-reinstall", "torch"),
    "a": install("a", f"torch-split=={A}"),
    "b": install("b", f"torch-split=={B}"),
    "upgrade": install("b", "--upgrade", "torch"),
    "one part of b": install("b", "--no-deps", f"libtorch-cuda=={B}"),
    "without a part": uninstall("libtorch"),
    "without torch": uninstall("torch"),
}
STATES: dict[str, tuple[Callable[[Site], None], ...]] = {
    "nothing": (),
    "official": (OFFICIAL_TORCH,),
    "a": (SPLIT_A,),
    "b": (SPLIT_B,),
    "official over a": (SPLIT_A, STEPS["official"]),
    "a, a part missing": (SPLIT_A, uninstall("libtorch")),
    "a, a part of b": (SPLIT_A, STEPS["one part of b"]),
    "only parts": (install("a", "libtorch-cuda-linalg"),),
}


LONG = {("pip", "official over a"), ("pip", "a, a part of b"), ("pip", "only parts")}  # a pip takes a second a step


@pytest.mark.parametrize(
    ("client", "state"),
    [
        pytest.param(client, state, marks=[pytest.mark.proof] if (client, state) in LONG else [])
        for client in CLIENTS
        for state in STATES
    ],
)
def test_every_step_from_every_state(site: Site, state: str, tmp_path: Path) -> None:
    for step in STATES[state]:
        step(site)
        site.check()
    shutil.copytree(site.packages, tmp_path / "state", symlinks=True)
    for name, step in STEPS.items():
        shutil.rmtree(site.packages)
        shutil.copytree(tmp_path / "state", site.packages, symlinks=True)
        step(site)
        site.check()
        installed = site.installed()
        if name in {"a", "b"}:  # whatever was there: all of one split
            version = {"a": A, "b": B}[name]
            assert {installed[part] for part in (*PARTS, "torch", "torch-split")} == {version}
        elif name == "official":
            assert installed["torch"] == OFFICIAL


@pytest.mark.parametrize("client", CLIENTS)
def test_a_requirement_on_the_official_version_is_satisfied(site: Site) -> None:
    SPLIT_A(site)
    install("a", "vision")(site)
    assert site.installed()["torch"] == A
    done = site.run("check")
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("client", CLIENTS)
def test_the_command_of_the_message_repairs(site: Site) -> None:
    for step in STATES["a, a part missing"]:
        step(site)
    done = subprocess.run([site.python, "-c", "import torch"], text=True, capture_output=True, check=False)
    words = done.stderr.strip().splitlines()[-1].partition("--find-links PLACE ")[2].partition(" (with uv")[0].split()
    if site.client == "uv":
        words = ["--reinstall", *words[1:]]
    install("a", *words)(site)
    site.check()
    assert site.installed()["libtorch"] == A


@pytest.mark.parametrize("client", CLIENTS)
def test_clients_accept_pins_in_a_circle(site: Site) -> None:
    install("a", "circle-a==1.0")(site)
    assert site.installed() == {"circle-a": "1.0", "circle-b": "1.0"}
    install("a", "--upgrade", "circle-b")(site)
    assert site.installed() == {"circle-a": "2.0", "circle-b": "2.0"}
    uninstall("circle-a", "circle-b")(site)


def test_libtorch_stays_usable_alone(site: Site) -> None:
    install("a", "libtorch")(site)
    site.check()
    assert set(site.installed()) == {"libtorch"}


def test_splits_sort_by_their_number() -> None:
    from packaging.version import Version

    versions = ["2.14.1", "2.14.1+cu130", "2.14.1+cu130.split.1", "2.14.1+cu130.split.2", "2.14.1+cu130.split.10"]
    for older, newer in itertools.pairwise([*versions, "2.14.2+cpu.split.1"]):
        assert Version(older) < Version(newer)
