"""Another Python for a configured tree: what is moved, what is left alone, what is refused."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from axletree.buildsystem.cmake.cache import diff_caches, edit_cache, parse_cache, render_diff
from axletree.buildsystem.cmake.python_switch import (
    PythonFacts,
    configured_python,
    find_executable,
    switch_python,
)
from axletree.core.errors import IntegrityError

REAL = (Path(__file__).parents[1] / "golden/cmake/pytorch-2.6.0-python.txt").read_text(encoding="utf-8")
"""Entries about Python of a configured PyTorch 2.6.0."""


def python(version: str, prefix: str, base: str, *, soabi: str = "") -> PythonFacts:
    short = ".".join(version.split(".")[:2])
    return PythonFacts(
        executable=f"{prefix}/bin/python",
        version=version,
        soabi=soabi or f"cpython-{short.replace('.', '')}-x86_64-linux-gnu",
        include=f"{base}/include/python{short}",
        library=f"{base}/lib/libpython{short}.so",
        numpy_include=f"{prefix}/lib/python{short}/site-packages/numpy/_core/include",
        purelib=f"{prefix}/lib/python{short}/site-packages",
        prefix=prefix,
        base_prefix=base,
    )


OLD, NEW = python("3.12.4", "/old", "/opt/py/3.12.4"), python("3.13.1", "/new", "/opt/py/3.13.1")
CONDA_OLD, CONDA_NEW = (
    python("3.12.4", "/conda/envs/host", "/conda/envs/host"),
    python("3.13.1", "/conda/envs/host", "/conda/envs/host"),
)


def switched(line: str, old: PythonFacts = OLD, new: PythonFacts = NEW) -> str:
    cache = parse_cache(f"{line}\n", file="C")
    edited = edit_cache(cache, switch_python(cache, old, new, file="C"))
    return "".join(f"{each.value}\n" for each in edited.entries.values()).strip()


@pytest.mark.parametrize(
    ("line", "value"),
    [
        ("Python_EXECUTABLE:FILEPATH=/old/bin/python", "/new/bin/python"),
        ("Python3_INCLUDE_DIR:PATH=/opt/py/3.12.4/include/python3.12", "/opt/py/3.13.1/include/python3.13"),
        ("PYTHON_LIBRARY:FILEPATH=/usr/lib/libpython3.12.so", "/opt/py/3.13.1/lib/libpython3.13.so"),
        ("PYTHON_LIBRARY_DEBUG:FILEPATH=PYTHON_LIBRARY_DEBUG-NOTFOUND", "PYTHON_LIBRARY_DEBUG-NOTFOUND"),
        ("NUMPY_INCLUDE_DIR:PATH=/x", "/new/lib/python3.13/site-packages/numpy/_core/include"),
        ("PYBIND11_PYTHON_VERSION:STRING=3.12", "3.13"),
        ("Python_VERSION:UNINITIALIZED=3.12.4", "3.13.1"),
        ("Python_SOABI:STRING=cpython-312-x86_64-linux-gnu", "cpython-313-x86_64-linux-gnu"),
        ("Python_ROOT_DIR:PATH=/old", "/new"),
        ("CMAKE_PREFIX_PATH:STRING=/a;/old/lib/python3.12/site-packages;/old",
         "/a;/new/lib/python3.13/site-packages;/new"),
        ("pybind11_DIR:PATH=/old/lib/python3.12/site-packages/pybind11/share",
         "/new/lib/python3.13/site-packages/pybind11/share"),
        ("CMAKE_CXX_FLAGS:STRING=-O2 -I/opt/py/3.12.4/include/python3.12 -L/old/lib",
         "-O2 -I/opt/py/3.13.1/include/python3.13 -L/new/lib"),
        ("SPACES_DIR:PATH=/old/my lib", "/new/my lib"),
        # Not Python's, though they look like it.
        ("LLVM_DIR:PATH=/opt/llvm/3.12/lib", "/opt/llvm/3.12/lib"),
        ("MKL_VERSION:STRING=3.12.4", "3.12.4"),
        ("ELSEWHERE:PATH=/older/lib", "/older/lib"),
        ("Z_DIR:PATH=/opt/python3.120/lib", "/opt/python3.120/lib"),
        # Nothing is looked for there, and other flags would compile everything anew.
        ("CMAKE_C_FLAGS:STRING=-ffile-prefix-map=/old=/env", "-ffile-prefix-map=/old=/env"),
        # Programs of the build.
        ("CMAKE_COMMAND:INTERNAL=/old/bin/cmake", "/old/bin/cmake"),
        ("CMAKE_MAKE_PROGRAM:FILEPATH=/old/bin/ninja", "/old/bin/ninja"),
        ("_Python_EXECUTABLE_ABOUT:INTERNAL=/old/bin/python", ""),
    ],
)  # fmt: skip
def test_each_kind_of_entry(line: str, value: str) -> None:
    assert switched(line) == value


@pytest.mark.parametrize(
    "line",
    [
        "MODULE_SUFFIX:STRING=.cpython-312-x86_64-linux-gnu.so",
        "LINK:STRING=-lpython3.12",
        "BOOST_PYTHON:FILEPATH=/usr/lib/libboost_python312.so",
        "TAG:STRING=cp312",
        "MY_PYTHON_VERSION:STRING=3.12",
        "NUMPY_FOR:STRING=Python;3;12",
        "CONFIG:PATH=/usr/lib/python3.12/config-3.12-x86_64-linux-gnu",
    ],
)
@pytest.mark.parametrize(("old", "new"), [(OLD, NEW), (CONDA_OLD, CONDA_NEW)], ids=["environments", "one prefix"])
def test_leftovers_are_refused_with_their_lines(line: str, old: PythonFacts, new: PythonFacts) -> None:
    cache = parse_cache(f"# cache\nFINE:BOOL=ON\n{line}\nOTHER_{line}\n", file="C")
    with pytest.raises(IntegrityError) as caught:
        switch_python(cache, old, new, file="C")
    assert [(each.file, each.line) for each in caught.value.problems] == [("C", 3), ("C", 4)]
    assert "still refers to Python 3.12.4" in str(caught.value)


def test_one_prefix_for_all_pythons_as_conda_has_it() -> None:
    line = "CMAKE_PREFIX_PATH:STRING=/conda/envs/host;/conda/envs/host/lib/python3.12/site-packages"
    assert switched(line, CONDA_OLD, CONDA_NEW) == "/conda/envs/host;/conda/envs/host/lib/python3.13/site-packages"
    with pytest.raises(IntegrityError, match="libboost_python312"):
        switched("B:FILEPATH=/conda/envs/host/lib/libboost_python312.so", CONDA_OLD, CONDA_NEW)


def test_a_new_environment_whose_path_has_the_old_version() -> None:
    new = python("3.13.1", "/env/was-python3.12", "/opt/py/3.13.1")
    assert switched("Python_ROOT_DIR:PATH=/old", OLD, new) == "/env/was-python3.12"


def test_a_prefix_that_is_everybodys_stays() -> None:
    system = python("3.12.4", "/usr/local", "/usr/local")
    assert switched("B:FILEPATH=/usr/local/lib/libblas.so", system, NEW) == "/usr/local/lib/libblas.so"
    assert switched("B:PATH=/usr/local/include/python3.12", system, NEW) == "/opt/py/3.13.1/include/python3.13"


def test_a_patch_release_and_a_build_without_gil() -> None:
    assert (
        switched("Python_ROOT_DIR:PATH=/opt/py/3.12.4", OLD, python("3.12.9", "/old", "/opt/py/3.12.9"))
        == "/opt/py/3.12.9"
    )
    free = python("3.13.1", "/new", "/base", soabi="cpython-313t-x86_64-linux-gnu")
    assert switched("X_DIR:PATH=/old/lib/python3.12/x", OLD, free) == "/new/lib/python3.13t/x"


def test_what_the_new_one_has_not() -> None:
    new = msgspec.structs.replace(NEW, numpy_include=None)
    with pytest.raises(IntegrityError, match=r"the value is /x, which has no counterpart for Python 3\.13\.1"):
        switched("NUMPY_INCLUDE_DIR:PATH=/x", OLD, new)


def test_the_same_python_changes_nothing() -> None:
    cache = parse_cache(REAL, file="C")
    facts = configured_python(cache)
    assert facts is not None
    assert switch_python(cache, facts, facts, file="C") == {}


def test_what_a_real_cache_knows_of_its_python() -> None:
    cache = parse_cache(REAL, file="C")
    assert configured_python(cache) == PythonFacts(
        executable="/environment/bin/python",
        version="3.11.7",
        soabi="cpython-311-x86_64-linux-gnu",
        include="/opt/3.11.7/include/python3.11",
        numpy_include="/environment/lib/python3.11/site-packages/numpy/_core/include",
        purelib="/environment/lib/python3.11/site-packages",
        prefix="/environment",
        base_prefix="/opt/3.11.7",
    )
    assert find_executable(cache) == "/environment/bin/python"
    assert configured_python(parse_cache("PYTHON_EXECUTABLE:FILEPATH=/p\n", file="C")) is None


def test_a_real_cache_is_switched() -> None:
    cache = parse_cache(REAL, file="C")
    facts = configured_python(cache)
    assert facts is not None
    edited = edit_cache(cache, switch_python(cache, facts, NEW, file="C"))
    shown = render_diff(tuple(each for each in diff_caches(cache, edited) if each.new is not None))
    assert shown == (
        "-CMAKE_PREFIX_PATH:UNINITIALIZED=/environment/lib/python3.11/site-packages\n"
        "+CMAKE_PREFIX_PATH:UNINITIALIZED=/new/lib/python3.13/site-packages\n"
        "-Python_EXECUTABLE:UNINITIALIZED=/environment/bin/python\n"
        "+Python_EXECUTABLE:UNINITIALIZED=/new/bin/python\n"
        "-pybind11_INCLUDE_DIRS:INTERNAL=/usr/include;/opt/3.11.7/include/python3.11\n"
        "+pybind11_INCLUDE_DIRS:INTERNAL=/usr/include;/opt/py/3.13.1/include/python3.13\n"
    )
    assert edited.get("CMAKE_CXX_FLAGS") == cache.get("CMAKE_CXX_FLAGS")
    assert not [name for name in edited.entries if name.startswith("_Python")]


def test_an_interpreter_that_was_found_by_searching_is_named() -> None:
    cache = parse_cache("_Python3_EXECUTABLE:INTERNAL=/old/bin/python\n_Python3:INTERNAL=Python3\n", file="C")
    assert switch_python(cache, OLD, NEW, file="C")["Python3_EXECUTABLE"] == ("FILEPATH", "/new/bin/python")
