"""Small CUDA libraries from nvcc, and what NVIDIA's cuobjdump says of them."""

from __future__ import annotations

import re
import shutil
import stat
import subprocess
import zipfile
from collections import Counter
from pathlib import Path

import pytest

from support.inputs import wheel

KERNEL = """
__global__ void {name}(float *values, int count) {{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) values[i] = values[i] * {factor}.0f;
}}
extern "C" void run_{name}(float *values, int count) {{ {name}<<<1, 32>>>(values, count); }}
"""


def build_library(path: Path, archs: str, *options: str, kernels: int = 2) -> Path:
    """Compile a shared library for ``80 90a compute_90``: binaries, and PTX where it says ``compute``."""
    nvcc = shutil.which("nvcc")
    if nvcc is None:
        pytest.skip("needs nvcc")
    codes = []
    for arch in archs.split():
        number = arch.removeprefix("compute_")
        codes += ["-gencode", f"arch=compute_{number},code={arch if arch != number else f'sm_{number}'}"]
    sources = []
    for index in range(kernels):
        source = path.with_name(f"{path.stem}_{index}.cu")
        source.write_text(KERNEL.format(name=f"kernel{index}", factor=index + 2))
        sources.append(source)
    command = [nvcc, "-shared", "-Xcompiler", "-fPIC", "-cudart", "none", "-t", "2", *options, *codes]
    subprocess.run([*command, *map(str, sources), "-o", str(path)], check=True, capture_output=True)
    return path


def cuobjdump(tool: Path, library: Path) -> Counter[str]:
    """Entries by architecture as NVIDIA's tool lists them: ``sm_90a``, ``ptx_90``. It does not show the suffix ``f``
    of binaries, nor what ``__nv_relfatbin`` holds."""
    counts: Counter[str] = Counter()
    for option, kind, ending in (("--list-elf", "sm_", "cubin"), ("--list-ptx", "ptx_", "ptx")):
        done = subprocess.run([str(tool), option, str(library)], capture_output=True, text=True, check=False)
        for arch in re.findall(rf"\.sm_(\w+)\.{ending}$", done.stdout, re.MULTILINE):
            counts[kind + arch] += 1
    return counts


def find_cuobjdump(folder: Path) -> Path:
    """NVIDIA's tool, from its wheel."""
    archive = wheel("nvidia-cuda-cuobjdump==13.5.37")
    with zipfile.ZipFile(archive) as members:
        name = next(name for name in members.namelist() if name.endswith("/cuobjdump"))
        tool = Path(members.extract(name, folder))
    tool.chmod(tool.stat().st_mode | stat.S_IXUSR)
    return tool
