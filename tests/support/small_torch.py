"""A stand-in for an official torch wheel: its layout, its libraries and how they find each other, in a few kilobytes.

Its libraries are real: ``import torch`` opens libtorch_global_deps by path, loads ``_C``, which needs libtorch_python,
which needs the others; libtorch_cuda opens libtorch_cuda_linalg by name. ``torch.value()`` goes through all of them.
"""

from __future__ import annotations

import platform
import subprocess
import sys
import sysconfig
from typing import TYPE_CHECKING

from axletree.host.archive import write_wheel_file
from axletree.package.wheel.info import WheelInfo
from axletree.package.wheel.metadata import create_metadata
from axletree.package.wheel.names import WheelName
from axletree.package.wheel.writer import Member

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

PYTHON = f"cp{sys.version_info.major}{sys.version_info.minor}"
PLATFORM = f"linux_{platform.machine()}"

_SOURCES: dict[str, tuple[str, str]] = {  # library -> (source, what it is linked with)
    "libgomp.so.1": ("int gomp() { return 0; }", ""),
    "libc10.so": ("int c10() { return ANSWER; }", ""),
    "libtorch_cpu.so": ("int c10(); int cpu() { return c10(); }", "libc10.so"),
    "libc10_cuda.so": ("int c10(); int c10_cuda() { return c10(); }", "libc10.so"),
    "libcaffe2_nvrtc.so": ("int nvrtc() { return 0; }", ""),
    "libtorch_nvshmem.so": ("int cpu(); int nvshmem() { return cpu(); }", "libtorch_cpu.so"),
    "libtorch_cuda.so": (
        """
        #include <dlfcn.h>
        int c10_cuda(); int nvshmem();
        int cuda() {
            void* linalg = dlopen("libtorch_cuda_linalg.so", RTLD_NOW);
            return linalg ? ((int (*)())dlsym(linalg, "linalg"))() + c10_cuda() + nvshmem() : -1;
        }
        """,
        "libc10_cuda.so libtorch_nvshmem.so",
    ),
    "libtorch_cuda_linalg.so": ("int cpu(); int linalg() { return cpu(); }", "libtorch_cuda.so libtorch_cpu.so"),
    "libtorch.so": ("int torch() { return 0; }", "libtorch_cpu.so libtorch_cuda.so"),
    "libshm.so": ("int cpu(); int shm() { return cpu(); }", "libtorch_cpu.so libgomp.so.1"),
    "libtorch_global_deps.so": ("int deps() { return 0; }", "libgomp.so.1"),
    "libtorch_python.so": (
        "int cuda(); int shm(); int python() { return cuda() + shm(); }",
        "libtorch.so libshm.so libtorch_cuda.so",
    ),
}
_MODULE = """
#include <Python.h>
int python();
static PyObject* value(PyObject* self, PyObject* none) { return PyLong_FromLong(python()); }
static PyMethodDef methods[] = {{"value", value, METH_NOARGS, "v"}, {NULL, NULL, 0, NULL}};
static PyModuleDef module = {PyModuleDef_HEAD_INIT, "_C", NULL, -1, methods};
PyMODINIT_FUNC PyInit__C() { return PyModule_Create(&module); }
"""
_FILES = {
    "torch/__init__.py": '''"""A torch."""

import ctypes
import os


def _load_global_deps():
    lib_name = "libtorch_global_deps.so"
    here = os.path.abspath(__file__)
    global_deps_lib_path = os.path.join(os.path.dirname(here), "lib", lib_name)
    ctypes.CDLL(global_deps_lib_path, mode=ctypes.RTLD_GLOBAL)


_load_global_deps()
from torch._C import value
from torch.version import __version__
''',
    "torch/utils/__init__.py": """\
import os.path as _osp
cmake_prefix_path = _osp.join(_osp.dirname(_osp.dirname(__file__)), "share", "cmake")
""",
    "torch/utils/cpp_extension.py": """\
import os
_TORCH_PATH = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
TORCH_LIB_PATH = os.path.join(_TORCH_PATH, 'lib')
INCLUDE = os.path.join(_TORCH_PATH, 'include')
""",
    "torch/_inductor/cpu_vec_isa.py": """\
import os, torch
lib_dir = os.path.join(os.path.dirname(torch.__file__), "lib")
""",
    "torch/_inductor/cpp_builder.py": """\
import os
_TORCH_PATH = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
torch_includes_path = os.path.join(_TORCH_PATH, "include")
""",
    "torch/_inductor/codegen/cpp_wrapper_cpu.py": """\
import os, torch
if True:
    if True:
        path = os.path.join(
            os.path.dirname(torch.__file__),
            "include",
            "c10",
        )
""",
    "torch/distributed/_symmetric_memory/_nvshmem_triton.py": """\
import os, torch
torch_lib = os.path.join(os.path.dirname(torch.__file__), "lib")
""",
    "torch/include/c10/c10.h": "int c10();\n",
    "torch/share/cmake/Torch/TorchConfig.cmake": "# Torch\n",
    "torch/bin/protoc": "#!/bin/sh\n",
    "torch/bin/test_api": "#!/bin/sh\n",
    "functorch/__init__.py": "",
    "torchgen/__init__.py": "",
}


def make_small_torch(
    folder: Path,
    *,
    version: str = "2.14.1",
    local: str = "cu130",
    answer: int = 7,
    requires: Iterable[str] = (),
    python: str = PYTHON,
) -> Path:
    """Build the wheel; ``torch.value()`` is four times ``answer``. ``local`` is what only ``torch.version`` says."""
    build = folder / f"build-{version}"
    build.mkdir(parents=True)
    files = {path: text.encode() for path, text in _FILES.items()}
    files["torch/version.py"] = f"__version__ = '{version}+{local}'\n".encode()
    for name, (source, needs) in _SOURCES.items():
        flags = ["-shared", "-fPIC", f"-Wl,-soname,{name}", f"-DANSWER={answer}"]
        files[f"torch/lib/{name}"] = _compile(build / name, source, needs, flags, "$ORIGIN")
    suffix = sysconfig.get_config_var("EXT_SUFFIX")
    flags = ["-shared", "-fPIC", f"-I{sysconfig.get_path('include')}"]
    module = build / f"_C{suffix}"
    files[f"torch/{module.name}"] = _compile(module, _MODULE, "libtorch_python.so", flags, "$ORIGIN:$ORIGIN/lib")
    files["torch/bin/torch_shm_manager"] = _compile(
        build / "torch_shm_manager",
        "int shm(); int main() { return shm(); }",
        "libshm.so",
        ["-Wl,--enable-new-dtags"],
        "$ORIGIN/../lib",
    )
    wheel_name = WheelName(project="torch", version=version, python=python, abi=python, platform=PLATFORM)
    wheel = write_wheel_file(
        folder,
        wheel_name,
        [Member(path=path, data=data, executable="/bin/" in path or ".so" in path) for path, data in files.items()],
        metadata=create_metadata(name="torch", version=version, summary="A stand-in", requires=requires),
        wheel_info=WheelInfo(tags=wheel_name.tags, purelib=False),
    )
    return wheel.path


def _compile(target: Path, source: str, needs: str, flags: list[str], rpath: str) -> bytes:
    command = ["gcc", "-O1", "-w", "-x", "c", "-", "-x", "none", "-o", str(target), "-Wl,--no-as-needed"]
    command += [f"-Wl,-rpath,{rpath}", f"-Wl,-rpath-link,{target.parent}"]
    if "-Wl,--enable-new-dtags" not in flags:
        command.append("-Wl,--disable-new-dtags")
    command += [*flags, *(str(target.parent / name) for name in needs.split())]
    subprocess.run(command, input=source, text=True, check=True)
    return target.read_bytes()
