"""``scripts/setup tests``: what it would install and why, one question at a terminal, none elsewhere."""

from __future__ import annotations

import os
import pty
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SETUP = ROOT / "scripts" / "setup"
QUESTION = "Install them with apt-get? Without them these tests skip. [Y/n] "
LISTED = [
    "setup: not here: g++ (for tests that compile)",
    "setup: not here: git patch cmake unzip mmdebstrap (for tests that make and confirm things with them)",
    "setup: not here: skopeo umoci podman runc (for tests that exchange images with them)",
    "setup: not here: clang lld mold (for tests that edit what these compilers and linkers make)",
    "setup: not here: dpkg-dev ",
    "setup: not here: fish (for tests that activate environments in these shells)",
    "setup: not here: chromium fonts-dejavu-core (for the test that opens the report)",
]
APT_GET = """\
#!/bin/sh
echo "$*" >> "$0.log"
for word; do case $word in "$FAILING") exit 100 ;; esac; done
"""


@pytest.fixture
def machine(tmp_path: Path) -> Path:
    """A folder that is the whole PATH: root, an apt-get that installs nothing, zsh, and nothing else that tests use."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for tool in ("bash", "sh", "dirname"):
        found = shutil.which(tool)
        assert found is not None
        (folder / tool).symlink_to(found)
    for name, text in (
        ("id", "#!/bin/sh\necho 0\n"),
        ("apt-get", APT_GET),
        ("zsh", ""),
        ("dpkg-query", "#!/bin/sh\nexit 1\n"),
    ):
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)
    return folder


def setup(machine: Path, *steps: str, answer: str | None = None, **environ: str) -> str:
    """What it says; with an answer it has a terminal, at which that is typed. It must not fail."""
    command: list[str | Path] = [machine / "bash", SETUP, *(steps or ("tests",))]
    env = {"PATH": str(machine), "FAILING": "-", **environ}
    if answer is None:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, env=env, check=True)
        assert done.stdout == ""
        return done.stderr
    ours, theirs = pty.openpty()
    os.write(ours, answer.encode())
    with subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, env=env) as process:
        os.close(theirs)
        said = b""
        while True:
            try:
                said += os.read(ours, 4096)
            except OSError:  # nobody has the other end any longer
                break
    os.close(ours)
    assert process.returncode == 0, said
    return said.decode().replace("\r\n", "\n")


def installed(machine: Path) -> list[str]:
    """The packages of each call that installs."""
    log = machine / "apt-get.log"
    lines = log.read_text().splitlines() if log.exists() else []
    options = "install -y -qq --no-install-recommends "
    return [line.removeprefix(options) for line in lines if line.startswith(options)]


def assert_listed(said: str) -> None:
    for line in LISTED:
        assert said.count(line) == 1, said


@pytest.mark.parametrize("answer", ["\n", "y\n", "Yes\n"])
def test_one_yes_is_enough_for_all(machine: Path, answer: str) -> None:
    said = setup(machine, answer=answer)
    assert_listed(said)
    assert said.count(QUESTION) == 1
    g_plus_plus, tools, containers, linkers, pytorch, shells, browser = installed(machine)
    assert (g_plus_plus, tools) == ("g++", "git patch cmake unzip mmdebstrap")
    assert containers == "skopeo umoci podman runc"
    assert (linkers, shells, browser) == ("clang lld mold", "fish", "chromium fonts-dejavu-core")
    assert {"libeigen3-dev", "pybind11-dev"} < set(pytorch.split())


@pytest.mark.parametrize("answer", ["n\n", "No\n", "\x04"], ids=["n", "No", "end of input"])
def test_a_no_installs_nothing_and_is_no_failure(machine: Path, answer: str) -> None:
    said = setup(machine, answer=answer)
    assert_listed(said)
    assert said.count(QUESTION) == 1
    assert said.endswith("setup: nothing is installed; these tests skip\n")
    assert installed(machine) == []


def test_without_a_person_it_goes_on(machine: Path) -> None:
    said = setup(machine)
    assert_listed(said)
    assert QUESTION not in said
    assert len(installed(machine)) == 7


def test_a_terminal_of_ci_is_no_person(machine: Path) -> None:
    said = setup(machine, answer="n\n", CI="true")
    assert_listed(said)
    assert QUESTION not in said
    assert len(installed(machine)) == 7


def test_who_may_not_install_is_not_asked(machine: Path) -> None:
    (machine / "id").write_text("#!/bin/sh\necho 1000\n")
    said = setup(machine, answer="y\n")
    assert_listed(said)
    assert QUESTION not in said
    assert said.endswith("setup: only root can install them, with apt-get; without them these tests skip\n")
    assert installed(machine) == []


def test_what_can_not_be_installed_stops_nothing(machine: Path) -> None:
    said = setup(machine, FAILING="lld")
    assert "setup: that failed; tests that edit what these compilers and linkers make will skip" in said
    assert said.count("that failed") == 1
    assert len(installed(machine)) == 7


def test_where_all_is_there_nothing_is_said(machine: Path) -> None:
    tools = ("git", "patch", "cmake", "unzip", "mmdebstrap", "skopeo", "umoci", "podman", "runc")
    for tool in ("c++", *tools, "clang", "ld.lld", "ld.mold", "fish", "google-chrome", "dpkg-query"):
        (machine / tool).write_text("#!/bin/sh\n")
        (machine / tool).chmod(0o755)
    assert setup(machine, answer="") == ""
    assert installed(machine) == []


def test_one_step_is_about_itself(machine: Path) -> None:
    said = setup(machine, "shells", answer="y\n")
    assert "chromium" not in said
    assert installed(machine) == ["fish"]
