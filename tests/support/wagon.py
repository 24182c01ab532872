"""A project of PyTorch's shape, small: one compile for all Pythons, a binding, all that makes such trees not load.

Its libraries have versioned SONAMEs and lie there under three names; they need ``libplank.so.3`` and, through it,
``librivet.so.2`` of a *depot* that stands in for the system; exported CMake targets name the depot; one library is
opened by name; the extension module carries folders of the build as its search path; Python files know where all lies.
"""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

from support.elfs import run
from support.tiny import Tiny, need_pythons

if TYPE_CHECKING:
    from pathlib import Path

VERSION = "2.6.0"
SOURCES = {
    "core.cpp": '#include "wagon/core.h"\n#include <string>\nint wagon::axles() { return std::stoi("2"); }\n',
    "cpu.cpp": """\
#include "wagon/wagon.h"
#include <dlfcn.h>
extern "C" int plank_length();
int wagon::wheels() { return 2 * axles() + plank_length(); }
int wagon::extra() {
  void* library = dlopen("libwagon_extra.so", RTLD_NOW);
  if (!library) return -1;
  return reinterpret_cast<int (*)()>(dlsym(library, "wagon_extra"))();
}
""",
    "extra.cpp": '#include "wagon/core.h"\nextern "C" int wagon_extra() { return 40 + wagon::axles(); }\n',
    "empty.cpp": "",
    "manager.cpp": """\
#include "wagon/wagon.h"
#include <cstdio>
int main() { std::printf("%d %d\\n", wagon::wheels(), wagon::extra()); }
""",
    "include/wagon/core.h": "#pragma once\nnamespace wagon { int axles(); }\n",
    "include/fmt/core.h": "#pragma once\n#define VENDORED_IN_WAGON\n",
    "include/wagon/wagon.h": """\
#pragma once
#include "fmt/core.h"
#include "wagon/core.h"
namespace wagon { int wheels(); int extra(); }
""",
    "python.cpp": """\
#include "wagon/wagon.h"
extern "C" int plank_length();
int wagon_python() { return 100 * plank_length() + wagon::wheels(); }
""",
    "bind.cpp": """\
#include <Python.h>
#include "wagon/wagon.h"
int wagon_python();
static PyObject* wheels(PyObject*, PyObject*) { return PyLong_FromLong(wagon_python()); }
static PyObject* extra(PyObject*, PyObject*) { return PyLong_FromLong(wagon::extra()); }
static PyMethodDef methods[] = {
  {"wheels", wheels, METH_NOARGS, nullptr}, {"extra", extra, METH_NOARGS, nullptr}, {nullptr, nullptr, 0, nullptr}};
static PyModuleDef module = {PyModuleDef_HEAD_INIT, "_C", nullptr, -1, methods};
PyMODINIT_FUNC PyInit__C() { return PyModule_Create(&module); }
""",
    "wagon/__init__.py": """\
import ctypes
import os

ctypes.CDLL(os.path.join(os.path.dirname(__file__), "lib", "libwagon.so"), mode=ctypes.RTLD_GLOBAL)
from wagon._C import extra, wheels  # noqa: E402

cmake_prefix_path = os.path.join(os.path.dirname(__file__), "share", "cmake")
""",
    "WagonConfig.cmake.in": """\
get_filename_component(WAGON_PREFIX "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)
# The depot's planks
find_package(plank REQUIRED PATHS @PLANKS@)
include("${CMAKE_CURRENT_LIST_DIR}/WagonTargets.cmake")
find_library(WAGON_LIBRARY wagon PATHS "${WAGON_PREFIX}/lib" NO_DEFAULT_PATH REQUIRED)
set(WAGON_LIBRARIES wagon wagon_library)
""",
    "CMakeLists.txt": """\
cmake_minimum_required(VERSION 3.18)
project(wagon VERSION 2.6.0 LANGUAGES CXX)
find_package(plank REQUIRED PATHS ${PLANKS} NO_DEFAULT_PATH)
set(INCLUDE $<BUILD_INTERFACE:${CMAKE_SOURCE_DIR}/include> $<INSTALL_INTERFACE:include>)
add_library(wagon_core SHARED core.cpp)
target_include_directories(wagon_core PUBLIC ${INCLUDE})
add_library(wagon_cpu SHARED cpu.cpp)
target_link_libraries(wagon_cpu PUBLIC wagon_core plank::plank PRIVATE ${CMAKE_DL_LIBS} plank::rivet)
target_include_directories(wagon_cpu SYSTEM INTERFACE ${PLANKS}/include/bolts)
add_library(wagon_extra SHARED extra.cpp)
target_link_libraries(wagon_extra PRIVATE wagon_core)
add_library(wagon SHARED empty.cpp)
target_link_libraries(wagon PUBLIC wagon_cpu_library)
add_library(wagon_cpu_library INTERFACE)
target_link_libraries(wagon_cpu_library
  INTERFACE "-Wl,--no-as-needed,\\"$<TARGET_FILE:wagon_cpu>\\" -Wl,--as-needed" wagon_cpu)
add_library(wagon_library INTERFACE)
target_link_libraries(wagon_library INTERFACE wagon)
add_executable(wagon_manager manager.cpp)
target_link_libraries(wagon_manager PRIVATE wagon)
set(LIBRARIES wagon wagon_core wagon_cpu)
set_target_properties(${LIBRARIES} PROPERTIES VERSION 2.6.0 SOVERSION 2.6)
install(TARGETS ${LIBRARIES} wagon_cpu_library wagon_library EXPORT WagonTargets LIBRARY DESTINATION lib)
install(TARGETS wagon_extra LIBRARY DESTINATION lib)
install(TARGETS wagon_manager RUNTIME DESTINATION bin)
install(DIRECTORY include/ DESTINATION include)
install(EXPORT WagonTargets DESTINATION share/cmake/Wagon)
configure_file(WagonConfig.cmake.in WagonConfig.cmake @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/WagonConfig.cmake DESTINATION share/cmake/Wagon)
""",
}
RECIPE = """\
name = "wagon"
version = "2.6.0"
summary = "A project of PyTorch's shape."
source = { path = "src" }
[axes]
python = ["PYTHON"]
[environments.bind]

[stages.libwagon]
action = "run"
tools = ["cmake", "ninja", "c++"]
commands = [
  "options='-DPLANKS=DEPOT -DCMAKE_BUILD_TYPE=Release'",
  "cmake -G Ninja -S . -B $TMPDIR/build -DCMAKE_INSTALL_PREFIX=$AXLETREE_OUT/wagon $options",
  "cmake --build $TMPDIR/build --target install",
]

# What a bdist_wheel of such a tree holds: links have become copies.
[stages.bind]
action = "run"
axes = ["python"]
environment = "bind"
inputs = ["libwagon"]
tools = ["c++"]
commands = [
  "built=$AXLETREE_IN_LIBWAGON/wagon; wheel=$AXLETREE_OUT/wagon",
  "mkdir $wheel; cp -rL $built/lib wagon/__init__.py $wheel/",
  "include=$(python -c 'import sysconfig; print(sysconfig.get_path(\\"include\\"))')",
  "suffix=$(python -c 'import sysconfig; print(sysconfig.get_config_var(\\"EXT_SUFFIX\\"))')",
  "flags=\\"-shared -fPIC -O1 -Iinclude -I$include -L$built/lib -LDEPOT/lib -Wl,-rpath-link,DEPOT/lib\\"",
  "libraries='-Wl,--no-as-needed -lwagon_cpu -lplank -Wl,-rpath,DEPOT/lib'",
  "c++ python.cpp -o $wheel/lib/libwagon_python.so $flags -Wl,-soname,libwagon_python.so.2.6 -lwagon $libraries",
  "cp $wheel/lib/libwagon_python.so $wheel/lib/libwagon_python.so.2.6",
  "rpath=-Wl,-rpath,$VIRTUAL_ENV/lib:$built/lib",
  "c++ bind.cpp -o $wheel/_C$suffix $flags -L$wheel/lib -lwagon_python -lwagon_cpu $rpath",
]

[stages.libwagon-tree]
action = "relocate"
inputs = ["libwagon"]
[stages.libwagon-tree.relocate]
place = { "wagon" = "libwagon" }
single = ["wagon/lib/lib*.so*"]
graft = ["libplank.so*", "librivet.so*"]
graft-to = "libwagon/lib"
graft-from = ["DEPOT/lib"]
opens = { "libwagon_cpu.so" = ["libwagon_extra.so"] }
cmake = true
private = ["DEPOT/include/bolts"]
[[stages.libwagon-tree.relocate.edits]]
file = "wagon/share/cmake/Wagon/WagonConfig.cmake"
find = "find_package(plank REQUIRED PATHS DEPOT)"
replace = "# They are inside."

[stages.wagon-tree]
action = "relocate"
axes = ["python"]
inputs = ["bind", "libwagon-tree"]
[stages.wagon-tree.relocate]
place = { "wagon/lib" = "libwagon/lib" }
drop = ["wagon/lib/libwagon.so*", "wagon/lib/libwagon_c*.so*", "wagon/lib/libwagon_extra.so"]
single = ["wagon/lib/libwagon_python.so*"]
[[stages.wagon-tree.relocate.edits]]
file = "wagon/__init__.py"
find = 'os.path.join(os.path.dirname(__file__), "lib", "libwagon.so")'
replace = 'os.path.join(os.path.dirname(os.path.dirname(__file__)), "libwagon", "lib", "libwagon.so")'
[[stages.wagon-tree.relocate.edits]]
file = "wagon/__init__.py"
find = 'os.path.join(os.path.dirname(__file__), "share", "cmake")'
replace = 'os.path.join(os.path.dirname(os.path.dirname(__file__)), "libwagon", "share", "cmake")'
"""
PACKAGES = """
[packages.libwagon]
from = "libwagon-tree"
requires-python = ">=3.9"
[packages.libwagon-cxx]
from = "libwagon-prefix"
formats = ["conda", "zip"]
conda = { activate = { WAGON_GAUGE = "it's {version}" } }
[packages.wagon-conda]
from = "wagon-prefix"
formats = ["conda"]
requires = ["libwagon-cxx=={version}"]
conda = { name = "wagon", layout = "prefix" }
[packages.wagon]
from = "wagon-tree"
requires = ["libwagon=={version}"]
requires-python = ">=3.9"
provided-by = { libwagon = ["libwagon.so", "libwagon_c*.so", "libplank-*"] }
"""
PREFIX_STAGES = """\

# The same in one prefix, as conda environments and Linux distributions have it.
[stages.libwagon-prefix]
action = "relocate"
inputs = ["libwagon"]
[stages.libwagon-prefix.relocate]
place = { "wagon" = ".", "wagon/include" = "include/libwagon", "wagon/include/wagon" = "include/wagon" }
single = ["wagon/lib/lib*.so*"]
names = "soname"
graft = ["libplank.so*", "librivet.so*"]
graft-to = "lib/wagon"
graft-from = ["DEPOT/lib"]
opens = { "libwagon_cpu.so.2.6" = ["libwagon_extra.so"] }
cmake = true
private = ["DEPOT/include/bolts"]
[[stages.libwagon-prefix.relocate.edits]]
file = "wagon/share/cmake/Wagon/WagonConfig.cmake"
find = '''
find_package(plank REQUIRED PATHS DEPOT)
include("${CMAKE_CURRENT_LIST_DIR}/WagonTargets.cmake")
find_library(WAGON_LIBRARY wagon PATHS "${WAGON_PREFIX}/lib" NO_DEFAULT_PATH REQUIRED)
'''
replace = '''
include("${CMAKE_CURRENT_LIST_DIR}/WagonTargets.cmake")
'''

[stages.wagon-prefix]
action = "relocate"
axes = ["python"]
inputs = ["bind", "libwagon-prefix"]
[stages.wagon-prefix.relocate]
place = { "wagon/lib" = "lib", "." = "lib/python{python}/site-packages" }
drop = ["wagon/lib/libwagon.so*", "wagon/lib/libwagon_c*.so*", "wagon/lib/libwagon_extra.so"]
single = ["wagon/lib/libwagon_python.so*"]
names = "soname"
[stages.wagon-prefix.relocate.link]
"lib" = "lib/python{python}/site-packages/wagon/lib"
"include" = "lib/python{python}/site-packages/wagon/include"
"include/libwagon" = "lib/python{python}/site-packages/wagon/include"
"share" = "lib/python{python}/site-packages/wagon/share"
[[stages.wagon-prefix.relocate.edits]]
file = "wagon/__init__.py"
find = '"lib", "libwagon.so"'
replace = '"lib", "libwagon.so.2.6"'
"""
PLANK_CONFIG = """\
foreach(name rivet plank)
  if(NOT TARGET plank::${name})
    add_library(plank::${name} UNKNOWN IMPORTED)
    file(GLOB library "${CMAKE_CURRENT_LIST_DIR}/../../lib${name}.so")
    set_target_properties(plank::${name} PROPERTIES IMPORTED_LOCATION "${library}")
  endif()
endforeach()
set_target_properties(plank::plank PROPERTIES INTERFACE_LINK_LIBRARIES plank::rivet)
"""
CONSUMER = {
    "CMakeLists.txt": """\
cmake_minimum_required(VERSION 3.18)
project(consumer CXX)
find_package(Wagon REQUIRED)
add_executable(consumer consumer.cpp)
target_link_libraries(consumer ${WAGON_LIBRARIES})
""",
    "consumer.cpp": SOURCES["manager.cpp"],
}
ANSWER = "7 42\n"
"""What a consumer prints: four wheels and three planks, and what is opened by name."""


def make_wagon(root: Path) -> Tiny:
    """Write the project and its depot into a new folder; skips the test where a tool is missing."""
    missing = [name for name in ("c++", "gcc", "cmake", "ninja") if shutil.which(name) is None]
    if missing:
        pytest.skip(f"needs {' and '.join(missing)}")
    versions = need_pythons(1)
    wagon = Tiny(folder=root / "project", store=root / "store", home=root / "home", versions=versions)
    for folder in (wagon.source, wagon.home):
        folder.mkdir(parents=True)
    for name, text in SOURCES.items():
        path = wagon.source / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    make_depot(root / "depot")
    wagon.recipe.write_text(
        (RECIPE + PACKAGES + PREFIX_STAGES).replace("PYTHON", versions[0]).replace("DEPOT", str(root / "depot"))
    )
    return wagon


def make_depot(depot: Path) -> None:
    """Libraries that stand in for the system's: ``libplank.so.3``, which needs ``librivet.so.2``."""
    (depot / "include" / "bolts").mkdir(parents=True)
    config = depot / "lib" / "cmake" / "plank" / "plankConfig.cmake"
    config.parent.mkdir(parents=True)
    config.write_text(PLANK_CONFIG)
    for name, version, needs, code in (
        ("rivet", "2", (), "int rivet_count(void) { return 1; }\n"),
        ("plank", "3", ("-lrivet",), "int rivet_count(void);\nint plank_length(void) { return 2 + rivet_count(); }\n"),
    ):
        source = depot / f"{name}.c"
        source.write_text(code)
        library = depot / "lib" / f"lib{name}.so.{version}"
        run(
            "gcc",
            "-shared",
            "-fPIC",
            source,
            "-o",
            library,
            f"-Wl,-soname,{library.name}",
            f"-L{depot / 'lib'}",
            *needs,
        )
        (depot / "lib" / f"lib{name}.so").symlink_to(library.name)
