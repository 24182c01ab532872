"""Exports that CMake wrote, moved, and read by CMake: relative and absolute, static libraries, file sets."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

from axletree.package.cmake.exports import CMakeTree, adapt_exports
from support.elfs import need, run

if TYPE_CHECKING:
    from pathlib import Path

PROJECT = """\
cmake_minimum_required(VERSION 3.18)
project(load VERSION 1.0 LANGUAGES CXX)
add_library(load SHARED load.cpp)
add_library(sack STATIC sack.cpp)
add_library(rope INTERFACE)
target_link_libraries(sack PUBLIC load $<$<CONFIG:Debug>:rope>)
target_compile_definitions(load PUBLIC "LOADS=2" "$<$<CXX_COMPILER_ID:GNU>:A=1,2>")
set_target_properties(load PROPERTIES VERSION 1.0.0 SOVERSION 1)
# CMake itself writes nonsense for file sets with an absolute destination.
if(CMAKE_VERSION VERSION_GREATER_EQUAL 3.23 AND NOT IS_ABSOLUTE ${INCLUDES})
  target_sources(rope INTERFACE FILE_SET HEADERS BASE_DIRS include FILES include/rope.h)
  set(SETS FILE_SET HEADERS DESTINATION ${INCLUDES})
endif()
target_include_directories(load INTERFACE $<INSTALL_INTERFACE:${INCLUDES}>)
install(TARGETS load sack rope EXPORT LoadTargets
  LIBRARY DESTINATION ${LIBRARIES} ARCHIVE DESTINATION ${LIBRARIES} ${SETS})
install(FILES include/load.h DESTINATION ${INCLUDES})
install(EXPORT LoadTargets NAMESPACE Load:: DESTINATION ${EXPORTS} FILE LoadConfig.cmake)
"""
SOURCES = {
    "CMakeLists.txt": PROJECT,
    "load.cpp": "int load() { return 40; }\n",
    "sack.cpp": "int load();\nint sack() { return load() + 2; }\n",
    "include/load.h": "int load();\nint sack();\n",
    "include/rope.h": "#define ROPE 0\n",
}
CONSUMER = {
    "CMakeLists.txt": """\
cmake_minimum_required(VERSION 3.18)
project(consumer CXX)
find_package(Load REQUIRED)
add_executable(consumer main.cpp)
target_link_libraries(consumer Load::sack Load::rope)
""",
    "main.cpp": """\
#include <cstdio>
#include <load.h>
#if __has_include(<rope.h>)
#include <rope.h>
#else
#define ROPE 0
#endif
int main() { std::printf("%d", sack() + ROPE + LOADS - 2); }
""",
}


def write(folder: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


def relocate(before: Path, after: Path, place: dict[str, str]) -> set[str]:
    """Move an installed tree and keep its library once; returns the CMake files that changed."""
    moved: dict[str, str] = {}
    texts: dict[str, str] = {}
    for path in sorted(path for path in before.rglob("*") if not path.is_dir()):
        old = str(path.relative_to(before))
        folder = next(each for each in place if old.startswith(f"{each}/"))
        new = place[folder] + old[len(folder) :]
        if "libload.so" in new:
            new = new.partition(".so")[0] + ".so"
        moved[old] = new
        (after / new).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, after / new)
        if old.endswith(".cmake"):
            texts[old] = path.read_text()
    run("patchelf", "--set-soname", "libload.so", after / moved[next(old for old in moved if "libload.so" in old)])
    changes = adapt_exports(
        texts,
        CMakeTree(
            moved=moved, folders=place, names={f"libload.so.{version}": "libload.so" for version in ("1", "1.0.0")}
        ),
    )
    assert set(changes.exports) == set(texts)
    for old, text in changes.texts.items():
        assert str(before) not in text
        (after / moved[old]).write_text(text)
    return set(changes.texts)


@pytest.mark.parametrize("absolute", [False, True], ids=["relative", "absolute"])
@pytest.mark.parametrize(
    "place",
    [
        {"usr/lib": "pkg/lib", "usr/include": "pkg/include", "usr/share": "pkg/share"},
        {"usr/lib": "lib", "usr/include": "include/load", "usr/share": "opt/deep/share"},
    ],
    ids=["together", "apart"],
)
def test_a_consumer_finds_what_was_moved(tmp_path: Path, place: dict[str, str], *, absolute: bool) -> None:
    need("cmake", "ninja", "c++", "patchelf")
    source, before, after = write(tmp_path / "source", SOURCES), tmp_path / "before", tmp_path / "after"
    root = f"{before}/usr/" if absolute else ""
    folders = {"LIBRARIES": "lib", "INCLUDES": "include", "EXPORTS": "share/load/cmake"}
    options = [f"-D{name}={root}{folder}" for name, folder in folders.items()]
    options += [f"-DCMAKE_INSTALL_PREFIX={before}/usr", "-DCMAKE_BUILD_TYPE=Release"]
    run("cmake", "-G", "Ninja", "-S", source, "-B", tmp_path / "build", *options)
    run("cmake", "--build", tmp_path / "build", "--target", "install")
    changed = relocate(before, after, place)
    assert {path.rpartition("/")[2] for path in changed} >= {"LoadConfig-release.cmake"}
    shutil.rmtree(before)
    shutil.rmtree(source)
    (config,) = after.rglob("LoadConfig.cmake")
    consumer = write(tmp_path / "consumer", CONSUMER)
    run("cmake", "-G", "Ninja", "-S", consumer, "-B", tmp_path / "out", f"-DLoad_DIR={config.parent}")
    run("cmake", "--build", tmp_path / "out")
    assert run(tmp_path / "out" / "consumer") == "42"
