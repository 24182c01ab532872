"""Which variable reaches CMake, and what a changed one means for a configured tree."""

from __future__ import annotations

import pytest

from axletree.buildsystem.era import detect_era
from axletree.buildsystem.ninja import read_ninja_log, rebuilt
from axletree.buildsystem.pytorch.forwarding import Reconfigure, changed, forward

ENVIRON = {
    "BUILD_LIBTORCH_WHL": "1",
    "CMAKE_BUILD_TYPE": "Release",
    "BLAS": "Generic",
    "GENERIC_BLAS_LIBRARIES": "blas",
    "ONNX_NAMESPACE": "onnx",
    "USE_CUDA": "1",
    "CUDA_HOME": "/opt/cuda",
    "TORCH_CUDA_ARCH_LIST": "8.0;9.0",
    "SOVERSION": "2.6",
    "PATH": "/usr/bin",
}


def test_as_setup_py_2_6_printed_it() -> None:
    # Its command line also has what its Python side adds: BUILD_PYTHON, BUILD_TEST, USE_NUMPY, Python_EXECUTABLE,
    # CMAKE_INSTALL_PREFIX and TORCH_BUILD_VERSION.
    assert forward(ENVIRON, "setup.py", purelib="/env/site").options == {
        "BLAS": "Generic",
        "BUILD_LIBTORCH_WHL": "1",
        "CMAKE_BUILD_TYPE": "Release",
        "CMAKE_PREFIX_PATH": "/env/site",
        "ONNX_NAMESPACE": "onnx",
        "TORCH_CUDA_ARCH_LIST": "8.0;9.0",
        "USE_CUDA": "1",
    }


@pytest.mark.parametrize(
    ("environ", "era", "name", "value"),
    [
        ({"CUDNN_LIB_DIR": "/c"}, "setup.py", "CUDNN_LIBRARY", "/c"),
        ({"USE_CUDA_STATIC_LINK": "1"}, "scikit-build-core", "CAFFE2_STATIC_LINK_CUDA", "1"),
        ({"_GLIBCXX_USE_CXX11_ABI": "1"}, "setup.py", "GLIBCXX_USE_CXX11_ABI", "1"),
        ({"_GLIBCXX_USE_CXX11_ABI": "1"}, "scikit-build-core", "GLIBCXX_USE_CXX11_ABI", None),
        ({"CUDAHOSTCXX": "g++"}, "setup.py", "CUDA_HOST_COMPILER", "g++"),
        ({"CUDAHOSTCXX": "g++", "CUDA_HOST_COMPILER": "clang"}, "setup.py", "CUDA_HOST_COMPILER", "clang"),
        ({"A_EXITCODE": "0"}, "setup.py", "A_EXITCODE", "0"),
        ({"DEBUG": "1"}, "setup.py", "CMAKE_BUILD_TYPE", "Debug"),
        ({"DEBUG": "1", "REL_WITH_DEB_INFO": "1"}, "setup.py", "CMAKE_BUILD_TYPE", "Debug"),
        ({"DEBUG": "1", "CMAKE_BUILD_TYPE": "Release"}, "setup.py", "CMAKE_BUILD_TYPE", "Release"),
        ({}, "setup.py", "CMAKE_BUILD_TYPE", "Release"),
        ({"CMAKE_PREFIX_PATH": "/a:/b"}, "setup.py", "CMAKE_PREFIX_PATH", "/a;/b"),
        ({"DEBUG_CUDA": "1"}, "setup.py", "DEBUG_CUDA", None),
        ({"JAVA_HOME": "/j"}, "scikit-build-core", "JAVA_HOME", None),
        ({"CMAKE_INSTALL_PREFIX": "/x"}, "setup.py", "CMAKE_INSTALL_PREFIX", None),
    ],
)
def test_rules(environ: dict[str, str], era: str, name: str, value: str | None) -> None:
    assert forward(environ, era).options.get(name) == value  # type: ignore[arg-type]


def test_names_that_the_newer_era_ignores_are_told() -> None:
    assert set(forward({"CMAKE_FRESH": "1", "USE_NINJA": "0"}, "scikit-build-core").ignored) == {
        "CMAKE_FRESH",
        "USE_NINJA",
    }


@pytest.mark.parametrize(
    ("after", "expected"),
    [
        ({}, Reconfigure(kind="nothing")),
        ({"PATH": "/bin"}, Reconfigure(kind="nothing")),
        ({"CMAKE_BUILD_PARALLEL_LEVEL": "8", "MAX_JOBS": "8"}, Reconfigure(kind="nothing")),
        ({"USE_CUDA": "0"}, Reconfigure(kind="again", define={"USE_CUDA": "0"}, because=("USE_CUDA",))),
        ({"BLAS": None}, Reconfigure(kind="again", remove=("BLAS",), because=("BLAS",))),
        ({"CXXFLAGS": "-g"}, Reconfigure(kind="again", define={"CMAKE_CXX_FLAGS": "-g"}, because=("CXXFLAGS",))),
        ({"CUDA_HOME": "/other"}, Reconfigure(kind="again", because=("CUDA_HOME",))),
        ({"CXX": "clang++", "USE_CUDA": "0"}, Reconfigure(kind="anew", because=("CXX",))),
    ],
)
def test_changes_of_a_configured_tree(after: dict[str, str | None], expected: Reconfigure) -> None:
    environ = {name: value for name, value in {**ENVIRON, **after}.items() if value is not None}
    assert changed(ENVIRON, environ, "setup.py") == expected


def test_eras() -> None:
    old = {
        "setup.py": "from tools.setup_helpers.cmake import CMake",
        "CMakeLists.txt": "Caffe2",
        "c10/CMakeLists.txt": "",
    }
    new = {"pyproject.toml": '[build-system]\nbuild-backend = "scikit_build_core.build"', "CMakeLists.txt": ""}
    found = [detect_era(texts) for texts in (old, new, {"CMakeLists.txt": ""}, {"setup.py": "setup()"}, {})]
    assert [era.driver for era in found] == ["setup.py", "scikit-build-core", "cmake", "pep517", "pep517"]
    assert [era.pytorch for era in found] == [True, False, False, False, False]
    assert all(era.evidence for era in found)


def test_what_ninja_made_again() -> None:
    before = read_ninja_log("# ninja log v6\n0\t5\t100\ta.o\tabc\n0\t9\t100\tb.o\tdef\n5\tbroken")
    after = read_ninja_log("# ninja log v6\n0\t5\t100\ta.o\tabc\n0\t9\t200\tb.o\tdef\n")
    assert (before["b.o"].milliseconds, rebuilt(before, after)) == (9, ("b.o",))
    assert read_ninja_log("garbage") == {}
