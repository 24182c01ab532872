"""What ninja's steps are called: CMake's descriptions and command lines in a few words."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from axletree.execute.progress import compile_step, describe

CXX = "/store/cache/tools/ccache-1/c++ -DTORCH -I/src/aten/src -isystem /usr/include/eigen3 -O3 -fPIC -std=gnu++17 -MD"
MODULE = "caffe2/CMakeFiles/torch_cpu.dir/__/aten/src/ATen/native/native_functions.cpp.o"


@pytest.mark.parametrize(
    ("step", "words"),
    [
        (f"Building CXX object {MODULE}", "compiling native_functions.cpp"),
        ("Building CUDA object CMakeFiles/x.dir/Sort.cu.o", "compiling Sort.cu"),
        ("Building C object CMakeFiles/x.dir/main.c.o", "compiling main.c"),
        ("Linking CXX shared library lib/libtorch_cpu.so", "linking libtorch_cpu.so"),
        ("Linking CXX executable bin/protoc; Configuring", "linking protoc"),
        ("Linking CXX static library lib/libfp16.a", "linking libfp16.a"),
        ("Generating ../torch/a.cpp, ../torch/b.cpp, c.h", "generating a.cpp and 2 more"),
        ("Generating version.h", "generating version.h"),
        ("Install the project...", "installing"),
        (
            f"{CXX} -MT {MODULE} -MF {MODULE}.d -o {MODULE} -c /src/native_functions.cpp",
            "compiling native_functions.cpp",
        ),
        (f"{CXX} -c /src/kernel.cu -o x.o", "compiling kernel.cu"),
        (
            ": && /usr/bin/c++ -fPIC -Wl,-z,now -shared -Wl,-soname,libx.so -o lib/libx.so a.o b.o && :",
            "linking libx.so",
        ),
        ("cd /build && /usr/bin/python -m torchgen.gen", "running python -m torchgen.gen"),
        ("", ""),
    ],
)
def test_a_step_in_words(step: str, words: str) -> None:
    assert describe(step) == words


@given(st.text(max_size=400))
def test_any_text_is_one_short_line_of_it(step: str) -> None:
    assert len(describe(step)) <= max(120, len("generating and more") + len(step))


FLAGS = "-fno-strict-overflow -DNDEBUG -O3 -Wall -fPIC -I/usr/include/python3.11"


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (f"gcc -pthread {FLAGS} -c src/_fast.c -o build/temp.linux/src/_fast.o", "compiling _fast.c"),
        (f"x86_64-linux-gnu-g++ {FLAGS} -c a/b.cpp -o build/b.o -std=c++17", "compiling b.cpp"),
        (f"/store/tools/ccache c++ {FLAGS} -c b.cc -o b.o", "compiling b.cc"),
        (f"/usr/local/cuda/bin/nvcc {FLAGS} -c k.cu -o k.o --expt-relaxed-constexpr", "compiling k.cu"),
        ("clang-18 -c one.c -o one.o", "compiling one.c"),
        ("  cc -O2 -c two.c -o two.o", "compiling two.c"),
        (f"gcc -shared {FLAGS} build/_fast.o -o build/lib/_fast.so", None),
        ("copying a.c -c b.c -o c", None),
        ("running build_ext -c x.c -o y", None),
        ("note: gcc -c x.c -o x.o failed", None),
        ("gcc -c x.c", None),
        ("", None),
    ],
)
def test_a_compilers_command_is_a_step(line: str, words: str | None) -> None:
    assert compile_step(line) == words
