"""A CUDA 12.4 toolkit put together from wheels and Debian packages: enough to configure and compile, on any machine.

NVIDIA's wheels for CUDA 12 bring headers, libraries, ptxas and libdevice, but not the compiler driver; Debian's package
of the same release does, and the static runtime that CMake links its first test with.
"""

import shutil
from pathlib import Path

from axletree.host.wheels import unpack_wheel
from support.inputs import debian_package, wheel

_WHEELS = (
    "nvidia-cublas-cu12==12.4.5.8",
    "nvidia-cuda-cccl-cu12==12.4.127.post1",
    "nvidia-cuda-cupti-cu12==12.4.127",
    "nvidia-cuda-nvcc-cu12==12.4.131",
    "nvidia-cuda-nvrtc-cu12==12.4.127",
    "nvidia-cuda-profiler-api-cu12==12.4.127",
    "nvidia-cuda-runtime-cu12==12.4.127",
    "nvidia-cudnn-cu12==9.1.0.70",
    "nvidia-cufft-cu12==11.2.1.3",
    "nvidia-curand-cu12==10.3.5.147",
    "nvidia-cusolver-cu12==11.6.1.9",
    "nvidia-cusparse-cu12==12.3.1.170",
    "nvidia-nvjitlink-cu12==12.4.127",
    "nvidia-nvtx-cu12==12.4.127",
)
_PROGRAMS = ("bin2c", "cu++filt", "cudafe++", "cuobjdump", "fatbinary", "nvdisasm", "nvlink", "nvprune", "ptxas")
_PROFILE = """\
TOP = $(_HERE_)/..
NVVMIR_LIBRARY_DIR = $(TOP)/nvvm/libdevice
CICC_PATH = $(TOP)/nvvm/bin
PATH += $(TOP)/nvvm/bin:$(_HERE_):
INCLUDES += "-I$(TOP)/include" $(_SPACE_)
LIBRARIES =+ $(_SPACE_) "-L$(TOP)/lib64/stubs" "-L$(TOP)/lib64"
"""


def make_cuda_toolkit(folder: Path) -> Path:
    """Lay the toolkit out in a folder that does not exist yet, and return it."""
    driver = debian_package("nvidia-cuda-toolkit", "trixie", "non-free") / "usr"
    static = ("*/libcudart_static.a", "*/libcudadevrt.a", "*/libculibos.a", "*/stubs/libcuda.so")
    libraries = debian_package("nvidia-cuda-dev", "trixie", "non-free", only=static) / "usr/lib/x86_64-linux-gnu"
    site = folder / "wheels"
    for requirement in _WHEELS:
        unpack_wheel(wheel(requirement), site / requirement.partition("==")[0])
    for part in ("bin", "include", "lib64/stubs", "nvvm/bin"):
        (folder / part).mkdir(parents=True)
    for program in _PROGRAMS:
        shutil.copy2(driver / "bin" / program, folder / "bin")
    hidden = driver / "lib/nvidia-cuda-toolkit/bin"
    shutil.copy2(hidden / "nvcc", folder / "bin")
    shutil.copytree(hidden / "crt", folder / "bin/crt")
    shutil.copy2(hidden / "cicc", folder / "nvvm/bin")
    (folder / "bin/nvcc.profile").write_text(_PROFILE)
    for headers in sorted(site.glob("*/nvidia/*/include")):
        shutil.copytree(headers, folder / "include", dirs_exist_ok=True)
    shutil.copy2(next(debian_package("libnvidia-ml-dev", "trixie", "non-free").rglob("nvml.h")), folder / "include")
    for part in ("include", "libdevice"):
        shutil.copytree(site / "nvidia-cuda-nvcc-cu12/nvidia/cuda_nvcc/nvvm" / part, folder / "nvvm" / part)
    for library in sorted(site.glob("*/nvidia/*/lib/*.so*")):
        _link(folder / "lib64" / library.name, library)
        _link(folder / "lib64" / f"{library.name.partition('.so')[0]}.so", library)
    for archive in libraries.glob("*.a"):
        shutil.copy2(archive, folder / "lib64")
    shutil.copy2(libraries / "stubs/libcuda.so", folder / "lib64/stubs")
    return folder


def _link(link: Path, target: Path) -> None:
    if not link.exists():
        link.symlink_to(target)
