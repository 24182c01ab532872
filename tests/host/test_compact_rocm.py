"""Real libraries of ROCm, compacted for some GPUs: LLVM's tools, the loader and HIP's runtime take them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from axletree.binary.edits import iter_source
from axletree.binary.elf.edit import ElfChange
from axletree.host.sources import DiskSource
from axletree.package.gpu.compact import read_library, thin_library
from support.elfs import complaints, need, run
from support.hip_library import PREFIX, code_object, hip_library, registered_code
from support.hip_library import TARGETS as HIP_TARGETS
from support.rocm import offload_bundler, rocm_sdk_root

if TYPE_CHECKING:
    from pathlib import Path

RAND, SPARSE = "librocrand.so.1.1", "librocsparse.so.0.1"
TARGETS = {
    "gfx803": {"gfx803"},
    "gfx900": {"gfx900:xnack-"},
    "gfx906": {"gfx906:xnack-"},
    "gfx908": {"gfx908:xnack-"},
    "gfx90a": {"gfx90a:xnack+", "gfx90a:xnack-"},
    "gfx90a:xnack+": {"gfx90a:xnack+"},
    "gfx1030": {"gfx1030"},
}
"""GPU -> what of the libraries' code is for it."""
HOST_PART = {RAND: 13_100_000, SPARSE: 14_700_000}
"""Bytes beside kept code and what bundles are aligned to."""
CHANGE = ElfChange(rpath=("$ORIGIN", "$ORIGIN/../../_rocm_sdk_core/lib/x86_64-linux-gnu"))
RUNTIME = """\
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
struct wrapper { unsigned magic, version; const char *binary; void *unused; };
struct row { unsigned long offset, size, length; char id[]; };
static void *handle;
void **__hipRegisterFatBinary(const struct wrapper *wrapper) {
  const char *data = wrapper->binary;
  const struct row *row = (const struct row *)(data + 32);
  if (wrapper->magic != 0x48495046 || memcmp(data, "__CLANG_OFFLOAD_BUNDLE__", 24)) abort();
  for (unsigned long left = *(const unsigned long *)(data + 24); left; left--) {
    unsigned long sum = 0, word;
    int wanted = row->length > 20 && strstr(row->id, getenv("WANTED")) && row->size;
    for (unsigned long place = 0; wanted && place + 8 <= row->size; place += 8)
      memcpy(&word, data + row->offset + place, 8), sum = sum * 31 + word;
    if (wanted) printf("%.*s %lu %lx\\n", (int)row->length, row->id, row->size, sum);
    row = (const struct row *)(row->id + row->length);
  }
  return &handle;
}
void __hipUnregisterFatBinary(void **modules) {}
void __hipRegisterFunction() {}
void __hipRegisterVar() {}
"""
"""In place of the HIP runtime: prints what code of a wanted GPU is registered with it."""


def thin(path: Path, out: Path, gpu: str) -> Path:
    """One library for one GPU."""
    with DiskSource(path) as source:
        result = thin_library(source, name=path.name, gpus=[gpu], change=CHANGE)
        assert (result.compacted, result.notes) == (True, ())
        with out.open("xb") as sink:
            for chunk in iter_source(result.source):
                sink.write(chunk)
        kept = sum(arch.kept_size for arch in result.archs)
        bundles = len(read_library(source, name=path.name).file.code[0].containers)
        assert kept < out.stat().st_size < kept + HOST_PART[path.name] + bundles * 3 * 4096
        return out


def folder() -> Path:
    return rocm_sdk_root() / "lib" / "x86_64-linux-gnu"


def search_path() -> str:
    return f"{folder()}:{rocm_sdk_root() / 'lib/llvm-15/lib'}"


@pytest.mark.parametrize(("library", "gpu"), [*((RAND, gpu) for gpu in TARGETS), (SPARSE, "gfx1030")])
def test_real_libraries(tmp_path: Path, library: str, gpu: str) -> None:
    need("patchelf", "objcopy")
    path = folder() / library
    out = thin(path, tmp_path / library, gpu)
    assert not complaints(out)
    assert run("patchelf", "--print-rpath", out).strip() == ":".join(CHANGE.rpath or ())
    assert bundler_list(out, tmp_path) == TARGETS[gpu]
    assert loads(out) == loads(path)


def bundler_list(path: Path, scratch: Path) -> set[str]:
    """The targets of all bundles by LLVM's tool, which reads the first of a file."""
    section = scratch / "fatbin"
    run("objcopy", "-O", "binary", "-j", ".hip_fatbin", path, section)
    tool = rocm_sdk_root() / "lib/llvm-15/bin/clang-offload-bundler"
    data, listed = section.read_bytes(), set[str]()
    for number, start in enumerate(found.start() for found in re.finditer(b"__CLANG_OFFLOAD_BUNDLE__", data)):
        assert start % 4096 == 0
        if number % 8 == 0:
            following = data.find(b"__CLANG_OFFLOAD_BUNDLE__", start + 1)
            section.write_bytes(data[start : following if following > 0 else None])
            text = run(tool, "--list", "--type=o", f"--input={section}", LD_LIBRARY_PATH=search_path())
            listed |= set(re.findall(r"--(gfx.*)", text))
    return listed


def loads(path: Path) -> str:
    """What functions of the host part say, in a process of its own that has HIP's runtime."""
    lines = ["import ctypes", f"library = ctypes.CDLL({str(path)!r})", "number = ctypes.c_int()"]
    if "rocrand" in path.name:
        lines.append("print(library.rocrand_get_version(ctypes.byref(number)), number.value)")
    else:
        lines.append("handle = ctypes.c_void_p()")
        lines.append("print(library.rocsparse_create_handle(None), library.rocsparse_destroy_mat_descr(None))")
    hip = "ctypes.CDLL('libamdhip64.so.5').hipGetDeviceCount(ctypes.byref(number))"
    lines.append(f"print({hip})")
    return run("python3", "-c", "\n".join(lines), LD_LIBRARY_PATH=search_path())


@pytest.mark.parametrize(("library", "gpu"), [(RAND, "gfx90a"), (SPARSE, "gfx1030")])
def test_the_runtime_is_given_the_same_kernels(tmp_path: Path, library: str, gpu: str) -> None:
    need("gcc")
    (tmp_path / "runtime.c").write_text(RUNTIME)
    runtime = tmp_path / "runtime.so"
    run("gcc", "-O2", "-w", "-shared", "-fPIC", tmp_path / "runtime.c", "-o", runtime)
    path = folder() / library
    out = thin(path, tmp_path / library, gpu)
    registered = [
        run(
            *("python3", "-c", f"import ctypes; ctypes.CDLL({str(each)!r})"),
            LD_LIBRARY_PATH=search_path(),
            LD_PRELOAD=str(runtime),
            WANTED=gpu,
        )
        for each in (path, out)
    ]
    assert registered[0] == registered[1]
    assert registered[0].count("\n") == {RAND: 2, SPARSE: 111}[library]


def test_llvm_unpacks_what_was_packed_again(tmp_path: Path) -> None:
    """Bundles that clang compressed; what stays of them has the hash that LLVM computes."""
    tool, libraries = offload_bundler()
    content, codes = [], {target: code_object(0, target, pages=40) for target in HIP_TARGETS}
    (tmp_path / "host").touch()
    for number in range(4):
        arguments = ["-type=o", "-bundle-align=4096", f"-output={tmp_path / 'bundle'}", f"-input={tmp_path / 'host'}"]
        arguments.append(f"-targets=host-x86_64-unknown-linux-gnu-,{','.join(PREFIX + target for target in codes)}")
        for target, code in codes.items():
            (tmp_path / target).write_bytes(code)
            arguments.append(f"-input={tmp_path / target}")
        run(tool, *arguments, *(["-compress"] if number else []), LD_LIBRARY_PATH=libraries)
        content.append((tmp_path / "bundle").read_bytes())
    assert [data[:4] for data in content] == [b"__CL", *[b"CCOB"] * 3]
    path = hip_library(tmp_path / "libdemo.so", content)
    with DiskSource(path) as source:
        result = thin_library(source, name=path.name, gpus=["gfx90a"], change=CHANGE)
        assert (result.compacted, result.notes) == (True, ())
        (tmp_path / "libthin.so").write_bytes(result.source.read(0, result.size))
    with DiskSource(tmp_path / "libthin.so") as thinned:
        (section,) = read_library(thinned, name="libthin.so").file.code
        sizes = [container.size for container in section.containers]
    for data in registered_code(tmp_path / "libthin.so", sizes):
        (tmp_path / "bundle").write_bytes(data)
        wanted = [target for target in HIP_TARGETS if target.startswith("gfx90a")]
        outputs = [f"-output={tmp_path / target}.out" for target in wanted]
        targets = f"-targets={','.join(PREFIX + target for target in wanted)}"
        arguments = ["-type=o", "-unbundle", "-verbose", f"-input={tmp_path / 'bundle'}", targets, *outputs]
        run("sh", "-c", '"$@" 2> "$0"', tmp_path / "log", tool, *arguments, LD_LIBRARY_PATH=libraries)
        assert ("Hashes match: Yes" in (tmp_path / "log").read_text()) == data.startswith(b"CCOB")
        assert [(tmp_path / f"{target}.out").read_bytes() for target in wanted] == [codes[each] for each in wanted]
        listed = run(tool, "-type=o", "-list", f"-input={tmp_path / 'bundle'}", LD_LIBRARY_PATH=libraries)
        assert sorted(re.findall(r"--(gfx.*)", listed)) == sorted(wanted)


KERNELS = """\
#include <hip/hip_runtime.h>
__device__ int table[64];
__global__ void scale(int *out, int by) { out[threadIdx.x] = table[threadIdx.x] * by; }
extern "C" int launch(void) {
  int number = 0;
  scale<<<1, 64>>>(nullptr, 3);
  return 1000 * hipGetLastError() + hipGetDeviceCount(&number);
}
"""


@pytest.mark.parametrize("flags", [(), ("-fgpu-rdc",), ("-fuse-ld=lld",), ("-g",)])
def test_what_hipcc_links(tmp_path: Path, flags: tuple[str, ...]) -> None:
    root = rocm_sdk_root()
    llvm = root / "lib/llvm-15/bin"
    environment = {
        "LD_LIBRARY_PATH": search_path(),
        "HIP_CLANG_PATH": str(llvm),
        **dict.fromkeys(("HIP_PATH", "ROCM_PATH", "HSA_PATH"), str(root)),
        "DEVICE_LIB_PATH": str(folder() / "amdgcn/bitcode"),
        "HIP_PLATFORM": "amd",
        "PERL5LIB": str(root / "share/perl5"),
    }
    (tmp_path / "k.hip").write_text(KERNELS)
    path, out = tmp_path / "libk.so", tmp_path / "libthin.so"
    targets = [f"--offload-arch={gpu}" for gpu in ("gfx900", "gfx90a", "gfx1030")]
    options = [*targets, "-fPIC", "-shared", *flags, f"-L{folder()}"]
    run(root / "bin/hipcc", *options, tmp_path / "k.hip", "-o", path, **environment)
    with DiskSource(path) as source:
        result = thin_library(source, name="libk.so", gpus=["gfx1030"], change=CHANGE)
        assert (result.compacted, result.notes) == (True, ())
        assert [arch.arch for arch in result.archs if arch.kept_entries] == ["gfx1030"]
        out.write_bytes(result.source.read(0, result.size))
    assert not complaints(out)
    code = "import ctypes, sys; print(ctypes.CDLL(sys.argv[1]).launch())"
    answers = [run("python3", "-c", code, each, LD_LIBRARY_PATH=search_path()) for each in (path, out)]
    assert answers[0] == answers[1] == "101100\n"  # hipErrorInvalidDevice, hipErrorNoDevice
