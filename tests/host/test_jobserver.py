"""The job server: tokens for as many processes as were granted, kept by the real ninja and given back."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from axletree.host.jobserver import job_tokens, takes_tokens

SCRIPT = """\
mkdir ../running/{name}-$1
ls ../running | wc -l >> ../counts
sleep 0.1
rmdir ../running/{name}-$1
touch $1
"""
STEPS = 12


def program(folder: Path, name: str, answer: str) -> None:
    folder.mkdir(exist_ok=True)
    path = folder / name
    path.write_text(f"#!/bin/sh\necho '{answer}'\n")
    path.chmod(0o755)


def left(fifo: Path) -> int:
    """Tokens that are in the pipe now. They are taken out by that."""
    reader = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
    try:
        return len(os.read(reader, 4096))
    except BlockingIOError:
        return 0
    finally:
        os.close(reader)


@pytest.mark.parametrize("jobs", [1, 2, 7])
def test_each_client_has_one_token_of_its_own(tmp_path: Path, jobs: int) -> None:
    fifo = tmp_path / "jobs.fifo"
    with job_tokens(fifo, jobs) as flags:
        assert flags == f" -j{jobs} --jobserver-auth=fifo:{fifo}"
        assert fifo.stat().st_mode & 0o077 == 0, "other users must not take tokens"
        assert left(fifo) == jobs - 1
    assert not fifo.exists()


def test_the_pipe_is_gone_after_an_error(tmp_path: Path) -> None:
    with pytest.raises(KeyError), job_tokens(tmp_path / "jobs.fifo", 2):
        raise KeyError
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("ninja", "make", "does"),
    [
        ("1.13.0.git.kitware.jobserver-pipe-1", None, True),
        ("1.13.1", "GNU Make 4.4.1", True),
        ("1.20.0", None, True),
        ("2.0", None, True),
        ("1.12.1", None, False),
        ("1.13.1", "GNU Make 4.3", False),  # stops with an internal error when it meets a FIFO
        ("1.13.1", "GNU Make 3.81", False),
        (None, "GNU Make 4.4.1", False),
        (None, None, False),
        ("not a version", None, False),
    ],
)
def test_who_takes_tokens(tmp_path: Path, ninja: str | None, make: str | None, does: bool) -> None:  # noqa: FBT001
    for name, answer in (("ninja", ninja), ("make", make)):
        if answer is not None:
            program(tmp_path / "bin", name, answer)
    assert takes_tokens({"PATH": str(tmp_path / "bin")}) is does


def test_a_program_that_cannot_run_takes_none(tmp_path: Path) -> None:
    program(tmp_path / "bin", "ninja", "1.13.1")
    (tmp_path / "bin" / "ninja").write_bytes(b"\x7fELF not really")
    assert not takes_tokens({"PATH": str(tmp_path / "bin")})


@pytest.fixture(scope="module")
def ninja() -> str:
    """A ninja that is a client of job servers: beside our Python or on PATH."""
    for folder in (str(Path(sys.executable).parent), *os.environ.get("PATH", "").split(":")):
        if takes_tokens({"PATH": folder}):
            found = shutil.which("ninja", path=folder)
            assert found is not None
            return found
    pytest.skip("no ninja from 1.13 on (the wheel `ninja` has it)")


def lay_out(folder: Path, name: str) -> Path:
    """A folder in which ninja makes some files; each step notes how many steps are running anywhere below."""
    (folder / "running").mkdir(exist_ok=True)
    work = folder / name
    work.mkdir()
    (work / "step.sh").write_text(SCRIPT.format(name=name))
    rules = ["rule step", "  command = sh step.sh $out", *(f"build out{number}: step" for number in range(STEPS))]
    (work / "build.ninja").write_text("\n".join(rules) + "\n")
    return work


def counts(folder: Path) -> list[int]:
    return [int(line) for line in (folder / "counts").read_text().split()]


@pytest.mark.parametrize("jobs", [1, 2, 4])
def test_ninja_keeps_to_the_tokens_and_gives_them_back(ninja: str, tmp_path: Path, jobs: int) -> None:
    work, fifo = lay_out(tmp_path, "work"), tmp_path / "jobs.fifo"
    with job_tokens(fifo, jobs) as flags:
        env = {"PATH": os.defpath, "MAKEFLAGS": flags}
        subprocess.run([ninja], cwd=work, env=env, check=True, capture_output=True, timeout=300)
        assert left(fifo) == jobs - 1
    assert len(counts(tmp_path)) == STEPS
    assert max(counts(tmp_path)) <= jobs


def test_two_ninjas_share_the_tokens(ninja: str, tmp_path: Path) -> None:
    """Each may run one process without a token, and all the tokens together one less than the jobs."""
    works, fifo = [lay_out(tmp_path, name) for name in ("a", "b")], tmp_path / "jobs.fifo"
    with job_tokens(fifo, 2) as flags:
        env = {"PATH": os.defpath, "MAKEFLAGS": flags}
        started = [subprocess.Popen([ninja], cwd=work, env=env, stdout=subprocess.DEVNULL) for work in works]
        assert [process.wait(timeout=300) for process in started] == [0, 0]
        assert left(fifo) == 1
    assert len(counts(tmp_path)) == 2 * STEPS
    assert max(counts(tmp_path)) <= 3
