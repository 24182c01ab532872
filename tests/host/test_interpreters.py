"""Interpreters are found by version, described by themselves, and remembered."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
import sysconfig
from typing import TYPE_CHECKING

import msgspec
import pytest

from axletree.core.errors import HostError, UsageError
from axletree.core.records import Interpreter
from axletree.host.interpreters import find_interpreter, find_interpreters, identity, matches, probe

if TYPE_CHECKING:
    from pathlib import Path

HERE = f"{sys.version_info[0]}.{sys.version_info[1]}{getattr(sys, 'abiflags', '').strip('dm')}"
FULL = platform.python_version()


def fake(folder: Path, name: str, *, version: str, log: Path | None = None, **facts: object) -> Path:
    """A program that answers as an interpreter of that version would."""
    answer = {
        "path": str(folder / name),
        "version": version,
        "implementation": "cpython",
        "free_threaded": False,
        "abiflags": "",
        "soabi": "x",
        "platform": "linux-x86_64",
        "machine": "x86_64",
        "libc": "",
        "build": "x",
    } | facts
    folder.mkdir(parents=True, exist_ok=True)
    program = folder / name
    note = f"echo run >> {log}\n" if log else ""
    program.write_text(f"#!/bin/sh\n{note}cat <<'EOF'\n{msgspec.json.encode(answer).decode()}\nEOF\n")
    program.chmod(0o755)
    return program


def environ(tmp_path: Path, *folders: Path) -> dict[str, str]:
    paths = [str(folder) for folder in folders] + ["/usr/bin", "/bin"]
    return {"PATH": os.pathsep.join(paths), "HOME": str(tmp_path), "UV_PYTHON_INSTALL_DIR": str(tmp_path / "uv")}


def test_the_running_interpreter_is_found_and_described(tmp_path: Path) -> None:
    found = find_interpreter(HERE, environ=environ(tmp_path))
    assert found.version == FULL
    assert found.soabi == sysconfig.get_config_var("SOABI")
    assert found.platform == sysconfig.get_platform()
    assert found.machine == platform.machine()
    asked = subprocess.run(
        [found.path, "-c", "import sys; print(sys.prefix == sys.base_prefix)"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert asked.stdout == "True\n"


def test_a_shim_that_fails_is_passed_over_for_pyenvs_own_folder(tmp_path: Path) -> None:
    shims = tmp_path / "shims"
    shims.mkdir()
    (shims / "python3.99").write_text("#!/bin/sh\nexit 127\n")
    (shims / "python3.99").chmod(0o755)
    fake(tmp_path / ".pyenv" / "versions" / "3.99.2" / "bin", "python", version="3.99.2")
    fake(tmp_path / ".pyenv" / "versions" / "3.99.10" / "bin", "python", version="3.99.10")
    (tmp_path / ".pyenv" / "versions" / "an-environment").mkdir()
    found = find_interpreter("3.99", environ=environ(tmp_path, shims))
    assert found.version == "3.99.10"
    assert find_interpreter("3.99.2", environ=environ(tmp_path, shims)).version == "3.99.2"


def test_a_free_threaded_build_is_another_interpreter(tmp_path: Path) -> None:
    fake(tmp_path / "bin", "python3.98", version="3.98.0")
    fake(tmp_path / "bin", "python3.98t", version="3.98.0", free_threaded=True, abiflags="t")
    where = environ(tmp_path, tmp_path / "bin")
    assert not find_interpreter("3.98", environ=where).free_threaded
    assert find_interpreter("3.98t", environ=where).free_threaded


def test_what_is_missing_is_said_with_what_there_is(tmp_path: Path) -> None:
    fake(tmp_path / ".pyenv" / "versions" / "3.98.1" / "bin", "python", version="3.98.1")
    with pytest.raises(HostError) as caught:
        find_interpreter("3.97t", environ=environ(tmp_path))
    text = str(caught.value)
    where = f"on PATH, in {tmp_path}/.pyenv/versions or among uv's interpreters"
    assert text.startswith(f"CPython 3.97t is not {where}; found:")
    assert "3.98.1 at " in text
    assert f"{FULL} at " in text
    assert "`uv python install 3.97t`" in text
    assert caught.value.exit_code == 3


def test_what_there_is_stands_in_the_order_of_versions(tmp_path: Path) -> None:
    for version in ("3.99.2", "3.99.10", "3.100.1"):
        fake(tmp_path / ".pyenv" / "versions" / version / "bin", "python", version=version)
    with pytest.raises(HostError) as caught:
        find_interpreter("3.97", environ=environ(tmp_path))
    text = str(caught.value)
    assert text.index(" 3.99.2 at ") < text.index(" 3.99.10 at ") < text.index(" 3.100.1 at ")


def test_all_that_are_missing_are_said_at_once(tmp_path: Path) -> None:
    with pytest.raises(HostError) as caught:
        find_interpreters(["3.97", HERE, "3.96"], environ=environ(tmp_path))
    (problem,) = caught.value.problems
    assert problem.message.startswith("CPython 3.97, 3.96 is not on PATH, ")
    assert problem.message.count(f"{FULL} at ") == 1
    assert problem.hint == "run `uv python install 3.97 3.96` or `pyenv install 3.97 3.96`"


def test_what_is_no_version_is_a_usage_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="not a valid Python version: 'cp311'"):
        find_interpreter("cp311", environ=environ(tmp_path))


def test_programs_are_run_once_and_again_when_their_file_changes(tmp_path: Path) -> None:
    log, cache = tmp_path / "log", tmp_path / "cache.json"
    where = environ(tmp_path)
    folder = tmp_path / ".pyenv" / "versions" / "3.96.0" / "bin"
    fake(folder, "python", version="3.96.0", log=log)
    for _ in range(2):
        find_interpreter("3.96", environ=where, cache=cache)
    assert log.read_text().count("run") == 1
    fake(folder, "python", version="3.96.11", log=log)
    assert find_interpreter("3.96", environ=where, cache=cache).version == "3.96.11"
    assert log.read_text().count("run") == 2


def test_shims_are_asked_each_time(tmp_path: Path) -> None:
    log, cache = tmp_path / "log", tmp_path / "cache.json"
    where = environ(tmp_path, tmp_path / "shims")
    fake(tmp_path / "shims", "python3.95", version="3.95.0", log=log, path="/srv/python3.95")
    for _ in range(2):
        find_interpreter("3.95", environ=where, cache=cache)
    assert log.read_text().count("run") == 2


def test_a_broken_cache_is_no_hindrance(tmp_path: Path) -> None:
    cache = tmp_path / "cache.json"
    cache.write_text('{"/usr/bin/python": 3')
    assert find_interpreter(HERE, environ=environ(tmp_path), cache=cache).version == FULL
    assert FULL in cache.read_text()


def test_a_program_that_is_no_python_is_none(tmp_path: Path) -> None:
    assert probe(tmp_path / "absent", environ=os.environ) is None
    odd = tmp_path / "odd"
    odd.write_text("#!/bin/sh\necho hello\n")
    odd.chmod(0o755)
    assert probe(odd, environ=os.environ) is None


def test_the_identity_holds_no_path(tmp_path: Path) -> None:
    found = find_interpreter(HERE, environ=environ(tmp_path))
    assert identity(found)["version"] == FULL
    assert not any("/" in value for value in identity(found).values())


def test_what_an_interpreter_was_built_with_is_part_of_its_identity(tmp_path: Path) -> None:
    """Its compilers and flags are those of every extension module; its place is not."""
    found = find_interpreter(HERE, environ=environ(tmp_path))
    assert len(found.build) == 64
    assert found == find_interpreter(HERE, environ=environ(tmp_path))
    assert identity(msgspec.structs.replace(found, build="other")) != identity(found)
    assert identity(msgspec.structs.replace(found, path="/elsewhere/python")) == identity(found)


def test_another_implementation_never_matches() -> None:
    other = Interpreter(
        path="/x", version="3.11.1", implementation="pypy", free_threaded=False, abiflags="", soabi="", platform="",
        machine="", libc="", build="",
    )  # fmt: skip
    assert not matches(other, "3.11")
    assert matches(msgspec.structs.replace(other, implementation="cpython"), "3.11")
