"""What conda environments bring to a stage, as far as names tell."""

from __future__ import annotations

import pytest

from axletree.plan.conda import Brought


@pytest.mark.parametrize(
    ("packages", "tools", "compilers"),
    [
        ({"gxx_linux-64", "gcc_linux-64"}, {"c++", "g++", "cc", "gcc"}, True),
        ({"cxx-compiler", "c-compiler"}, {"c++", "cc"}, True),
        ({"clang_linux-64"}, {"cc", "clang"}, False),
        ({"cmake", "ninja"}, {"cmake", "ninja"}, False),
        ({"libgcc", "gxxfilt", "cuda-nvcc_linux-64"}, {"nvcc"}, False),
        ({"python"}, {"python"}, False),
        ({"libprotobuf", "flatbuffers"}, {"protoc", "flatc"}, False),
        ({"protobuf", "python-flatbuffers"}, set(), False),
    ],
)
def test_programs_of_packages(packages: set[str], tools: set[str], compilers: bool) -> None:  # noqa: FBT001
    brought = Brought(packages=frozenset(packages))
    asked = ("c++", "g++", "cc", "gcc", "clang", "cmake", "ninja", "nvcc", "python", "git", "protoc", "flatc")
    found = {tool for tool in asked if brought.has(tool)}
    assert tools <= found
    assert found <= tools | {"clang", "gcc", "g++"}
    assert brought.compilers == compilers
