"""A test of builds against the SDK: CMake finds its package, a program is compiled and linked with it, and runs."""

from __future__ import annotations

import os
import re
import shutil
import sys
import tempfile
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from ._detect import strip_features
from ._environment import build_environment
from ._sdk import find_root
from ._testing import PASSED, Case, failed, skipped

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ._testing import Bench, Outcome, Ran

_PROJECT = """\
cmake_minimum_required(VERSION 3.16)
project(selftest LANGUAGES CXX)
find_package({package} REQUIRED)
add_executable(selftest main.cpp)
target_link_libraries(selftest PRIVATE {targets})
"""
_PROGRAM = "int main() { return 0; }\n"
_WANTED = re.compile(
    r"cannot find -l(?::)?([\w.+-]+)|unable to find library -l([\w.+-]+)|^(\S+): cannot open shared object"
)

_ERROR = re.compile(r"\berror:|undefined reference|: not found|No such file|\berror while loading|cannot execute")


def cmake_cases(bench: Bench) -> Iterator[Case]:
    """The test, where the SDK has a CMake package."""
    sdk = bench.sdk
    package = sdk.devel_package() or sdk.root_package()
    if sdk.file.cmake_package and package in bench.present:
        yield Case("cmake", package.dist, sdk.file.cmake_package, partial(_build, bench))


def _build(bench: Bench) -> Outcome:
    root = bench.tree() if bench.sdk.devel_module() else find_root(bench.sdk)[0]
    cmake = shutil.which("cmake")
    if cmake is None:
        return skipped("CMake was not found", "pip install cmake ninja")
    makers = [name for name in ("ninja", "make", "gmake", "nmake") if shutil.which(name)]
    if not makers:
        return skipped("no build tool for CMake was found", "pip install ninja")
    compiler = root / bench.sdk.file.cmake_compiler if bench.sdk.file.cmake_compiler else None
    if compiler is not None and not compiler.exists():
        return failed(f"the compiler {compiler} is missing", f"{bench.sdk.file.command} repair")
    if compiler is None and not any(
        shutil.which(name) for name in (os.environ.get("CXX", "c++").split()[0], "g++", "clang++")
    ):
        return skipped("no C++ compiler was found", "install a C++ compiler")
    with tempfile.TemporaryDirectory(prefix="selftest-") as scratch:
        return _configure_and_run(bench, root, cmake, makers[0], compiler, Path(scratch))


def _configure_and_run(
    bench: Bench, root: Path, cmake: str, maker: str, compiler: Path | None, folder: Path
) -> Outcome:
    about = bench.sdk.file
    project = _PROJECT.format(package=about.cmake_package, targets=" ".join(about.cmake_targets))
    (folder / "CMakeLists.txt").write_text(project, encoding="utf-8")
    (folder / "main.cpp").write_text(about.cmake_program or _PROGRAM, encoding="utf-8")
    build = folder / "build"
    options = ["-G", "Ninja"] if maker == "ninja" else []
    options += [f"-DCMAKE_CXX_COMPILER={compiler}"] if compiler else []
    options += _target_options(bench)
    if not about.cmake_program and sys.platform == "linux":
        options.append("-DCMAKE_EXE_LINKER_FLAGS=-Wl,--no-as-needed")  # else it would load nothing
    env = _variables(bench, root)
    ran = bench.spawn([cmake, "-S", folder, "-B", build, *options], env, cwd=folder)
    if ran.end:
        return _problem(bench, f"CMake cannot configure a project with find_package({about.cmake_package})", ran)
    ran = bench.spawn([cmake, "--build", build], env, cwd=folder)
    if ran.end:
        return _problem(bench, f"cannot build a program with {', '.join(about.cmake_targets) or 'the package'}", ran)
    ran = bench.spawn([build / ("selftest.exe" if os.name == "nt" else "selftest")], env, cwd=folder)
    return _problem(bench, "the program was built, but cannot be run", ran) if ran.end else PASSED


def _variables(bench: Bench, root: Path) -> dict[str, str]:
    """What the SDK's command prints for a shell, as that would set it."""
    environment = build_environment(bench.sdk, root)
    behind = {name: bench.environ.get(name, "") for name in environment.prepended}
    joined = {
        name: f"{text}{os.pathsep}{behind[name]}" if behind[name] else text
        for name, text in environment.prepended.items()
    }
    return {**environment.variables, **joined}


def _target_options(bench: Bench) -> list[str]:
    """One target is enough, and one that packages are installed for."""
    about = bench.sdk.file
    installed = [target for package in bench.installed for target in package.targets]
    targets = installed or [target for targets in about.families.values() for target in targets]
    if not targets:
        return []
    target = strip_features(targets[0])
    if about.maker == "nvidia":
        return [f"-DCMAKE_CUDA_ARCHITECTURES={target.partition('_')[2]}"]
    return [f"-D{name}={target}" for name in ("CMAKE_HIP_ARCHITECTURES", "GPU_TARGETS", "AMDGPU_TARGETS")]


def _problem(bench: Bench, what: str, ran: Ran) -> Outcome:
    """A failure, unless it comes from a library that the system must bring and does not."""
    text = f"{ran.out}\n{ran.error}"
    wanted = {next(filter(None, found)) for found in _WANTED.findall(text)}
    stems = {soname.partition(".so")[0]: soname for soname in bench.system_needs}
    lacking = sorted(
        {stems[stem] for name in wanted for stem in (f"lib{name}", name.partition(".so")[0]) if stem in stems}
    )
    if lacking:
        return bench.lacks(lacking, "and their development files")
    return failed(f"{what}: it {ran.end}: {_cause(text) or ran.tail}", f"{bench.sdk.file.command} repair")


def _cause(text: str) -> str:
    """What compilers and linkers say is wrong, else CMake; it prints the former inside its own error."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    told = [line for line in lines if _ERROR.search(line) and not line.startswith("CMake Error")]
    if told:
        return " | ".join(dict.fromkeys(told[:3]))
    at = next((number for number, line in enumerate(lines) if line.startswith("CMake Error")), len(lines))
    return " ".join(lines[at : at + 4])
