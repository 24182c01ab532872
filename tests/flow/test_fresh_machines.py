"""``make demo`` in a fresh clone on fresh Debian systems: with what the README names, and with less.

docs/proof/fresh-machines.md shows what it printed. Each run takes minutes: `pytest -m proof` runs it.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from support.debian_root import NOBODY, debian_root, run_in_root

ROOT = Path(__file__).parents[2]
BARE = ("make", "python3")
NAMED = (*BARE, "python3-venv", "python3-dev", "g++")
"""What the README names."""

pytestmark = [pytest.mark.proof, pytest.mark.timeout(3600)]


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """This checkout's tracked files, committed in a repository of their own."""
    folder = tmp_path / "clone"
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False)
    if listed.returncode:
        pytest.skip("needs a git checkout")
    for name in filter(None, listed.stdout.split("\0")):
        if (ROOT / name).exists():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name)
    git(folder, "init", "--quiet")
    git(folder, "add", "--all")
    git(folder, "-c", "user.name=a", "-c", "user.email=a@b", "commit", "--quiet", "--message=all")
    return folder


def git(folder: Path, *words: str) -> str:
    command = ["git", "-c", "safe.directory=*", "-c", "commit.gpgsign=false", *words]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True).stdout


def make(clone: Path, suite: str, packages: tuple[str, ...], *, user: int = NOBODY, network: bool = True) -> list[str]:
    """Run ``make demo`` twice for a user of a system; the first word of the lines is the exit code of the second."""
    root = debian_root(suite, packages)
    if user and os.geteuid() == 0:
        subprocess.run(["chown", "-R", f"{user}:{user}", str(clone)], check=True)
    script = "cd /srv/axletree && make demo && make demo; echo $?"
    done = run_in_root(root, "sh", "-c", script, shown={clone: "/srv/axletree"}, user=user, network=network)
    print(done.stdout)  # noqa: T201 (what the page shows)
    return done.stdout.splitlines()


@pytest.mark.parametrize(
    ("suite", "packages", "user"),
    [("bookworm", NAMED, NOBODY), ("trixie", NAMED, NOBODY), ("trixie", BARE, 0), ("sid", NAMED, NOBODY)],
)
def test_a_fresh_machine_builds_and_builds_nothing_again(
    suite: str, packages: tuple[str, ...], user: int, clone: Path
) -> None:
    lines = make(clone, suite, packages, user=user)
    assert lines[-1] == "0", "\n".join(lines[-40:])
    assert "nothing to do: 10 stages are in the store" in lines[-2]
    assert [line for line in lines if line.startswith("done in ") and line.endswith(": 10 stages ran")]
    assert list((clone / "dist").rglob("*.whl"))
    assert git(clone, "status", "--porcelain") == ""
    said = next(line for line in lines if not line.startswith(("setup: ", "scripts/setup ")))
    assert said.startswith(("demo: builds kiwisolver instead of ", ".venv/bin/axletree build recipes/torch-scatter"))


@pytest.mark.parametrize(
    ("packages", "network", "says"),
    [
        (BARE, True, "cannot make environments: apt-get install python3-venv"),
        ((*BARE, "python3-venv"), True, "no C++ compiler (c++) here: apt-get install g++"),
        (
            (*BARE, "python3-venv", "g++"),
            True,
            "python3.13 has no headers (Python.h) here, and extension modules need them",
        ),
        (NAMED, False, "setup: pip could not get uv: "),
    ],
)
def test_what_is_missing_is_one_line(packages: tuple[str, ...], *, network: bool, says: str, clone: Path) -> None:
    lines = make(clone, "trixie", packages, network=network)
    assert lines[-1] != "0"
    said = [line for line in lines if not line.startswith(("scripts/setup ", "make: ***"))][:-1]
    assert len(said) == 1
    assert said[0].startswith("setup: ")
    assert says in said[0]
