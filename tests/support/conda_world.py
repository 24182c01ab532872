"""A channel of files for builds in conda environments: Pythons of this machine, its compiler, a library twice.

The compiler is the machine's own behind the names and the activation script that conda-forge's has. So what is tested
is how environments are solved, linked and used; its headers and C library stay where they are.
"""

from __future__ import annotations

import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest

from axletree.host.archive import digest_file
from axletree.host.conda import read_conda
from axletree.host.conda_channel import md5_of
from axletree.package.conda.interpreter import interpreter_packages
from axletree.package.conda.model import PLACEHOLDER, CondaFile, CondaPackage, RunExports
from axletree.package.conda.repodata import by_subdir, channel_file, index_files
from support.conda import put, text
from support.tiny import Tiny, need_pythons, pythons

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

TRIPLET = "x86_64-conda-linux-gnu"
_WRAPPER = """#!/bin/bash
exec /usr/bin/{program} -DBUILT_BY_CONDA="{number}" "$@"
"""
_ACTIVATE = f"""\
export CC="$CONDA_PREFIX/bin/{TRIPLET}-cc"
export CXX="$CONDA_PREFIX/bin/{TRIPLET}-c++"
export CXXFLAGS="-fvisibility-inlines-hidden -ffile-prefix-map=$SRC_DIR=/usr/local/src/conda/$PKG_NAME-$PKG_VERSION"
export LDFLAGS="-Wl,-rpath,$PREFIX/lib -L$PREFIX/lib"
export CONDA_BUILD_SYSROOT=/
export CMAKE_ARGS="-DCMAKE_INSTALL_PREFIX=$PREFIX -DCMAKE_INSTALL_LIBDIR=lib-of-conda -DBY_CONDA=ON"
"""
RECIPE = """\
name = "tiny"
version = "1.0"
summary = "A library that uses another."
license = "MIT"
[source]
path = "src"
[axes]
zed = ["1.2", "1.3"]

[environments.build]
axes = []
provider = "conda"
channels = ["./channel"]
requires = ["gxx_linux-64"]
[environments.host]
axes = ["zed"]
provider = "conda"
channels = ["./channel"]
requires = ["zed {zed}.*"]

[stages.lib]
action = "compile"
axes = ["zed"]
environment = "build"
host = "host"
tools = ["c++", "cmake", "ninja"]
options = { CMAKE_EXPORT_COMPILE_COMMANDS = "ON" }

[packages.tiny]
from = "lib"
formats = ["conda"]
index = "zed-{zed}"
conda = { layout = "prefix" }
"""
CMAKE = """\
cmake_minimum_required(VERSION 3.20)
project(tiny CXX)
find_library(ZED zed REQUIRED)
add_library(tiny SHARED tiny.cpp)
target_link_libraries(tiny ${ZED})
if(BY_CONDA)
  target_compile_definitions(tiny PRIVATE ARGS_OF_CONDA)
endif()
install(TARGETS tiny DESTINATION lib)
"""
SOURCE = """\
#include <zed.h>
#if !defined(BUILT_BY_CONDA) || !defined(ARGS_OF_CONDA)
#error another compiler
#endif
extern "C" __attribute__((visibility("default"))) int tiny() { return zed() * 10 + BUILT_BY_CONDA; }
extern "C" __attribute__((visibility("default"))) const char* place() { return __FILE__; }
"""


def package(name: str, version: str, **fields: object) -> CondaPackage:
    """A package for this machine."""
    return CondaPackage(name=name, version=version, build="h0_0", subdir="linux-64", **fields)  # type: ignore[arg-type]


def make_world(folder: Path, *, compiler: str = "13.2") -> None:
    """Write the channel into a folder."""
    put_compiler(folder, compiler)
    for version in ("1.2", "1.3"):
        put_zed(folder, version)
    put(folder, package("libcxx-like", "13.2"), [text("lib/libcxx-like.so.6", b"")])
    for interpreter in list(pythons().values())[:2]:
        made = interpreter_packages(
            program=interpreter.path, version=interpreter.version, free_threaded=False, subdir="linux-64"
        )
        for one, files in made:
            put(folder, one, list(files))
    reindex(folder)


def put_compiler(folder: Path, version: str) -> None:
    """A compiler as conda-forge has it: by a long name, with a script that says so."""
    number = version.partition(".")[0]
    files = [
        text(f"bin/{TRIPLET}-{name}", _WRAPPER.format(program=program, number=number).encode(), executable=True)
        for name, program in (("cc", "gcc"), ("c++", "g++"))
    ]
    impl = package("gxx_impl_linux-64", version)
    exports = RunExports(strong=("libcxx-like >=13",))
    put(folder, impl, files)
    scripts = [text("etc/conda/activate.d/activate-gxx_linux-64.sh", _ACTIVATE.encode())]
    gcc = package("gcc_linux-64", version, depends=(f"gxx_impl_linux-64 {version}.*",))
    gxx = package("gxx_linux-64", version, depends=(f"gcc_linux-64 {version}.*",), run_exports=exports)
    put(folder, gcc, [])
    put(folder, gxx, scripts)


def put_zed(folder: Path, version: str, *, returns: int | None = None) -> None:
    """A library whose run exports hold its users to its minor version."""
    number = int(version.rpartition(".")[2]) if returns is None else returns
    work = folder.parent / f"work-{version}-{number}"
    work.mkdir(parents=True, exist_ok=True)
    (work / "zed.cpp").write_text(f'extern "C" int zed() {{ return {number}; }}\n')
    command = ["g++", "-shared", "-fPIC", "-Wl,-soname,libzed.so.1", "-o", "libzed.so.1", "zed.cpp"]
    subprocess.run(command, cwd=work, check=True)
    major, minor = version.split(".")
    pin = f"zed >={version},<{major}.{int(minor) + 1}.0a0"
    zed = package("zed", version, run_exports=RunExports(weak=(pin,)), placeholder=PLACEHOLDER)
    files = [
        text("include/zed.h", b'extern "C" int zed();\n'),
        CondaFile(path="lib/libzed.so.1", data=(work / "libzed.so.1").read_bytes(), executable=True),
        CondaFile(path="lib/libzed.so", link="libzed.so.1"),
        text("lib/pkgconfig/zed.pc", f"prefix={PLACEHOLDER}\n".encode()),
    ]
    put(folder, zed, files)
    shutil.rmtree(work)


def reindex(folder: Path) -> None:
    """Write the index of the channel anew."""
    paths = sorted(folder.glob("*/*.conda"))
    lines = [channel_file(read_conda(path), md5=md5_of(path), sha256=digest_file(path)) for path in paths]
    for subdir, files in by_subdir(lines).items():
        (folder / subdir).mkdir(exist_ok=True)
        for path, data in index_files(files, subdir=subdir).items():
            (folder / path.partition("/")[2]).write_bytes(data)


def conda_project(root: Path, channel: Path, *, recipe: str = RECIPE, files: Sequence[tuple[str, str]] = ()) -> Tiny:
    """A project beside a copy of the channel; nothing is locked."""
    pytest.importorskip("rattler")
    for program in ("g++", "cmake", "ninja"):
        if shutil.which(program) is None:
            pytest.skip(f"needs {program}")
    tiny = Tiny(folder=root / "project", store=root / "store", home=root / "home", versions=need_pythons(1))
    tiny.source.mkdir(parents=True)
    tiny.home.mkdir()
    shutil.copytree(channel, tiny.folder / "channel")
    tiny.recipe.write_text(recipe)
    (tiny.home / "links").mkdir()
    for name, content in (("src/CMakeLists.txt", CMAKE), ("src/tiny.cpp", SOURCE), *files):
        path = tiny.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    return tiny
