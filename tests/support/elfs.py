"""Small programs and libraries from the machine's compiler, and what the loader makes of them."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

LIBRARY = """\
#include <math.h>
#include <stdlib.h>
static int *place;
__attribute__((constructor)) static void start(void) { place = malloc(sizeof(int)); *place = 40; }
static char zeros[70000];
int answer(double x) { return *place + (int)cos(x) + 1 + zeros[(int)x]; }
"""
PROGRAM = """\
#include <stdio.h>
extern int answer(double);
int main(int count, char **words) { printf("%d\\n", answer(count - 1)); return words[0] == 0; }
"""


def need(*tools: str) -> None:
    """Skip where a tool is missing."""
    for tool in tools:
        if shutil.which(tool) is None and not Path(sys.executable).with_name(tool).exists():
            pytest.skip(f"needs {tool}")


def run(*command: str | Path, **variables: str) -> str:
    """What a command prints; it must succeed."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, env={**os.environ, "PATH": path, **variables}
    )
    assert done.returncode == 0, f"{command}: {done.returncode}\n{done.stdout}{done.stderr}"
    return done.stdout


def compile_library(path: Path, *flags: str, source: str = LIBRARY) -> Path:
    """A shared library; ``answer(0.0)`` of the default one is 42."""
    need("gcc")
    code = path.with_suffix(".c")
    code.write_text(source)
    soname = () if any("soname" in flag for flag in flags) else (f"-Wl,-soname,{path.name}",)
    run("gcc", "-O1", "-shared", "-fPIC", code, "-o", path, *soname, "-Wl,--no-as-needed", *flags)
    return path


def compile_program(path: Path, library: Path, *flags: str) -> Path:
    """A program that prints the answer of a library beside it."""
    need("gcc")
    code = path.with_suffix(".c")
    code.write_text(PROGRAM)
    run("gcc", "-O1", code, "-o", path, f"-Wl,-rpath,{library.parent}", *flags, library)
    return path


def load(path: Path) -> int:
    """The answer of a library, in a process of its own."""
    code = f"import ctypes; f = ctypes.CDLL({str(path)!r}).answer; f.argtypes = [ctypes.c_double]; print(f(0.0))"
    return int(run(sys.executable, "-c", code))


def printed(path: Path) -> tuple[list[str], str, str]:
    """NEEDED, search path and SONAME as patchelf sees them."""
    rows = [run("patchelf", f"--print-{what}", path).splitlines() for what in ("needed", "rpath", "soname")]
    return rows[0], "".join(rows[1]), "".join(rows[2])


def complaints(path: Path) -> str:
    """What readelf finds wrong with a file."""
    done = subprocess.run(["readelf", "-aW", path], capture_output=True, text=True, check=False)
    return done.stderr
