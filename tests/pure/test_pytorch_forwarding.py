"""Which variable reaches CMake, how a tree is built, what ninja made again."""

from __future__ import annotations

import pytest

from axletree.buildsystem.era import detect_era
from axletree.buildsystem.ninja import read_ninja_log, rebuilt
from axletree.buildsystem.pytorch.forwarding import Era, forward
from axletree.buildsystem.variables import starts_afresh

# The environment of a compile of 2.6.0, and what setup.py printed as its command line.
ENVIRON = {
    "BLAS": "Generic",
    "BUILD_LIBTORCH_WHL": "1",
    "BUILD_TEST": "0",
    "CMAKE_BUILD_PARALLEL_LEVEL": "2",
    "CMAKE_BUILD_TYPE": "Release",
    "CXXFLAGS": "-O2",
    "GENERIC_BLAS_LIBRARIES": "blas",
    "MAX_JOBS": "2",
    "ONNX_NAMESPACE": "onnx",
    "PATH": "/usr/bin",
    "PYTORCH_BUILD_NUMBER": "1",
    "PYTORCH_BUILD_VERSION": "2.6.0+cpu",
    "SOVERSION": "2.6",
    "USE_CCACHE": "0",
    "USE_CUDA": "0",
    "USE_DISTRIBUTED": "0",
    "USE_SYSTEM_LIBS": "ON",
}
PRINTED = (
    "-GNinja -DBLAS=Generic -DBUILD_FUNCTORCH=OFF -DBUILD_LIBTORCH_WHL=1 -DBUILD_PYTHON=False -DBUILD_TEST=False "
    "-DCMAKE_BUILD_PARALLEL_LEVEL=2 -DCMAKE_BUILD_TYPE=Release -DCMAKE_INSTALL_PREFIX=/build/source/torch "
    "-DCMAKE_PREFIX_PATH=/environment/lib/python3.11/site-packages -DONNX_NAMESPACE=onnx "
    "-DPython_EXECUTABLE=/environment/bin/python -DTORCH_BUILD_VERSION=2.6.0+cpu -DUSE_CCACHE=0 -DUSE_CUDA=0 "
    "-DUSE_DISTRIBUTED=0 -DUSE_NUMPY=True -DUSE_SYSTEM_LIBS=ON /build/source"
)
ADDED = {
    "BUILD_PYTHON",
    "BUILD_TEST",
    "CMAKE_INSTALL_PREFIX",
    "Python_EXECUTABLE",
    "TORCH_BUILD_VERSION",
    "USE_NUMPY",
}


def test_as_setup_py_2_6_printed_it() -> None:
    printed = dict(word[2:].split("=", 1) for word in PRINTED.split() if word.startswith("-D"))
    found = forward(ENVIRON, "setup.py").options
    assert printed.pop("CMAKE_PREFIX_PATH") == "/environment/lib/python3.11/site-packages"
    assert {name: value for name, value in found.items() if name not in ADDED} == {
        name: value for name, value in printed.items() if name not in ADDED
    }


@pytest.mark.parametrize(
    ("environ", "era", "name", "value"),
    [
        ({"CUDNN_LIB_DIR": "/c"}, "setup.py", "CUDNN_LIBRARY", "/c"),
        ({"CUDNN_LIBRARY": "/l", "CUDNN_LIB_DIR": "/c"}, "setup.py", "CUDNN_LIBRARY", "/c"),
        ({"CUDNN_LIB_DIR": "/c", "CUDNN_LIBRARY": "/l"}, "setup.py", "CUDNN_LIBRARY", "/l"),
        ({"CUDNN_LIB_DIR": "/c", "CUDNN_LIBRARY": "/l"}, "scikit-build-core", "CUDNN_LIBRARY", "/c"),
        ({"USE_CUDA_STATIC_LINK": "1"}, "scikit-build-core", "CAFFE2_STATIC_LINK_CUDA", "1"),
        ({"USE_CUDA_STATIC_LINK": "1"}, "scikit-build-core", "USE_CUDA_STATIC_LINK", "1"),
        ({"USE_CUDA_STATIC_LINK": "1"}, "setup.py", "USE_CUDA_STATIC_LINK", None),
        ({"_GLIBCXX_USE_CXX11_ABI": "1"}, "setup.py", "GLIBCXX_USE_CXX11_ABI", "1"),
        ({"_GLIBCXX_USE_CXX11_ABI": "1"}, "scikit-build-core", "GLIBCXX_USE_CXX11_ABI", None),
        ({"CUDAHOSTCXX": "g++"}, "setup.py", "CUDA_HOST_COMPILER", "g++"),
        ({"CUDAHOSTCXX": "g++", "CUDA_HOST_COMPILER": "clang"}, "setup.py", "CUDA_HOST_COMPILER", "clang"),
        ({"CUDA_HOST_COMPILER": "clang"}, "scikit-build-core", "CMAKE_CUDA_HOST_COMPILER", "clang"),
        ({"CUDACXX": "/n"}, "scikit-build-core", "CUDA_NVCC_EXECUTABLE", "/n"),
        ({"A_EXITCODE": "0"}, "setup.py", "A_EXITCODE", "0"),
        ({"A_EXITCODE__TRYRUN_OUTPUT": "x"}, "scikit-build-core", "A_EXITCODE__TRYRUN_OUTPUT", "x"),
        ({"DEBUG": "1"}, "setup.py", "CMAKE_BUILD_TYPE", "Debug"),
        ({"DEBUG": "0", "REL_WITH_DEB_INFO": "yes"}, "setup.py", "CMAKE_BUILD_TYPE", "RelWithDebInfo"),
        ({"DEBUG": "1", "REL_WITH_DEB_INFO": "1"}, "setup.py", "CMAKE_BUILD_TYPE", "Debug"),
        ({"DEBUG": "1", "CMAKE_BUILD_TYPE": "Release"}, "setup.py", "CMAKE_BUILD_TYPE", "Release"),
        ({}, "setup.py", "CMAKE_BUILD_TYPE", "Release"),
        ({"CMAKE_PREFIX_PATH": "/a:/b"}, "setup.py", "CMAKE_PREFIX_PATH", "/a:/b"),
        ({"CMAKE_PREFIX_PATH": "/a:/b::/a"}, "scikit-build-core", "CMAKE_PREFIX_PATH", "/a;/b"),
        ({"DEBUG_CUDA": "1"}, "setup.py", "DEBUG_CUDA", None),
        ({"JAVA_HOME": "/j"}, "setup.py", "JAVA_HOME", "/j"),
        ({"JAVA_HOME": "/j"}, "scikit-build-core", "JAVA_HOME", None),
        ({"FLASH_ATTENTION_MAX_JOBS": "4"}, "setup.py", "FLASH_ATTENTION_MAX_JOBS", None),
        ({"FLASH_ATTENTION_MAX_JOBS": "4"}, "scikit-build-core", "FLASH_ATTENTION_MAX_JOBS", "4"),
        ({"CMAKE_INSTALL_PREFIX": "/x"}, "setup.py", "CMAKE_INSTALL_PREFIX", None),
        ({"BUILD_PYTHON_ONLY": "1"}, "setup.py", "BUILD_LIBTORCHLESS", "ON"),
        ({"BUILD_PYTHON_ONLY": "ON"}, "scikit-build-core", "BUILD_LIBTORCHLESS", "ON"),
        ({"BUILD_PYTHON_ONLY": "ON"}, "setup.py and CMake", "BUILD_LIBTORCHLESS", None),
        ({"BUILD_PYTHON_ONLY": "1"}, "setup.py and CMake", "BUILD_LIBTORCHLESS", "ON"),
        ({"CUDNN_LIBRARY": "/l", "CUDNN_LIB_DIR": "/c"}, "setup.py and CMake", "CUDNN_LIBRARY", "/c"),
        ({"USE_CUDA_STATIC_LINK": "1"}, "setup.py and CMake", "USE_CUDA_STATIC_LINK", "1"),
        ({"_GLIBCXX_USE_CXX11_ABI": "1"}, "setup.py and CMake", "GLIBCXX_USE_CXX11_ABI", None),
        ({"CMAKE_PREFIX_PATH": "/a:/b::/a"}, "setup.py and CMake", "CMAKE_PREFIX_PATH", "/a;/b"),
        ({"CMAKE_INSTALL_PREFIX": "/x"}, "setup.py and CMake", "CMAKE_INSTALL_PREFIX", None),
        ({"PYTHON_LIB_REL_PATH": "lib"}, "setup.py and CMake", "PYTHON_LIB_REL_PATH", "lib"),
        ({"PYTHON_LIB_REL_PATH": "lib"}, "scikit-build-core", "PYTHON_LIB_REL_PATH", None),
        ({"FLASH_ATTENTION_MAX_JOBS": "4"}, "setup.py and CMake", "FLASH_ATTENTION_MAX_JOBS", None),
        ({"DEBUG": "1"}, "setup.py and CMake", "CMAKE_BUILD_TYPE", "Debug"),
    ],
)
def test_rules(environ: dict[str, str], era: Era, name: str, value: str | None) -> None:
    assert forward(environ, era).options.get(name) == value


def test_where_each_comes_from() -> None:
    origin = forward({"CUDACXX": "/n", "DEBUG": "1", "USE_CUDA": "1"}, "setup.py").origin
    assert origin == {"CUDA_NVCC_EXECUTABLE": "CUDACXX", "CMAKE_BUILD_TYPE": "DEBUG", "USE_CUDA": "USE_CUDA"}


def test_names_that_say_nothing_or_end_the_build_are_told() -> None:
    environ = {"CMAKE_FRESH": "1", "USE_NINJA": "0", "USE_NIGHTLY": "1", "CMAKE_INSTALL_PREFIX": "/x"}
    old, new = forward(environ, "setup.py"), forward(environ, "scikit-build-core")
    assert (set(old.ignored), set(old.refused)) == (set(), {"CMAKE_INSTALL_PREFIX"})
    assert (set(new.ignored), set(new.refused)) == ({"CMAKE_FRESH", "USE_NINJA"}, {"USE_NIGHTLY"})
    between = forward(environ, "setup.py and CMake")
    assert (set(between.ignored), set(between.refused)) == ({"CMAKE_INSTALL_PREFIX"}, set())
    both = {"BUILD_LIBTORCH_WHL": "1", "BUILD_PYTHON_ONLY": "1"}
    assert set(forward(both, "setup.py").refused) == {"BUILD_PYTHON_ONLY"}
    # setup.py compares with 1: with another word it would build everything without a complaint.
    assert set(forward({"BUILD_LIBTORCH_WHL": "ON"}, "setup.py").refused) == {"BUILD_LIBTORCH_WHL"}
    assert forward({"BUILD_LIBTORCH_WHL": "ON"}, "scikit-build-core").refused == {}


@pytest.mark.parametrize(
    ("name", "pytorch", "afresh"),
    [
        ("MAX_JOBS", False, False),
        ("MAX_JOBS", True, False),
        ("USE_CUDA", False, False),
        ("TORCH_CUDA_ARCH_LIST", True, False),
        ("TORCH_CUDA_ARCH_LIST", False, True),
        ("CXXFLAGS", False, False),
        ("CC", True, True),
        ("CPATH", True, True),
        ("SOVERSION", True, True),
    ],
)
def test_variables_that_make_a_built_folder_useless(name: str, *, pytorch: bool, afresh: bool) -> None:
    assert starts_afresh(name, pytorch=pytorch) is afresh


SCIKIT = '[build-system]\nbuild-backend = "scikit_build_core.build"'
SETUPTOOLS = '[build-system]\nbuild-backend = "setuptools.build_meta"'
WRAPPED = '[build-system]\nbuild-backend = "own"\nbackend-path = ["."]\nrequires = ["scikit-build-core>=0.10"]'
PLUGIN = '[build-system]\nbuild-backend = "scikit_build_core.setuptools.build_meta"'
UPSTREAM = "from tools.setup_helpers.cmake import CMake\nif '--cmake-only' in sys.argv: BUILD_PYTHON_ONLY"
CMAKE = {"CMakeLists.txt": "project(Torch) # Caffe2 BUILD_LIBTORCHLESS"}


@pytest.mark.parametrize(
    ("texts", "driver"),
    [
        ({"setup.py": UPSTREAM, **CMAKE}, "setup.py"),
        ({"setup.py": UPSTREAM, "pyproject.toml": SETUPTOOLS, **CMAKE}, "setup.py"),
        ({"setup.py": UPSTREAM, "pyproject.toml": SCIKIT, **CMAKE}, "scikit-build-core"),
        ({"pyproject.toml": WRAPPED, **CMAKE}, "scikit-build-core"),
        ({"pyproject.toml": PLUGIN, **CMAKE}, "pep517"),
        ({"setup.py": "subprocess.check_call(['cmake', '..'])", **CMAKE}, "pep517"),
        ({"setup.py": UPSTREAM}, "pep517"),
        ({"setup.py": "setup()", **CMAKE}, "pep517"),
        ({"pyproject.toml": SETUPTOOLS}, "pep517"),
        ({"pyproject.toml": "[tool.ruff]", **CMAKE}, "cmake"),
        ({"pyproject.toml": "not [toml", **CMAKE}, "cmake"),
        ({"pyproject.toml": "build-system = 3", **CMAKE}, "cmake"),
        ({}, "pep517"),
    ],
)
def test_eras(texts: dict[str, str], driver: str) -> None:
    era = detect_era(texts)
    assert era.driver == driver
    assert era.evidence
    assert not era.pytorch


def test_what_a_pytorch_tree_can_do() -> None:
    tree = {"setup.py": UPSTREAM, "c10/CMakeLists.txt": "", **CMAKE}
    era = detect_era(tree)
    assert (era.pytorch, era.libtorch_wheel, era.libtorchless) == (True, False, True)
    old = detect_era({**tree, "setup.py": "--cmake-only setup_helpers.cmake"})
    assert (old.driver, old.libtorchless) == ("setup.py", False)
    new = detect_era({**tree, "pyproject.toml": SCIKIT, "cmake/EnvVarForwarding.cmake": "BUILD_LIBTORCH_WHL"})
    assert (new.driver, new.libtorch_wheel, new.libtorchless) == ("scikit-build-core", True, True)
    between = detect_era({**tree, "cmake/EnvVarForwarding.cmake": ""})
    assert [each.rules for each in (era, between, new)] == ["setup.py", "setup.py and CMake", "scikit-build-core"]
    assert between.driver == "setup.py"
    assert detect_era({"setup.py": UPSTREAM, **CMAKE}).rules is None


def test_what_ninja_made_again() -> None:
    before = read_ninja_log("# ninja log v6\n0\t5\t100\ta.o\tabc\n0\t9\t100\tb.o\tdef\n3\t9\t1\tc.h\t1\n5\tbroken")
    # a.o was only restated; b.o was compiled in another run; c.h was made again and found unchanged.
    after = read_ninja_log(
        "# ninja log v7\n0\t5\t300\ta.o\tabc\n2\t11\t100\tb.o\tdef\n4\t9\t1\tc.h\t1\n0\t1\t1\tnew\t2\n"
    )
    assert (before["b.o"].milliseconds, rebuilt(before, after)) == (9, ("b.o", "c.h", "new"))
    again = read_ninja_log("# ninja log v6\n0\t9\t100\tb.o\tdef\n0\t9\t200\tb.o\tdef\n0\t5\t100\ta.o\tabc\n")
    assert rebuilt(before, again) == ("b.o",), "it began and took the same milliseconds as the last time"
    assert read_ninja_log("garbage") == {}
    assert read_ninja_log("") == {}
