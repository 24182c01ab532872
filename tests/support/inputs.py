"""Big real inputs: official wheels and Debian packages, found by their clients and kept between runs.

What can't be had makes the test skip with the client's own reason; it never passes without its input.
"""

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from support.wheels import local_wheels

# Read while tests are collected: later each test has a home of its own.
_BASE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
CACHE = Path(os.environ.get("AXLETREE_TEST_CACHE") or _BASE / "axletree-tests")
"""Where inputs are kept; ``AXLETREE_TEST_CACHE`` moves it."""


def wheel(requirement: str, *, python: str | None = None) -> Path:
    """The wheel that pip finds for a pinned requirement (``torch==2.14.1``), without dependencies.

    ``python`` asks for another interpreter's wheel, such as ``3.12``.
    """
    options = ["--python-version", python] if python else []
    command = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--only-binary=:all:", *options, requirement]
    return _kept(f"{requirement} {python or sys.version_info[:2]}", command, "*.whl", requirement)


def official_cpu_wheel() -> Path:
    """PyTorch's CPU build that the shipped recipes name: where pip is told to look, else downloaded."""
    given = local_wheels("torch-2.13.0+cpu-cp311-cp311-manylinux_2_28_x86_64.whl")
    return given[0] if given else wheel("torch==2.13.0+cpu", python="3.11")


def deb(package: str) -> Path:
    """A folder into which a Debian package of this machine's own sources was unpacked."""
    if not (shutil.which("apt-get") and shutil.which("dpkg-deb")):
        pytest.skip("Debian packages need apt-get and dpkg-deb")
    archive = _kept(f"deb {package}", ["apt-get", "download", "-qq", package], "*.deb", package)
    folder = archive.parent / "root"
    if not folder.exists():
        with tempfile.TemporaryDirectory(dir=archive.parent) as scratch:
            subprocess.run(["dpkg-deb", "-x", archive, f"{scratch}/root"], check=True)
            Path(scratch, "root").replace(folder)
    return folder


def debian_source(package: str, suite: str) -> Path:
    """A Debian source package of another suite, unpacked with Debian's patches.

    This machine's own package sources stay as they are; apt's configuration says where the archive is.
    """
    if not (shutil.which("apt-get") and shutil.which("dpkg-source")):
        pytest.skip("Debian sources need apt-get and dpkg-source (package dpkg-dev)")
    folder = CACHE / f"source-{package}-{suite}"
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "source").exists():
            _fetch_source(package, suite, folder)
    return folder / "source"


def _fetch_source(package: str, suite: str, folder: Path) -> None:
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        apt = _apt(folder / "apt", "deb-src", suite, "main")
        _run_apt([*apt, "source", "--download-only", package], scratch, package, suite)
        described = next(Path(scratch).glob("*.dsc"))
        command = ["dpkg-source", "--no-check", "-x", described.name, "source"]
        subprocess.run(command, cwd=scratch, capture_output=True, check=True)
        Path(scratch, "source").replace(folder / "source")


def debian_package(package: str, suite: str, component: str = "main", *, only: tuple[str, ...] = ()) -> Path:
    """A folder into which a Debian package of another suite was unpacked, or only what patterns of tar name."""
    if not (shutil.which("apt-get") and shutil.which("dpkg-deb")):
        pytest.skip("Debian packages need apt-get and dpkg-deb")
    folder = CACHE / f"package-{package}-{suite}"
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "root").exists():
            with tempfile.TemporaryDirectory(dir=folder) as scratch:
                apt = _apt(folder / "apt", "deb", suite, component)
                _run_apt([*apt, "download", package], scratch, package, suite)
                archive = next(Path(scratch).glob("*.deb"))
                root = Path(scratch, "root")
                root.mkdir()
                with subprocess.Popen(["dpkg-deb", "--fsys-tarfile", archive], stdout=subprocess.PIPE) as content:
                    unpack = ["tar", "-x", "-C", str(root), "--wildcards", *only]
                    subprocess.run(unpack, stdin=content.stdout, check=True)
                root.replace(folder / "root")
    return folder / "root"


def debian_archives(name: str, suite: str, packages: tuple[str, ...]) -> Path:
    """A folder with Debian packages of a suite as they are published, without what they depend on."""
    if not (shutil.which("apt-get") and shutil.which("dpkg-deb")):
        pytest.skip("Debian packages need apt-get and dpkg-deb")
    folder = CACHE / f"archives-{name}-{suite}"
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "debs").exists():
            with tempfile.TemporaryDirectory(dir=folder) as scratch:
                debs = Path(scratch, "debs")
                debs.mkdir()
                apt = [*_apt(folder / "apt", "deb", suite, "main"), "-oDir::State::status=/dev/null"]
                _run_apt([*apt, "download", *packages], str(debs), name, suite)
                debs.replace(folder / "debs")
    return folder / "debs"


def debian_root(name: str, suite: str, packages: tuple[str, ...]) -> Path:
    """A folder into which Debian packages of a suite were unpacked together, without what they depend on."""
    if not (shutil.which("apt-get") and shutil.which("dpkg-deb")):
        pytest.skip("Debian packages need apt-get and dpkg-deb")
    folder = CACHE / f"root-{name}-{suite}"
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "root").exists():
            with tempfile.TemporaryDirectory(dir=folder) as scratch:
                # What is installed here is no candidate: the suite's own version is wanted.
                apt = [*_apt(folder / "apt", "deb", suite, "main"), "-oDir::State::status=/dev/null"]
                _run_apt([*apt, "download", *packages], scratch, name, suite)
                for archive in sorted(Path(scratch).glob("*.deb")):
                    subprocess.run(["dpkg-deb", "-x", archive, f"{scratch}/root"], check=True)
                Path(scratch, "root").replace(folder / "root")
    return folder / "root"


def _apt(state: Path, kind: str, suite: str, component: str) -> list[str]:
    """An ``apt-get`` that knows one suite only and keeps its state in a folder of its own."""
    for needed in ("lists/partial", "cache/archives/partial"):
        (state / needed).mkdir(parents=True, exist_ok=True)
    (state / "sources.list").write_text(f"{kind} {debian_line()} {suite} {component}\n")
    options = [f"Dir::Etc::sourcelist={state}/sources.list", "Dir::Etc::sourceparts=/dev/null"]
    options += [f"Dir::State::Lists={state}/lists", f"Dir::Cache={state}/cache", "APT::Sandbox::User=root"]
    return ["apt-get", "-qq", *(f"-o{option}" for option in options)]


def _run_apt(command: list[str], folder: str, package: str, suite: str) -> None:
    update = [*command[: command.index("-oAPT::Sandbox::User=root") + 1], "update"]
    for each in (update, command):
        done = subprocess.run(each, cwd=folder, capture_output=True, text=True, check=False)
        if done.returncode:
            pytest.skip(f"{package} of Debian {suite} can't be had here: {done.stderr.strip()[-200:]}")


def debian_line() -> str:
    """The first archive that apt is configured with, as a `deb` line has it: its keyring and its address."""
    for file in sorted(Path("/etc/apt/sources.list.d").glob("*.sources")):
        for stanza in file.read_text().split("\n\n"):
            lines = [line.partition(":") for line in stanza.splitlines() if not line.startswith("#")]
            fields = {name.strip(): value.strip() for name, _, value in lines}
            if "URIs" in fields:
                signed = f"[signed-by={fields['Signed-By']}] " if "Signed-By" in fields else ""
                return signed + fields["URIs"].split()[0]
    for line in (
        Path("/etc/apt/sources.list").read_text().splitlines() if Path("/etc/apt/sources.list").exists() else ()
    ):
        words = line.split()
        if words[:1] == ["deb"]:
            return " ".join(words[1 : 3 if words[1].startswith("[") else 2])
    pytest.skip("apt is configured with no archive")


def _kept(key: str, command: list[str], pattern: str, wanted: str) -> Path:
    """The one file that a command downloads; kept under a key, made once even by parallel workers."""
    folder = CACHE / hashlib.sha256(key.encode()).hexdigest()[:16]
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (found := sorted(folder.glob(pattern))):
            with tempfile.TemporaryDirectory(dir=folder) as scratch:
                done = subprocess.run(command, cwd=scratch, capture_output=True, text=True, check=False)
                files = sorted(Path(scratch).glob(pattern))
                if done.returncode or not files:
                    reason = (done.stderr.strip().splitlines() or ["nothing was downloaded"])[-1]
                    pytest.skip(f"{wanted} can't be had here: {reason[:200]}")
                files[0].replace(folder / files[0].name)
            found = sorted(folder.glob(pattern))
    return found[0]
