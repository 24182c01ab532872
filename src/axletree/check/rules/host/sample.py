"""A healthy host for the cases of the rules about hosts, and what a case changes about it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from axletree.backends.bounds import Bounds, CudaBounds, TorchBounds
from axletree.check.host.examined import Examined, Wish
from axletree.check.host.facts import HostFacts
from axletree.check.host.gpu import AmdGpu, Cuda, CudaDriver, CudaToolkit, NvidiaGpu, Rocm, RocmRoot
from axletree.check.host.libraries import Libraries
from axletree.check.host.part import UNLIMITED, HostLibrary
from axletree.check.host.python import Conda, Git, Interpreter, Packaging, Pythons, Torch
from axletree.check.host.system import Cgroup, Cpu, Disk, Limit, Memory, System
from axletree.check.host.toolchain import BuildTool, Compiler, Runtime, Toolchain
from axletree.check.host.variables import Variable

if TYPE_CHECKING:
    from axletree.check.host.part import FactGroup

GIB = 1 << 30
BOUNDS = Bounds(
    cuda={
        "12.2": CudaBounds(gcc=(6, 13), clang=(7, 16), driver="525.60.13", archs=(50, 90)),
        "13.0": CudaBounds(gcc=(6, 16), clang=(7, 21), driver="580.65.06", archs=(75, 121)),
    },
    torch={
        "2.0": TorchBounds(cmake=("3.18", "4.0"), gcc="9.3"),
        "2.8": TorchBounds(cmake=("3.27", ""), gcc="9.3"),
    },
)
"""Two releases of each, much shortened."""

RUNTIME = Runtime(path="/usr/lib/x86_64-linux-gnu/libstdc++.so.6", glibcxx="3.4.32", cxxabi="1.3.14")
GCC = Compiler(
    name="c++",
    path="/usr/bin/c++",
    kind="gcc",
    language="c++",
    version="13.2.0",
    sysroot="/",
    standards=("c++17", "c++20"),
    runtime=RUNTIME,
    works=True,
    openmp=True,
)
NVCC = Compiler(
    name="nvcc",
    path="/usr/local/cuda/bin/nvcc",
    kind="nvcc",
    language="cuda",
    version="13.0.88",
    works=True,
    host_compiler="/usr/bin/gcc",
    host_kind="gcc",
    host_version="13.2.0",
)
TOOLKIT = CudaToolkit(
    root="/usr/local/cuda",
    real="/usr/local/cuda-13.0",
    found_by=("PATH",),
    version="13.0",
    nvcc="/usr/local/cuda/bin/nvcc",
    nvcc_version="13.0.88",
    header_version="13.0",
    archs=("compute_75", "compute_80", "compute_90", "compute_100", "compute_120"),
    gcc_most=15,
    clang_most=20,
    cudart=True,
    missing=(),
)
DRIVER = CudaDriver(
    module="580.95.05",
    nvml="580.95.05",
    cuda="13.0",
    libcuda="/usr/lib/x86_64-linux-gnu/libcuda.so.1",
    libcuda_version="580.95.05",
    init=0,
    nodes={"/dev/nvidia0": True, "/dev/nvidiactl": True, "/dev/nvidia-uvm": True},
    gpus=(NvidiaGpu(name="NVIDIA H100 80GB HBM3", capability="9.0", memory=80 * GIB),),
)
PYTHON = Interpreter(
    names=("python3", "python"),
    path="/home/.venv/bin/python3",
    version="3.12.8",
    virtual=True,
    externally_managed=False,
    headers=True,
    isolated=True,
    packages={"numpy": "2.1.0"},
)
DISCRETE = AmdGpu(node=1, gfx="gfx1100", memory=24 * GIB, integrated=False)
INTEGRATED = AmdGpu(node=2, gfx="gfx1036", memory=512 << 20, integrated=True)
ROCM = Rocm(
    roots=(RocmRoot(root="/opt/rocm", real="/opt/rocm-7.1.0", found_by=("/opt/rocm",), version="7.1.0", missing=()),),
    gpus=(DISCRETE,),
    kfd=True,
    render_nodes={"/dev/dri/renderD128": True},
)
CUDNN = HostLibrary(name="cudnn", path="/usr/local/cuda/lib64/libcudnn.so.9", soname="libcudnn.so.9", version="9.13.0")
HEALTHY = HostFacts(
    system=System(
        machine="x86_64",
        kernel="6.8.0",
        libc="glibc",
        libc_version="2.39",
        container="none",
        virtual="none",
        wsl=0,
        root=False,
        namespaces=True,
        charmap="UTF-8",
        utf8_locale="C.UTF-8",
        clock_skew=0.0,
        open_files=Limit(soft=65536, hard=65536),
        processes=Limit(soft=65536, hard=65536),
        stack=Limit(soft=8 << 20, hard=UNLIMITED),
        address_space=Limit(soft=UNLIMITED, hard=UNLIMITED),
        file_size=Limit(soft=UNLIMITED, hard=UNLIMITED),
    ),
    cpu=Cpu(model="demo", logical=16, affinity=16, cores=16, level="x86-64-v3"),
    memory=Memory(
        total=64 * GIB,
        available=60 * GIB,
        swap_total=8 * GIB,
        limit=UNLIMITED,
        overcommit=0,
        oom_kills=0,
        cgroup=Cgroup(version="2", memory_controller="2", may_create=True, may_limit_memory=True),
    ),
    disks=(
        Disk(
            uses={"tmp": "~/tmp", "store": "~/.cache/axletree", "home": "~", "cwd": "~/project"},
            mount="/",
            filesystem="ext4",
            network=False,
            size=500 * GIB,
            free=300 * GIB,
            inodes=1 << 24,
            inodes_free=1 << 23,
            read_only=False,
            noexec=False,
            writable=True,
            executable=True,
            hardlinks=True,
            symlinks=True,
            reflinks=False,
            case_sensitive=True,
        ),
    ),
    toolchain=Toolchain(
        compilers=(GCC,),
        build_tools=(
            BuildTool(name="cmake", path="/usr/bin/cmake", version="3.31.0"),
            BuildTool(name="ninja", path="/usr/bin/ninja", version="1.13.0", jobserver_fifo=True, jobserver_pipe=True),
            BuildTool(name="make", path="/usr/bin/make", version="4.4.1", jobserver_fifo=True, jobserver_pipe=True),
        ),
        runtime=RUNTIME,
    ),
    python=Pythons(
        interpreters=(PYTHON,),
        venv="~/.venv",
        venv_on_path=True,
        conda=Conda(prefix="none", on_path=()),
        packaging=Packaging(pip_python="3.12", index_url="https://example.org/simple"),
    ),
    git=Git(path="/usr/bin/git", version="2.43.0", lfs="3.4.1", config={}),
    cuda=Cuda(toolkits=(), driver=None, compat=(), libraries=()),
    rocm=Rocm(roots=(), gpus=()),
    libraries=Libraries(openmp=(), copies=(), preload=(), search_path=(), search_path_missing=()),
    variables=(),
)
"""Nothing to say about it."""
WITH_CUDA = msgspec.structs.replace(
    HEALTHY,
    toolchain=msgspec.structs.replace(HEALTHY.toolchain, compilers=(GCC, NVCC)),
    cuda=Cuda(toolkits=(TOOLKIT,), driver=DRIVER, compat=(), libraries=(CUDNN,)),
)
WITH_ROCM = msgspec.structs.replace(HEALTHY, rocm=ROCM)
FOR_CUDA = Wish(variant="py312-cu130", cuda="13.0", archs=("8.0", "9.0"))
FOR_ROCM = Wish(variant="py312-rocm7.1", rocm="7.1", archs=("gfx1100",))


def on(host: HostFacts = HEALTHY, wish: Wish | None = None, **groups: dict[str, object]) -> Examined:
    """A host with some facts of some groups changed: ``on(memory={"swap_total": 0})``."""
    changed: dict[str, FactGroup] = {
        name: msgspec.structs.replace(getattr(host, name), **fields) for name, fields in groups.items()
    }
    return Examined(host=msgspec.structs.replace(host, **changed), wish=wish or Wish(), bounds=BOUNDS)


def having(*variables: tuple[str, str], host: HostFacts = HEALTHY, wish: Wish | None = None) -> Examined:
    """A host on which some variables are set."""
    made = tuple(Variable(name=name, value=value, group="demo") for name, value in variables)
    return Examined(host=msgspec.structs.replace(host, variables=made), wish=wish or Wish(), bounds=BOUNDS)


def with_torch(host: HostFacts = HEALTHY, *, version: str, cuda: str) -> Examined:
    """A host whose Python has torch."""
    torch = Torch(path="~/.venv/lib/python3.12/site-packages/torch", version=version, cuda=cuda)
    python = msgspec.structs.replace(PYTHON, torch=torch)
    return on(host, python={"interpreters": (python,)})
