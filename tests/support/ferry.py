"""A small native project in all formats: a C++ library built by CMake, an extension for each Python, a metapackage."""

from __future__ import annotations

from typing import TYPE_CHECKING

from support.tiny import Tiny, make_tiny

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

_CMAKE = """\
cmake_minimum_required(VERSION 3.18)
project(ferry VERSION 1.2.0 LANGUAGES CXX)
include(GNUInstallDirs)
add_library(ferry SHARED ferry.cpp)
target_include_directories(ferry PUBLIC
  $<BUILD_INTERFACE:${CMAKE_CURRENT_SOURCE_DIR}> $<INSTALL_INTERFACE:include>)
install(TARGETS ferry EXPORT ferryTargets LIBRARY DESTINATION lib)
install(FILES ferry.h DESTINATION include/ferry)
install(EXPORT ferryTargets NAMESPACE ferry:: FILE ferryConfig.cmake DESTINATION share/cmake/ferry)
install(FILES LICENSE DESTINATION .)
"""
_SETTERS = """\
add_executable(show show.cpp)
target_link_libraries(show PRIVATE ferry)
set_target_properties(show PROPERTIES BUILD_WITH_INSTALL_RPATH ON INSTALL_RPATH "$ORIGIN/../lib")
install(TARGETS show RUNTIME DESTINATION bin)
"""
_FILES = {
    "src/CMakeLists.txt": _CMAKE + _SETTERS,
    "src/LICENSE": "Do as you like.\n",
    "src/ferry.h": 'extern "C" int ferry_load();\n',
    "src/ferry.cpp": '#include "ferry.h"\nint ferry_load() { return 42; }\n',
    "src/show.cpp": '#include "ferry.h"\n#include <cstdio>\nint main() { std::printf("%d\\n", ferry_load()); }\n',
    "src/bind.cpp": """\
#include <Python.h>
extern "C" int ferry_load();
static PyObject* load(PyObject*, PyObject*) { return PyLong_FromLong(ferry_load()); }
static PyMethodDef methods[] = {{"load", load, METH_NOARGS, "The load."}, {nullptr, nullptr, 0, nullptr}};
static PyModuleDef module = {PyModuleDef_HEAD_INIT, "_ferry", nullptr, -1, methods};
PyMODINIT_FUNC PyInit__ferry() { return PyModule_Create(&module); }
""",
    "src/__init__.py": "from ferry._ferry import load\n",
    "tests/check.py": """\
import os
import sys
from importlib.metadata import version

import demo
import ferry

assert ferry.load() == 42
assert demo.__name__ == "demo"
assert version("ferry") == "1.2.0"
if "CONDA_PREFIX" in os.environ:
    prefix = os.environ["CONDA_PREFIX"]
    assert sys.prefix == prefix
    assert ferry.__file__.startswith(prefix)
    assert os.path.exists(os.path.join(os.path.dirname(ferry.__file__), "__pycache__"))
""",
    "tests/consumer.txt": """\
cmake_minimum_required(VERSION 3.18)
project(consumer LANGUAGES CXX)
find_package(ferry CONFIG REQUIRED)
file(WRITE ${CMAKE_BINARY_DIR}/main.cpp
  "#include <ferry/ferry.h>\\nint main() { return ferry_load() == 42 ? 0 : 1; }\\n")
add_executable(consumer ${CMAKE_BINARY_DIR}/main.cpp)
target_link_libraries(consumer PRIVATE ferry::ferry)
""",
}
RECIPE = """\
name = "ferry"
version = "1.2.0"
summary = "Carries numbers across."
license = "MIT"
[source]
path = "src"

[axes]
python = [PYTHONS]
gpu = ["cpu"]

[environments.bind]
[environments.test]
requires = ["demo>=1"]

[stages.lib]
action = "run"
axes = ["gpu"]
tools = ["c++", "cmake"]
commands = [
  "cmake -S . -B $TMPDIR/build -DCMAKE_BUILD_TYPE=Release",
  "cmake --build $TMPDIR/build",
  "cmake --install $TMPDIR/build --prefix $AXLETREE_OUT",
]

[stages.bind]
action = "run"
axes = ["python", "gpu"]
environment = "bind"
inputs = ["lib"]
tools = ["c++"]
commands = [
  "mkdir $AXLETREE_OUT/ferry",
  "include=$(python -c 'import sysconfig; print(sysconfig.get_path(\\"include\\"))')",
  "suffix=$(python -c 'import sysconfig; print(sysconfig.get_config_var(\\"EXT_SUFFIX\\"))')",
  "c++ $CXXFLAGS -O1 -fPIC -I$include -c bind.cpp -o $TMPDIR/bind.o",
  'links="-L$AXLETREE_IN_LIB/lib -lferry -Wl,-rpath,\\$ORIGIN/../libferry/lib:\\$ORIGIN/../../.."',
  "c++ -shared -o $AXLETREE_OUT/ferry/_ferry$suffix $TMPDIR/bind.o $links",
  "cp __init__.py $AXLETREE_OUT/ferry/",
]

[packages.libferry]
from = "lib"
formats = ["wheel", "conda", "zip"]
prefix = "libferry"
[packages.libferry.conda]
build = "{gpu}_{hash}_{number}"
build-number = 3
run-exports = { weak = ["libferry {pin}"] }

[packages.ferry]
from = "bind"
formats = ["wheel", "conda"]
requires = ["libferry=={version}", "demo>=1"]
provided-by = { libferry = ["libferry.so"] }
[packages.ferry.conda]
name = "py-ferry"

[packages.ferry-cpu]
formats = ["wheel", "conda"]
when = { gpu = "cpu" }
requires = ["ferry=={version}"]
[packages.ferry-cpu.conda]
depends = ["py-ferry =={version} cpu*"]

[tests.smoke]
packages = ["libferry", "ferry", "ferry-cpu"]
installers = ["pip", "uv", "conda"]
imports = ["ferry"]
files = ["tests/check.py", "tests/consumer.txt"]
commands = [
  "python check.py",
  'if [ "${CONDA_PREFIX:-}" ]; then show; mkdir consumer; cp consumer.txt consumer/CMakeLists.txt; fi',
  'if [ "${CONDA_PREFIX:-}" ]; then cmake -S consumer -B consumer/build -DCMAKE_PREFIX_PATH=$CONDA_PREFIX; fi',
  'if [ "${CONDA_PREFIX:-}" ]; then cmake --build consumer/build && consumer/build/consumer; fi',
]
"""


def make_ferry(root: Path, versions: Sequence[str], *, recipe: str = RECIPE) -> Tiny:
    """Write the project into a new folder; nothing is built yet."""
    ferry = make_tiny(root, versions, recipe=recipe)
    for name, text in _FILES.items():
        (ferry.folder / name).write_text(text)
    return ferry
