"""``axletree diagnose`` on what real tools print: builds that fail, and builds that only look so."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner

from axletree.cli.main import cli
from axletree.core.errors import StageError, UsageError
from axletree.core.events import StageFinished, StagePlanned
from axletree.core.findings import LogLine
from axletree.core.records import Grant
from axletree.execute.diagnosing import Failure, read_failure
from axletree.store.store import Store
from axletree.view.plain import failure_lines
from axletree.view.state import StageView
from support.requests import request_of, run_request

if TYPE_CHECKING:
    from collections.abc import Sequence

    from axletree.execute.context import Context, Outcome

PYTHON = sys.executable
HOSTS = Path(__file__).parents[1] / "golden" / "hosts"
PYPROJECT = """\
[build-system]
requires = ["setuptools"]
build-backend = "setuptools.build_meta"
[project]
name = "tiny"
version = "1"
"""
SETUP = 'from setuptools import Extension, setup\nsetup(ext_modules=[Extension("tiny", ["error.c"])])\n'
MODULE = """\
#include <Python.h>
#warning "error: fatal, as it says"
static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "tiny", 0, -1, 0};
PyMODINIT_FUNC PyInit_tiny(void) { return PyModule_Create(&module); }
"""
CMAKE = """\
cmake_minimum_required(VERSION 3.16)
project(error CXX)
include(CheckIncludeFileCXX)
include(CheckCXXCompilerFlag)
check_include_file_cxx(nosuch/error.h HAVE_ERROR_H)
check_cxx_compiler_flag(-fno-such-error HAVE_ERROR_FLAG)
find_package(Doxygen)
find_package(Nonesuch)
"""


def run(log: Path, *commands: Sequence[str], cwd: Path) -> None:
    """Run commands one after the other, whatever becomes of them; all that they print goes into a log."""
    with log.open("ab") as stream:
        for command in commands:
            subprocess.run(command, cwd=cwd, stdout=stream, stderr=subprocess.STDOUT, check=False)


def diagnose(*logs: Path, code: int) -> list[dict[str, Any]]:
    result = CliRunner().invoke(cli, ["diagnose", "--json", *map(str, logs)], standalone_mode=False)
    assert result.exception is None, result.exception
    assert result.return_value == code, result.output
    logs_: list[dict[str, Any]] = json.loads(result.output)["result"]["logs"]
    return [finding for log in logs_ for finding in log["findings"]]


def write(folder: Path, **files: str) -> None:
    for name, text in files.items():
        (folder / name.replace("__", ".")).write_text(text, encoding="utf-8")


NEEDS_COMPILER = pytest.mark.skipif(shutil.which("c++") is None, reason="needs a C++ compiler")
GENERATORS = {"Ninja": ["cmake", "--build", "b", "--", "-v", "-k0"], "Unix Makefiles": ["make", "-k", "-j3", "-C", "b"]}


@NEEDS_COMPILER
@pytest.mark.parametrize("generator", GENERATORS)
def test_a_build_that_fails_in_one_of_its_files(tmp_path: Path, generator: str) -> None:
    write(
        tmp_path,
        CMakeLists__txt=CMAKE + "add_library(x SHARED error.cpp fine.cpp)\nadd_library(y SHARED bad.cpp)\n",
        error__cpp="int error() { return 1; }\n",
        fine__cpp="int fine() { int error; return 2; }\n",
        bad__cpp="#include <nosuch/header.hpp>\nint bad() { return 3; }\n",
    )
    log = tmp_path / "log"
    run(log, ["cmake", "-G", generator, "-S", ".", "-B", "b"], GENERATORS[generator], cwd=tmp_path)
    root = diagnose(log, code=1)[0]
    assert root["rule"] == "compile/header-missing"
    lines = log.read_text().splitlines()
    assert "nosuch/header.hpp" in root["lines"][0]["text"]
    for line in root["lines"]:
        assert line["text"] == lines[line["line"] - 1]


@NEEDS_COMPILER
@pytest.mark.parametrize("generator", GENERATORS)
def test_a_build_that_is_fine(tmp_path: Path, generator: str) -> None:
    write(
        tmp_path,
        CMakeLists__txt=CMAKE + "add_library(fatal_error SHARED error.cpp)\n",
        error__cpp='#warning "error: fatal"\nint error() { int failed; return 1; }\n',
    )
    log = tmp_path / "log"
    run(
        log,
        ["cmake", "-G", generator, "-S", ".", "-B", "b", "-DCMAKE_CXX_FLAGS=-Wall -Wno-error"],
        ["cmake", "--build", "b", "--verbose"],
        cwd=tmp_path,
    )
    assert not diagnose(log, code=0)


@NEEDS_COMPILER
def test_cmake_lacks_a_package(tmp_path: Path) -> None:
    write(tmp_path, CMakeLists__txt=CMAKE + "find_package(Nonesuch REQUIRED)\n")
    log = tmp_path / "log"
    run(log, ["cmake", "-S", ".", "-B", "b"], cwd=tmp_path)
    root = diagnose(log, code=1)[0]
    assert root["rule"].startswith("configure/")
    assert "Nonesuch" in root["cause"]


WHEELS = {
    "pip": [PYTHON, "-m", "pip", "wheel", "-v", "--no-build-isolation", "--no-deps", ".", "-w", "w"],
    "uv": [str(Path(PYTHON).parent / "uv"), "build", "--no-build-isolation", "--python", PYTHON, "--wheel", "."],
    "build": [PYTHON, "-m", "build", "--no-isolation", "--wheel", "."],
}


@NEEDS_COMPILER
@pytest.mark.parametrize("tool", WHEELS)
def test_a_wheel(tmp_path: Path, tool: str) -> None:
    write(tmp_path, pyproject__toml=PYPROJECT, setup__py=SETUP, error__c=MODULE)
    good, bad = tmp_path / "good", tmp_path / "bad"
    run(good, WHEELS[tool], cwd=tmp_path)
    assert not diagnose(good, code=0)
    shutil.rmtree(tmp_path / "build", ignore_errors=True)  # setuptools goes by times, and these are too near
    write(tmp_path, error__c=MODULE + "#include <zstd_of_no_one.h>\n")
    run(bad, WHEELS[tool], cwd=tmp_path)
    assert diagnose(bad, code=1)[0]["rule"] == "compile/header-missing"


def test_what_linker_and_loader_miss(tmp_path: Path) -> None:
    write(
        tmp_path,
        use__cpp="#include <string>\nnamespace lib { int open(std::string const&); }\n"
        'int main() { return lib::open("a"); }\n',
        gone__c="int gone() { return 1; }\n",
        main__c="int gone(); int main() { return gone(); }\n",
        lazy__c="int absent_thing(); int lazy() { return absent_thing(); }\n",
    )
    undefined, library, needed, symbol = (tmp_path / name for name in ("undefined", "library", "needed", "symbol"))
    run(undefined, ["g++", "use.cpp"], cwd=tmp_path)
    root = diagnose(undefined, code=1)[0]
    assert root["rule"] == "link/undefined-reference"
    assert "lib::open" in root["cause"]
    run(library, ["gcc", "main.c", "-lfrobnicate"], cwd=tmp_path)
    assert diagnose(library, code=1)[0]["rule"] == "link/library-not-found"
    run(
        needed,
        ["gcc", "-shared", "gone.c", "-Wl,-soname,libgone.so.7", "-o", "libgone.so"],
        ["gcc", "main.c", "-L.", "-lgone", "-o", "main"],
        ["./main"],
        cwd=tmp_path,
    )
    root = diagnose(needed, code=1)[0]
    assert "libgone.so.7" in root["cause"]
    run(
        symbol,
        ["gcc", "-shared", "-fPIC", "lazy.c", "-o", "liblazy.so"],
        [PYTHON, "-c", "import ctypes, os; ctypes.CDLL('./liblazy.so', mode=os.RTLD_NOW)"],
        cwd=tmp_path,
    )
    assert "absent_thing" in diagnose(symbol, code=1)[0]["cause"]


def test_processes_that_end_without_a_word(tmp_path: Path) -> None:
    killed, crashed = tmp_path / "killed", tmp_path / "crashed"
    run(killed, ["bash", "-c", f"{PYTHON} -c 'import os; os.kill(os.getpid(), 9)'; exit 1"], cwd=tmp_path)
    assert "killed" in diagnose(killed, code=1)[0]["message"].lower()
    run(crashed, ["bash", "-c", f"{PYTHON} -c 'import os; os.kill(os.getpid(), 11)'; exit 1"], cwd=tmp_path)
    assert diagnose(crashed, code=1)[0]["rule"].startswith("runtime/")


def test_a_traceback_that_was_caught_is_none(tmp_path: Path) -> None:
    write(
        tmp_path,
        t__py="import logging\ntry:\n    1 / 0\nexcept ArithmeticError:\n"
        "    logging.exception('probe failed, falling back')\nprint('Successfully built x')\n",
    )
    log = tmp_path / "log"
    run(log, [PYTHON, "-u", "t.py"], cwd=tmp_path)
    assert not diagnose(log, code=0)
    write(tmp_path, t__py="raise RuntimeError('the gizmo is not calibrated')\n")
    run(tmp_path / "bad", [PYTHON, "t.py"], cwd=tmp_path)
    assert diagnose(tmp_path / "bad", code=1)


def test_pytest(tmp_path: Path) -> None:
    write(
        tmp_path,
        test_it__py="import pytest\n\n@pytest.mark.xfail\ndef test_error(): assert 0\n\ndef test_fine(): pass\n",
    )
    command = [PYTHON, "-m", "pytest", "-v", "-rx", "-p", "no:cacheprovider", "test_it.py"]
    run(tmp_path / "good", command, cwd=tmp_path)
    assert not diagnose(tmp_path / "good", code=0)
    write(tmp_path, test_it__py="def test_it(): assert 1 == 2\n")
    run(tmp_path / "bad", command, cwd=tmp_path)
    assert diagnose(tmp_path / "bad", code=1)[0]["rule"] == "runtime/test-failed"


def test_standard_input_and_what_can_not_be_read(tmp_path: Path) -> None:
    command = [PYTHON, "-m", "axletree", "diagnose"]
    piped = subprocess.run(
        [*command, "-"],
        input="g++: fatal error: Killed signal terminated program cc1plus\n",
        capture_output=True,
        text=True,
        check=False,
    )
    assert piped.returncode == 1
    assert piped.stdout.startswith("-: ")
    (tmp_path / "empty").touch()
    (tmp_path / "packed").write_bytes(b"\x1f\x8b\x08\x00")
    refused = subprocess.run(
        [*command, "empty", "packed", "absent"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert refused.returncode == 2
    assert [line.partition(":")[0] for line in refused.stderr.splitlines() if ": the " in line] == [
        "error",
        "packed",
        "absent",
    ]


def test_the_event_of_a_failed_stage_has_what_is_known(tmp_path: Path) -> None:
    def compile_it(context: Context) -> Outcome:
        context.log.write(b"FAILED: io.c.o\nsrc/io.c:3:10: fatal error: zstd.h: No such file or directory\n")
        context.log.write(b"compilation terminated.\nninja: build stopped: subcommand failed.\n")
        raise StageError("the build failed with exit code 1")

    request = request_of(grant=Grant(jobs=1))
    done, events = run_request(Store.open(tmp_path / "store"), request, compile_it)
    assert not done
    finished = events[-1]
    assert isinstance(finished, StageFinished)
    assert [finding.rule for finding in finished.findings] == ["compile/header-missing"]
    planned = StagePlanned(stage=request.stage, action="made-up", needs=(), variants=(), cached=False)
    lines = failure_lines(StageView(planned=planned, findings=finished.findings), "")
    assert "        fix: On Debian and Ubuntu:" in lines
    assert "             $ apt-get install libzstd-dev" in lines
    assert not any("3:10" in line for line in lines[1:])  # the lines of the log are the cause above


@pytest.mark.parametrize(
    ("text", "host", "rule"),
    [
        ("c++: fatal error: Killed signal terminated program cc1plus\n", "laptop-16-gb", "host/memory-for-jobs"),
        ("[1/9] Building CXX object a.o\n", "laptop-16-gb", "host/memory-for-jobs"),
        (
            "host_config.h:2: error: #error -- unsupported GNU version! gcc versions later than 12 are not supported\n",
            "gcc-14-nvcc-12.2",
            "host/nvcc-host-compiler",
        ),
        (
            "RuntimeError: CUDA driver: Error 804: forward compatibility was attempted on non supported HW\n",
            "container-error-804",
            "cuda/error-804",
        ),
        (
            "RuntimeError: The NVIDIA driver on your system is too old (found version 11040).\n",
            "cuda-11-driver-cuda-13-toolkit",
            "cuda/driver-too-old",
        ),
        (
            "RuntimeError: DataLoader worker (pid 7) is killed by signal: Bus error. They are out of shared memory.\n",
            "container-read-only-sys",
            "host/shm-small",
        ),
        ("x.cpp:1:10: fatal error: Python.h: No such file or directory\n", "centos-7", "python/headers-missing"),
        (
            "OMP: Error #15: Initializing libiomp5.so, but found libomp.so already initialized.\n",
            "conda-activated-twice",
            "library/openmp-twice",
        ),
        (
            "ImportError: /lib/libstdc++.so.6: version `GLIBCXX_3.4.32' not found (required by /x/_C.so)\n",
            "conda-activated-twice",
            "conda/library-path",
        ),
    ],
)
def test_what_of_the_host_tells_the_reason(text: str, host: str, rule: str, tmp_path: Path) -> None:
    log = tmp_path / "build.log"
    log.write_text(text)
    facts = HOSTS / f"{host}.json"
    result = CliRunner().invoke(cli, ["diagnose", "--json", f"--facts={facts}", str(log)], standalone_mode=False)
    assert result.exception is None, result.exception
    found = json.loads(result.output)["result"]["logs"][0]["findings"][0]
    assert rule in [each["rule"] for each in found["host"]], found
    told = CliRunner().invoke(cli, ["diagnose", f"--facts={facts}", str(log)], standalone_mode=False)
    assert "on this host:" in told.output
    assert f"[{rule}]" in " ".join(told.output.split())


def test_facts_that_are_none_are_refused(tmp_path: Path) -> None:
    log = tmp_path / "build.log"
    log.write_text("Killed\n")
    result = CliRunner().invoke(cli, ["diagnose", f"--facts={log}", str(log)], standalone_mode=False)
    assert isinstance(result.exception, UsageError)
    assert "build.log" in str(result.exception)


def test_a_stage_that_failed_says_what_is_known(tmp_path: Path) -> None:
    log = tmp_path / "stage.log"
    log.write_text(
        "MAGMA not found. Compiling without MAGMA support\ngcc: fatal error: Killed signal terminated program cc1\n"
    )
    found = read_failure(log).findings
    assert next((finding.rule, finding.severity) for finding in found) == ("compile/compiler-killed", "error")
    assert found[0].where == "stage.log:2"
    assert found[0].lines == (LogLine(line=2, text="gcc: fatal error: Killed signal terminated program cc1"),)
    assert found[0].cause.startswith("The kernel")
    log.write_text("the gizmo is not calibrated\nmake: *** [Makefile:2: all] Error 1\n")
    assert read_failure(log) == Failure(cause=("the gizmo is not calibrated", "make: *** [Makefile:2: all] Error 1"))
    log.write_bytes(b"\0\1\2\0" * 20 + b"\nx.cpp:1:1: error: no gizmo\nmake: *** [Makefile:2: all] Error 1\n")
    assert read_failure(log).cause == ("x.cpp:1:1: error: no gizmo",)
