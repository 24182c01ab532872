"""What the shipped manifest of ROCm sets makes the real hipcc work in a tree that was moved."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from axletree.package.sdk.describe import environment
from axletree.package.sdk.manifest import parse_manifest
from support.rocm import rocm_sdk_root

MANIFEST = Path(__file__).parents[2] / "recipes" / "sdk" / "rocm.toml"
PROGRAM = """\
#include <hip/hip_runtime.h>
__global__ void twice(float *x) { x[threadIdx.x] *= 2; }
int main() {
  int count = -1;
  hipError_t answer = hipGetDeviceCount(&count);
  return answer == hipErrorNoDevice || (answer == hipSuccess && count > 0) ? 0 : 1;
}
"""


def _same(source: str, target: str) -> None:
    try:
        os.link(source, target)
    except OSError:  # another file system
        shutil.copy2(source, target)


def test_hipcc_compiles_and_links_in_a_moved_tree(tmp_path: Path) -> None:
    if shutil.which("perl") is None or shutil.which("g++") is None:
        pytest.skip("hipcc is a Perl script, and links with the C++ library of g++")
    root = tmp_path / "elsewhere" / "sdk"
    unused = shutil.ignore_patterns("librocsparse*", "rocprim", "doc", "man")
    shutil.copytree(rocm_sdk_root(), root, symlinks=True, copy_function=_same, ignore=unused)
    present = {path.relative_to(root).as_posix() for path in root.rglob("*")}
    manifest = parse_manifest(MANIFEST.read_text(encoding="utf-8"), filename=MANIFEST.name)
    variables = {name: text.format(root=root) for name, text in environment(manifest, present).items()}
    assert variables["DEVICE_LIB_PATH"] == f"{root}/lib/x86_64-linux-gnu/amdgcn/bitcode"
    assert variables["PERL5LIB"] == f"{root}/share/perl5"
    libraries = f"{root}/lib/x86_64-linux-gnu:{root}/lib/llvm-15/lib"  # in packages search paths say so
    variables |= {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "LD_LIBRARY_PATH": libraries}
    (tmp_path / "twice.hip").write_text(PROGRAM)

    def run(*words: str) -> str:
        done = subprocess.run(words, env=variables, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    run(f"{root}/bin/hipcc", "--offload-arch=gfx90a", "twice.hip", "-o", "twice")
    run("./twice")
    assert run(f"{root}/bin/hipconfig", "--platform") == "amd"
    assert run(f"{root}/bin/hipconfig", "--rocmpath") == str(root)
