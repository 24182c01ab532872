"""Failures that are provoked with the real tools, and what the diagnosis makes of what they print."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
from functools import cache
from typing import TYPE_CHECKING

import msgspec
import pytest

from axletree.check.diagnosis.decode import FAILURE_KINDS
from axletree.check.diagnosis.engine import Diagnosis, Engine
from axletree.host.shipped_data import read_shipped

if TYPE_CHECKING:
    from pathlib import Path

INCLUDE = sysconfig.get_path("include")
EXTENSION = """#include <Python.h>
{declared}
static struct PyModuleDef module = {{PyModuleDef_HEAD_INIT, "ext", 0, -1, 0}};
PyMODINIT_FUNC PyInit_ext(void) {{ {called} return PyModule_Create(&module); }}
"""
MODULE = f"gcc -shared -fPIC -I{INCLUDE} ext.c -o ext.so"
IMPORT = f"{sys.executable} -c 'import ext'"


class Provoked(msgspec.Struct, frozen=True, kw_only=True):
    """Files and a shell command that fails over them."""

    kind: str
    command: str
    files: dict[str, str] = {}
    tools: tuple[str, ...] = ("gcc", "g++")


def _extension(declared: str = "", called: str = "") -> dict[str, str]:
    return {"ext.c": EXTENSION.format(declared=declared, called=called)}


def _calling(symbol: str) -> dict[str, str]:
    return _extension(f"extern void {symbol}(void);", f"{symbol}();")


KERNEL = {"k.cu": "__global__ void k() {}\nint main() { k<<<1, 1>>>(); }\n"}
UNDEFINED = {"a.cpp": "void plain(int);\nint main() { plain(1); }\n"}
TWICE = {
    "a.c": "int dup(void) { return 1; }\nint main(void) { return dup(); }\n",
    "b.c": "int dup(void) { return 2; }\n",
}
FAR = {
    "far.c": "static char a[3000000000u], b[3000000000u];\nint x;\nint main(void) { return a[1] + b[2] + x; }\n",
}
FIXED = {"lib.c": "int data = 3;\nint get(void) { return data; }\n"}
TRUE = {"m.c": "int main(void) { return 0; }\n"}
LIBRARY = {"foo.c": "int foo(void) { return 1; }\n", "old.map": "V_1 { global: foo; };\n"}
THROWING = """namespace c10 { struct Error { virtual const char* what() { return "x"; } }; }
int main() { throw c10::Error(); }
"""
LINKERS = (("bfd", "ld.bfd"), ("gold", "ld.gold"), ("lld", "ld.lld"), ("mold", "ld.mold"))

CASES: dict[str, Provoked] = {
    "integers": Provoked(
        kind="compile/fixed-width-integers-undeclared", files={"a.cpp": "uint16_t x;\n"}, command="g++ -c a.cpp"
    ),
    "standard header": Provoked(
        kind="compile/std-header-not-included",
        files={"a.cpp": "#include <cstddef>\nstd::string s;\n"},
        command="g++ -c a.cpp",
    ),
    "standard": Provoked(
        kind="compile/language-standard-too-old",
        files={"a.cpp": "#include <type_traits>\nbool b = std::is_same_v<int, int>;\n"},
        command="g++ -std=c++11 -c a.cpp",
    ),
    "concepts": Provoked(
        kind="compile/language-standard-too-old",
        files={"a.cpp": "template<class T> concept C = true;\n"},
        command="g++ -std=c++17 -c a.cpp",
    ),
    "standard option": Provoked(
        kind="compile/standard-option-unknown", files=TRUE, command="gcc -x c++ -std=c++99 -c m.c"
    ),
    "instruction set": Provoked(
        kind="compile/instruction-set-option-unknown", files=TRUE, command="gcc -mavx9999 -c m.c"
    ),
    "processor": Provoked(
        kind="compile/instruction-set-option-unknown", files=TRUE, command="gcc -march=nosuch -c m.c"
    ),
    "option": Provoked(kind="compile/option-unknown", files=TRUE, command="gcc -fnosuch -c m.c"),
    "assembler": Provoked(
        kind="compile/assembler-too-old", files={"a.s": " vnosuch %ymm1,%ymm2\n"}, command="gcc -c a.s"
    ),
    "CUDA header": Provoked(
        kind="compile/cuda-headers-missing", files={"a.cpp": "#include <cublas_v2.h>\n"}, command="g++ -c a.cpp"
    ),
    "Python header": Provoked(
        kind="compile/python-header-missing", files={"a.cpp": "#include <Python.h>\n"}, command="g++ -c a.cpp"
    ),
    "any header": Provoked(
        kind="compile/header-missing", files={"a.cpp": "#include <nosuch/x.h>\n"}, command="g++ -c a.cpp"
    ),
    "warning": Provoked(
        kind="compile/warning-as-error",
        files={"a.cpp": "int f() { int n; return 1; }\n"},
        command="g++ -Wall -Werror -c a.cpp",
    ),
    "narrowing": Provoked(kind="compile/narrowing", files={"a.cpp": "int a[] = {1.5};\n"}, command="g++ -c a.cpp"),
    "depth": Provoked(
        kind="compile/template-depth",
        files={"a.cpp": "template<int N> struct F { static const int v = F<N - 1>::v; };\nint x = F<100000>::v;\n"},
        command="g++ -ftemplate-depth=50 -c a.cpp",
    ),
    "memory": Provoked(
        kind="compile/memory-limit",
        files={"a.cpp": "#include <regex>\nstd::regex r;\n"},
        command="ulimit -v 80000; g++ -O2 -c a.cpp",
    ),
    "syntax": Provoked(kind="compile/error", files={"a.cpp": "int f( { }\n"}, command="g++ -c a.cpp"),
    "rule": Provoked(
        kind="compile/build-graph-stale", files={"Makefile": "a: gone.h\n\ttouch a\n"}, command="make", tools=("make",)
    ),
    "ninja rule": Provoked(
        kind="compile/build-graph-stale",
        files={"build.ninja": "rule r\n  command = touch $out\nbuild a: r gone.h\n"},
        command="ninja",
        tools=("ninja",),
    ),
    "GPU architecture": Provoked(
        kind="compile/cuda-arch-unsupported", files=KERNEL, command="nvcc -arch=sm_20 -c k.cu", tools=("nvcc",)
    ),
    "architecture pair": Provoked(
        kind="compile/cuda-arch-pair-incompatible",
        files=KERNEL,
        command="nvcc -gencode arch=compute_90a,code=sm_80 -c k.cu",
        tools=("nvcc",),
    ),
    "host compiler": Provoked(
        kind="compile/host-compiler-unsupported",
        files=KERNEL,
        command="nvcc -Xcompiler -U__GNUC__,-D__GNUC__=99 -c k.cu",
        tools=("nvcc", "g++"),
    ),
    "no host compiler": Provoked(
        kind="compile/host-compiler-not-runnable",
        files=KERNEL,
        command="nvcc -ccbin /nonexistent/g++ -c k.cu",
        tools=("nvcc",),
    ),
    "loose file": Provoked(
        kind="link/file-format-not-recognized", files={**TRUE, "x.o": "text\n"}, command="gcc m.c x.o"
    ),
    "linker option": Provoked(kind="link/option-unknown", files=TRUE, command="gcc m.c -Wl,--nosuch"),
    "linker": Provoked(kind="link/linker-missing", files=TRUE, command="gcc -fuse-ld=nosuch m.c"),
    "output": Provoked(kind="link/output-not-writable", files=TRUE, command="gcc m.c -o nosuch/m"),
    "hidden": Provoked(
        kind="link/hidden-symbol",
        files={"a.c": '__attribute__((visibility("hidden"))) int hid(void);\nint main(void) { return hid(); }\n'},
        command="gcc a.c",
    ),
    "needed": Provoked(
        kind="link/needed-library-not-found",
        files={
            "foo.c": "int foo(void) { return 1; }\n",
            "bar.c": "int foo(void);\nint bar(void) { return foo(); }\n",
            "a.c": "int bar(void);\nint main(void) { return bar(); }\n",
        },
        command="gcc -shared -fPIC foo.c -o libfoo.so && gcc -shared -fPIC bar.c -o libbar.so -L. -lfoo && "
        "mv libfoo.so x && gcc a.c -L. -lbar",
    ),
    "old string": Provoked(
        kind="import/torch-old-string-abi",
        files=_calling("_ZN3c106detail14torchCheckFailEPKcS2_jRKSs"),
        command=f"{MODULE} && {IMPORT}",
    ),
    "new string": Provoked(
        kind="import/torch-new-string-abi",
        files=_calling("_ZN2at6detail4failERKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE"),
        command=f"{MODULE} && {IMPORT}",
    ),
    "torch": Provoked(
        kind="import/torch-api-drift",
        files=_calling("_ZN3c104impl3cow23materialize_cow_storageERNS_11StorageImplE"),
        command=f"{MODULE} && {IMPORT}",
    ),
    "NCCL": Provoked(kind="import/nccl-mismatch", files=_calling("ncclCommNew"), command=f"{MODULE} && {IMPORT}"),
    "CUDA symbol": Provoked(
        kind="import/cuda-symbol-missing", files=_calling("cudaNewThing"), command=f"{MODULE} && {IMPORT}"
    ),
    "Python symbol": Provoked(
        kind="import/python-symbol-missing", files=_calling("PyUnicode_NoSuch"), command=f"{MODULE} && {IMPORT}"
    ),
    "any symbol": Provoked(
        kind="import/undefined-symbol", files=_calling("my_helper"), command=f"{MODULE} && {IMPORT}"
    ),
    "glibc": Provoked(
        kind="import/glibc-too-old",
        files={**_calling("foo"), "foo.c": LIBRARY["foo.c"], "v.map": "GLIBC_2.99 { global: foo; };\n"},
        command="gcc -shared -fPIC foo.c -o libc.so.6 -Wl,-soname,libc.so.6 -Wl,--version-script=v.map && "
        f"{MODULE} ./libc.so.6 && rm libc.so.6 && {IMPORT}",
    ),
    "libstdc++": Provoked(
        kind="import/libstdcxx-too-old",
        files={**_calling("foo"), "foo.c": LIBRARY["foo.c"], "v.map": "GLIBCXX_3.4.99 { global: foo; };\n"},
        command="gcc -shared -fPIC foo.c -o libstdc++.so.6 -Wl,-soname,libstdc++.so.6 -Wl,--version-script=v.map && "
        f"{MODULE} ./libstdc++.so.6 && rm libstdc++.so.6 && {IMPORT}",
    ),
    "version": Provoked(
        kind="import/symbol-version-missing",
        files={**_calling("foo"), **LIBRARY, "new.map": "V_2 { global: foo; };\n"},
        command="gcc -shared -fPIC foo.c -o libfoo.so -Wl,-soname,libfoo.so -Wl,--version-script=new.map && "
        f"{MODULE} ./libfoo.so -Wl,-rpath,$PWD && "
        f"gcc -shared -fPIC foo.c -o libfoo.so -Wl,-soname,libfoo.so -Wl,--version-script=old.map && {IMPORT}",
    ),
    "CUDA library": Provoked(
        kind="import/cuda-library-not-found",
        files={**_calling("foo"), **LIBRARY},
        command="gcc -shared -fPIC foo.c -o libcublas.so.99 -Wl,-soname,libcublas.so.99 && "
        f"{MODULE} ./libcublas.so.99 && rm libcublas.so.99 && {IMPORT}",
    ),
    "torch library": Provoked(
        kind="import/torch-library-not-found",
        files={**_calling("foo"), **LIBRARY},
        command="gcc -shared -fPIC foo.c -o libc10_cuda.so && "
        f"{MODULE} -L. -lc10_cuda && rm libc10_cuda.so && {IMPORT}",
    ),
    "library of a program": Provoked(
        kind="import/shared-object-not-found",
        files={**LIBRARY, "a.c": "int foo(void);\nint main(void) { return foo(); }\n"},
        command="gcc -shared -fPIC foo.c -o libfoo.so && gcc a.c -L. -lfoo -o a && rm libfoo.so && ./a",
    ),
    "empty": Provoked(kind="import/truncated-or-foreign-library", files={"ext.so": ""}, command=IMPORT),
    "text": Provoked(kind="import/truncated-or-foreign-library", files={"ext.so": "version\n" * 200}, command=IMPORT),
    "class": Provoked(
        kind="import/truncated-or-foreign-library",
        command=f"as --32 /dev/null -o x.o && ld -m elf_i386 -shared x.o -o ext.so && {IMPORT}",
        tools=("as", "ld"),
    ),
    "no module": Provoked(
        kind="import/module-has-no-init", files=LIBRARY, command=f"gcc -shared -fPIC foo.c -o ext.so && {IMPORT}"
    ),
    "thread-local": Provoked(
        kind="import/static-tls-exhausted",
        files=_extension('__thread char big[100000] __attribute__((tls_model("initial-exec")));', "big[1] = 1;"),
        command=f"{MODULE} && {IMPORT}",
    ),
    "circle": Provoked(
        kind="import/circular-import",
        files={
            "ext/__init__.py": "from . import a\n",
            "ext/a.py": "from .b import y\nx = 1\n",
            "ext/b.py": "from .a import x\n",
        },
        command=IMPORT,
        tools=(),
    ),
    "shadow": Provoked(
        kind="import/module-shadowed", files={"ext.py": ""}, command=f"{sys.executable} -c 'import ext.part'", tools=()
    ),
    "source tree": Provoked(
        kind="import/source-tree-shadows-torch",
        files={"torch/__init__.py": "from .version import x\n"},
        command=f"{sys.executable} -c 'import torch'",
        tools=(),
    ),
    "module": Provoked(
        kind="import/module-not-found", command=f"{sys.executable} -c 'import no_such_module_here'", tools=()
    ),
    "exception": Provoked(
        kind="link/exceptions-escape",
        files={"a.cpp": THROWING},
        command="g++ a.cpp -o a && ./a",
    ),
    **{
        f"{name} {linker}": Provoked(
            kind=kind, files=files, command=command.format(f"-fuse-ld={linker}"), tools=("gcc", "g++", tool)
        )
        for linker, tool in LINKERS
        for name, kind, files, command in (
            ("undefined", "link/undefined-reference", UNDEFINED, "g++ {} a.cpp"),
            ("missing", "link/library-not-found", TRUE, "gcc {} m.c -lnosuch"),
            ("driver", "link/driver-library-not-found", TRUE, "gcc {} m.c -lcuda"),
            ("twice", "link/multiple-definition", TWICE, "gcc {} a.c b.c"),
            ("far", "link/relocation-overflow", FAR, "gcc {} far.c"),
            ("fixed", "link/not-position-independent", FIXED, "gcc {} -fno-pic -shared lib.c -o lib.so"),
            (
                "magma",
                "link/magma-undefined",
                {"a.c": "int magma_init(void);\nint main(void) { return magma_init(); }\n"},
                "gcc {} a.c",
            ),
        )
    },
}


@cache
def _engine() -> Engine:
    return Engine(read_shipped(FAILURE_KINDS))


def _diagnose(command: str, folder: Path) -> tuple[Diagnosis, str]:
    environment = {
        **os.environ,
        "LC_ALL": "C.UTF-8",
        "PYTHONPATH": str(folder),
        "LD_LIBRARY_PATH": "",
        "CPATH": "",
        "LIBRARY_PATH": "",
    }
    ran = subprocess.run(
        ["bash", "-c", command],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=120,
        check=False,
    )
    assert ran.returncode, ran.stdout.decode()
    return _engine().diagnose([ran.stdout]), ran.stdout.decode()


@pytest.mark.parametrize("name", CASES)
def test_found_first(name: str, tmp_path: Path) -> None:
    case = CASES[name]
    for tool in case.tools:
        if shutil.which(tool) is None:
            pytest.skip(f"no {tool}")
    for path, text in case.files.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    diagnosis, log = _diagnose(case.command, tmp_path)
    assert [finding.rule for finding in diagnosis.findings][:1] == [case.kind], log
    assert "{" not in diagnosis.findings[0].cause, diagnosis.findings[0].cause
