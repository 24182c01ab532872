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
    lists = folder / "apt"
    for needed in ("lists/partial", "cache/archives/partial"):
        (lists / needed).mkdir(parents=True, exist_ok=True)
    (lists / "sources.list").write_text(f"deb-src {_debian_archive()} {suite} main\n")
    options = [f"Dir::Etc::sourcelist={lists}/sources.list", "Dir::Etc::sourceparts=/dev/null"]
    options += [f"Dir::State::Lists={lists}/lists", f"Dir::Cache={lists}/cache", "APT::Sandbox::User=root"]
    apt = ["apt-get", "-qq", *(f"-o{option}" for option in options)]
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        for command in ([*apt, "update"], [*apt, "source", "--download-only", package]):
            done = subprocess.run(command, cwd=scratch, capture_output=True, text=True, check=False)
            if done.returncode:
                pytest.skip(f"source of {package} in {suite} can't be had here: {done.stderr.strip()[-200:]}")
        described = next(Path(scratch).glob("*.dsc"))
        command = ["dpkg-source", "--no-check", "-x", described.name, "source"]
        subprocess.run(command, cwd=scratch, capture_output=True, check=True)
        Path(scratch, "source").replace(folder / "source")


def _debian_archive() -> str:
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
