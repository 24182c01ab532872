"""PyTorch's base library in conda environments: built there, packed, installed beside its neighbours, linked to.

Debian's 2.6.0 by the recipe that ships, with conda environments in place of its virtual one. Compiler, C library,
CMake and libraries are in packages of a channel that is made here of Debian's files, under conda-forge's names.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
import tomli_w
from conda_package_handling.api import extract  # type: ignore[import-untyped]

from axletree.app.audit import Promises, audit_paths
from axletree.buildsystem.cmake.cache import CACHE_FILE, parse_cache
from axletree.host.conda import read_conda
from axletree.host.conda_install import solve_and_install
from axletree.package.conda.check import clobbers
from support.clean_host import run_clean
from support.conda import put, text
from support.conda_world import TRIPLET, package
from support.debian_conda import LIBRARIES, SYSROOT, make_debian_world
from support.envelopes import events_of
from support.inputs import debian_source

if TYPE_CHECKING:
    from collections.abc import Iterable

ROOT = Path(__file__).parents[2]
RECIPE = ROOT / "recipes" / "pytorch-debian.toml"
NEIGHBOURS = [library.name for library in LIBRARIES if library.name not in {"cmake", "ninja"}]
OURS = "/axletree/"
"""Where environments and sources are, for a stage."""
CHANNEL = {"provider": "conda", "channels": ["./channel"]}
FIND = """\
# TorchConfig.cmake loads Caffe2Targets.cmake, which requires the files of all of libtorch: here is c10 alone.
find_path(TORCH_INCLUDE_DIRS c10/core/Device.h)
find_library(C10_LIBRARY c10)
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(Torch REQUIRED_VARS C10_LIBRARY TORCH_INCLUDE_DIRS)
if(Torch_FOUND AND NOT TARGET c10)
  add_library(c10 SHARED IMPORTED)
  set_target_properties(
    c10 PROPERTIES IMPORTED_LOCATION "${C10_LIBRARY}" INTERFACE_INCLUDE_DIRECTORIES "${TORCH_INCLUDE_DIRS}")
  set(TORCH_LIBRARIES c10)
endif()
"""
LISTS = """\
cmake_minimum_required(VERSION 3.18)
project(consumer CXX)
list(APPEND CMAKE_MODULE_PATH ${CMAKE_SOURCE_DIR})
find_package(Torch REQUIRED)
find_package(fmt CONFIG REQUIRED)
add_executable(consumer main.cpp)
target_compile_features(consumer PRIVATE cxx_std_17)
target_link_libraries(consumer ${TORCH_LIBRARIES} fmt::fmt)
"""
PROGRAM = """\
#include <c10/core/Device.h>
#include <c10/util/Exception.h>
#include <fmt/core.h>
int main() {
  fmt::print("{}\\n", c10::Device("cpu").str());
  try { c10::Device("nonsense"); } catch (const c10::Error&) { fmt::print("refused\\n"); }
}
"""
HIDDEN = ("libcpuinfo", "libfmt")
CONSUMER = {"FindTorch.cmake": FIND, "CMakeLists.txt": LISTS, "main.cpp": PROGRAM}

pytestmark = [pytest.mark.proof, pytest.mark.timeout(2400), pytest.mark.xdist_group("torch-scatter")]


def recipe() -> dict[str, Any]:
    """The shipped recipe's libtorch, as far as its base library, in conda environments."""
    real = tomllib.loads(RECIPE.read_text("utf-8"))
    kept = ("name", "version", "summary", "license", "source", "patches")
    libtorch = real["stages"]["libtorch"]
    place = real["stages"]["libtorch-prefix"]["relocate"]["place"]
    place = {path: place[path] for path in ("torch", "torch/include/c10")}  # there is nothing else
    wheels = [each for each in real["environments"]["compile"]["requires"] if not each.startswith(("cmake", "ninja"))]
    env = {name: value for name, value in libtorch["env"].items() if name != "CXXFLAGS"}  # the activation script's
    return {
        **{name: real[name] for name in kept},
        "axes": {"gpu": ["cpu"], "blas": ["generic"]},
        "environments": {
            "build": {**CHANNEL, "axes": [], "requires": ["gcc_linux-64", "gxx_linux-64", "cmake", "ninja"]},
            "host": {
                **CHANNEL,
                "axes": [],
                "python": "3.11",
                "requires": ["python 3.11.*", *NEIGHBOURS],
                "wheels": wheels,
            },
            "run": {**CHANNEL, "axes": [], "requires": ["gxx_linux-64", "cmake", "ninja", *NEIGHBOURS]},
        },
        "stages": {
            "libtorch": {
                **libtorch,
                "environment": "build",
                "host": "host",
                "targets": ["c10/all", "c10/install/local"],
                "env": {**env, "CMAKE_EXPORT_COMPILE_COMMANDS": "ON"},
            },
            "base": {
                "action": "relocate",
                "axes": ["gpu", "blas"],
                "inputs": ["libtorch"],
                "relocate": {
                    "place": place,
                    "single": ["torch/lib/lib*.so*"],
                    "elsewhere": {"lib": ["libcpuinfo.so*"]},
                },
            },
        },
        "packages": {"libtorch-conda": {**real["packages"]["libtorch-conda"], "from": "base", "formats": ["conda"]}},
        "tests": {
            "consumer": {
                "packages": ["libtorch-conda"],
                "environment": "run",
                "installers": ["conda"],
                "files": ["consumer"],
                "commands": [
                    "cmake -G Ninja -S consumer -B build -DCMAKE_PREFIX_PATH=$CONDA_PREFIX",
                    "cmake --build build && build/consumer",
                ],
            }
        },
    }


class Built(NamedTuple):
    """What a build left."""

    folder: Path
    channel: Path
    """The neighbours."""
    package: Path
    build: Path
    """CMake's folder."""
    events: list[dict[str, Any]]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    """The package, built in a store of its own: everything is compiled."""
    pytest.importorskip("rattler")
    source = debian_source("pytorch", "trixie")
    folder = tmp_path_factory.mktemp("pytorch-conda")
    make_debian_world(folder / "channel")
    shutil.copytree(RECIPE.with_suffix(""), folder / RECIPE.stem)
    (folder / "consumer").mkdir()
    for name, content in CONSUMER.items():
        (folder / "consumer" / name).write_text(content)
    (folder / "base.toml").write_text(tomli_w.dumps(recipe()))
    environ = {**os.environ, "AXLETREE_STORE": str(folder / "store")}

    def axletree(*words: str | Path) -> str:
        argv = [sys.executable, "-m", "axletree", *map(str, words)]
        done = subprocess.run(argv, capture_output=True, text=True, env=environ, check=False)
        assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
        return done.stdout

    axletree("lock", folder / "base.toml")
    said = axletree("build", folder / "base.toml", "--source", source, "--out", folder / "dist", "--json")
    (package,) = (folder / "dist").rglob("*.conda")
    (commands,) = folder.glob("store/workspaces/*/source/build/compile_commands.json")
    return Built(folder, folder / "channel", package, commands.parent, events_of(said))


@pytest.fixture(scope="module")
def prefix(built: Built) -> Path:
    """Our package and its neighbours, installed by py-rattler."""
    prefix = built.folder / "prefix"
    solve_and_install(
        prefix,
        ["libtorch", "gxx_linux-64", "cmake", "ninja", *NEIGHBOURS],
        channels=[built.folder / "dist" / "conda", built.channel],
        subdir="linux-64",
        cache=built.folder / "cache",
        environ={"PATH": "/usr/bin:/bin", "HOME": str(built.folder)},
    )
    return prefix


def elsewhere(paths: Iterable[str]) -> list[str]:
    """Files that belong neither to the environments nor to the source."""
    return sorted({path for path in paths if path.startswith("/") and not path.startswith(OURS)})


def test_every_object_is_compiled_by_the_environment_with_its_headers(built: Built) -> None:
    commands = json.loads((built.build / "compile_commands.json").read_text())
    programs = {Path(each["command"].split()[0]) for each in commands}
    assert {program.name for program in programs} == {f"{TRIPLET}-cc", f"{TRIPLET}-c++"}
    (environment,) = {program.parent.parent for program in programs}
    said = subprocess.run(["ninja", "-C", built.build, "-t", "deps"], capture_output=True, text=True, check=True)
    objects = re.findall(r"^\S+: #deps", said.stdout, re.MULTILINE)
    headers = [line.strip() for line in said.stdout.splitlines() if line.startswith("    ")]
    assert len(objects) > 60
    assert elsewhere(["/usr/include/cpuinfo.h", *headers]) == ["/usr/include/cpuinfo.h"], "the first one is planted"
    assert f"{environment}/{SYSROOT}/usr/include/stdio.h" in headers
    (cpuinfo,) = {header for header in headers if header.endswith("/cpuinfo.h")}
    assert str(environment) not in cpuinfo, "it is the host environment's"


def test_cmake_finds_nothing_of_the_system(built: Built) -> None:
    cache = parse_cache((built.build / CACHE_FILE).read_text(), file=CACHE_FILE)
    found = {name: each.value for name, each in cache.entries.items() if each.type in {"FILEPATH", "PATH"}}
    assert {"BLAS_LIBRARIES", "CPUINFO_LIBRARY", "FMT_LIBRARY", "SLEEF_LIBRARY", "ONNX_LIBRARY"} <= found.keys()
    assert {name: path for name, path in found.items() if elsewhere([path])} == {}


def test_the_package_depends_on_what_it_was_built_with(built: Built) -> None:
    index = read_conda(built.package).index
    assert index is not None
    wanted = {library.name for library in LIBRARIES if library.pin}
    assert {"libstdcxx", "libgcc", "__glibc", *wanted} == {spec.partition(" ")[0] for spec in index.depends}
    assert {"fmt >=9.1.0,<10.0a0", "libprotobuf >=3.21.12,<3.22.0a0"} <= set(index.depends)


def test_no_path_is_shared_with_the_neighbours(built: Built, prefix: Path) -> None:
    facts = [read_conda(path) for path in (built.package, *sorted(built.channel.rglob("*.conda")))]
    assert clobbers(facts) == ()
    owners: dict[str, list[str]] = {}
    for record in map(json.loads, (path.read_text() for path in (prefix / "conda-meta").glob("*.json"))):
        for path in record["files"]:
            owners.setdefault(path, []).append(record["name"])
    assert owners["lib/libc10.so"] == ["libtorch"]
    assert owners["include/fmt/core.h"] == ["fmt"]
    assert {path: names for path, names in owners.items() if len(names) > 1} == {}
    (report,) = audit_paths([built.package], Promises(neighbours=built.channel))
    assert [each for each in report.findings if each.rule.startswith("conda/")] == []


def test_a_header_of_a_neighbour_is_found_with_its_owner(built: Built, tmp_path: Path) -> None:
    facts = read_conda(built.package)
    extract(str(built.package), str(tmp_path / "ours"))
    files = [
        text(each.path, (tmp_path / "ours" / each.path).read_bytes()) for each in facts.members if each.kind == "file"
    ]
    assert facts.index is not None
    planted = package("libtorch", "2.6.0", depends=tuple(facts.index.depends))
    made = put(tmp_path / "channel", planted, [*files, text("include/fmt/core.h")])
    (report,) = audit_paths([made.path], Promises(neighbours=built.channel))
    told = [each.message for each in report.findings if each.rule.startswith("conda/path")]
    assert any("belong" in each and "fmt" in each for each in told), told
    assert any("fmt-9.1.0-h0_0.conda" in each for each in told), told


def test_the_recipe_tests_a_consumer_in_an_environment(built: Built) -> None:
    (test,) = (each for each in built.events if each["event"] == "stage-finished" and each["stage"].startswith("test:"))
    assert test["status"] == "done"
    log = Path(test["log"]).read_text()
    assert log.endswith("cpu\nrefused\n")
    assert "no package provides" not in log, "nothing that it depends on was left out"


def test_a_consumer_finds_it_and_runs_without_the_libraries_of_the_system(
    built: Built, prefix: Path, tmp_path: Path
) -> None:
    script = f"""
      for each in {prefix}/etc/conda/activate.d/*.sh; do . "$each"; done
      cmake -G Ninja -S {built.folder}/consumer -B {tmp_path} -DCMAKE_PREFIX_PATH={prefix}
      cmake --build {tmp_path}
      {tmp_path}/consumer
    """
    hidden = [Path("/usr/include"), *(each for name in HIDDEN for each in Path("/usr/lib").rglob(f"{name}.so*"))]
    environ = {"CONDA_PREFIX": str(prefix), "PATH": f"{prefix}/bin:/usr/bin:/bin"}
    said = run_clean("bash", "-euc", script, hide=hidden, environ=environ)
    assert said.endswith("cpu\nrefused\n"), said
    assert f"{prefix}/bin/{TRIPLET}-c++" in said
