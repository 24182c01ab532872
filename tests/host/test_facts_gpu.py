"""Facts of fake hosts: CUDA toolkits and drivers, ROCm, libraries of which there are several."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from axletree.host.facts import nvidia_driver
from axletree.host.facts.access import Answer
from axletree.host.facts.cuda import cuda_facts, find_toolkits
from axletree.host.facts.loader import Loader
from axletree.host.facts.math import library_facts
from axletree.host.facts.nvidia_driver import driver_facts
from axletree.host.facts.rocm import find_roots, gfx_name, kfd_gpus, rocm_facts
from axletree.host.facts.survey import LibraryFolder, Survey, wheel_places
from support.fake_host import FakeHost

if TYPE_CHECKING:
    from pathlib import Path

    from axletree.check.host.gpu import CudaDriver

KFD = "/sys/class/kfd/kfd/topology/nodes"
SITE = "/venv/lib/python3.12/site-packages"


@pytest.fixture
def host(tmp_path: Path) -> FakeHost:
    return FakeHost(tmp_path / "root")


def survey(host: FakeHost, *places: LibraryFolder) -> Survey:
    return Survey(access=host.access, loader=Loader(access=host.access), places=places)


def toolkit(host: FakeHost, version: str, *, compiler: bool = True) -> str:
    root = f"/usr/local/cuda-{version}"
    major, minor = version.split(".")
    host.write(f"{root}/include/cuda.h", f"#define CUDA_VERSION {int(major) * 1000 + int(minor) * 10}\n")
    host.write(f"{root}/include/cuda_runtime.h")
    host.write(f"{root}/include/cublas_v2.h")
    host.write(
        f"{root}/include/crt/host_config.h", "#if __GNUC__ > 12\n#error\n#endif\n#if (__clang_major__ >= 16) || 0\n"
    )
    host.write(f"{root}/lib64/libcudart.so.{version}.140")
    host.write(f"{root}/lib64/stubs/libcuda.so")
    if compiler:
        answers: dict[str, str | Answer] = {
            "--version": f"Cuda compilation tools, release {version}, V{version}.140\n",
            "--list-gpu-arch": "compute_70\ncompute_90\n",
            "--dryrun": Answer(code=0, err=f"#$ _HERE_={root}/bin\n#$ TOP={root}/bin/..\n"),
        }
        host.program(f"{root}/bin/nvcc", answers)
    return root


def test_toolkits_in_the_order_in_which_builds_find_them(host: FakeHost) -> None:
    for version in ("11.8", "12.2", "13.0"):
        toolkit(host, version)
    host.link("/usr/local/cuda", "cuda-13.0")
    host.environ["CUDA_HOME"] = "/usr/local/cuda-12.2"
    host.environ["PATH"] = "/usr/local/cuda-11.8/bin:/usr/bin"
    found = find_toolkits(host.access, ())
    assert [kit.real for kit in found] == [f"/usr/local/cuda-{version}" for version in ("12.2", "11.8", "13.0")]
    assert [kit.found_by[0] for kit in found] == ["CUDA_HOME", "PATH", "/usr/local/cuda"]
    first = found[0]
    assert (first.version, first.header_version, first.archs) == ("12.2.140", "12.2", ("compute_70", "compute_90"))
    assert (first.gcc_most, first.clang_most, first.cudart, first.stub) == (12, 15, True, True)
    assert "cublas" not in (first.missing or ())
    assert "cusparse" in (first.missing or ())


def test_a_wrapper_on_path_leads_to_its_toolkit(host: FakeHost) -> None:
    root = toolkit(host, "12.4")
    host.program("/usr/bin/nvcc", {"--dryrun": Answer(code=0, err=f"#$ TOP={root}/bin/..\n")})
    (found,) = find_toolkits(host.access, ())
    assert (found.root, found.found_by) == (root, ("PATH", "/usr/local"))


def test_a_toolkit_without_compiler_and_one_of_wheels(host: FakeHost) -> None:
    toolkit(host, "12.1", compiler=False)
    host.write(
        "/usr/local/cuda-12.1/version.json", json.dumps({"cuda": {"name": "CUDA SDK", "version": "12.1.20230414"}})
    )
    host.write(f"{SITE}/nvidia/cu13/include/cuda.h", "#define CUDA_VERSION 13000\n")
    first, second = find_toolkits(host.access, (SITE,))
    assert (first.version, first.nvcc) == ("12.1.20230414", "none")
    assert (second.version, second.found_by) == ("13.0", ("wheel",))


def test_a_distributions_toolkit_has_its_headers_among_all_others(host: FakeHost) -> None:
    root = "/usr/lib/nvidia-cuda-toolkit"
    host.program("/usr/bin/nvcc", {"--dryrun": Answer(code=0, err=f"#$ TOP={root}/bin/..\n")})
    host.program(f"{root}/bin/nvcc", {"--version": "Cuda compilation tools, release 12.0, V12.0.140\n"})
    for name in ("cuda_runtime.h", "cublas_v2.h", "cufft.h"):
        host.write(f"/usr/include/{name}")
    host.write("/usr/include/cuda.h", "#define CUDA_VERSION 12000\n")
    host.write("/usr/lib/x86_64-linux-gnu/libcudart.so.12")
    host.write("/usr/lib/x86_64-linux-gnu/stubs/libcuda.so")
    (found,) = find_toolkits(host.access, ())
    assert (found.version, found.header_version, found.cudart, found.stub) == ("12.0.140", "12.0", True, True)
    assert not {"cudart", "cublas", "cufft"} & set(found.missing or ())


def test_libraries_and_headers_tell_versions(host: FakeHost) -> None:
    toolkit(host, "12.4")
    host.write("/usr/local/cuda-12.4/lib64/libcudnn.so.9.1.0")
    host.link("/usr/local/cuda-12.4/lib64/libcudnn.so.9", "libcudnn.so.9.1.0")
    host.write(
        "/usr/include/cudnn_version.h", "#define CUDNN_MAJOR 8\n#define CUDNN_MINOR 9\n#define CUDNN_PATCHLEVEL 7\n"
    )
    host.write(f"{SITE}/nvidia/nccl/lib/libnccl.so.2")
    host.write(f"{SITE}/nvidia_nccl_cu12-2.27.3.dist-info/METADATA")
    places = (
        LibraryFolder(folder="/usr/local/cuda-12.4/lib64", origin="cuda toolkit"),
        *wheel_places(host.access, [SITE]),
    )
    found = cuda_facts(
        host.access,
        Loader(access=host.access),
        survey(host, *places),
        find_toolkits(host.access, ()),
        ("/usr/include",),
    )
    versions = {library.name: (library.version, library.origin) for library in found.libraries or ()}
    assert versions["cudnn"] == ("9.1.0", "cuda toolkit")
    assert versions["nccl"] == ("2.27.3", "wheel")
    assert found.headers == {"cudnn": "8.9.7"}


def driver(host: FakeHost, nvml: str | Answer, cuda: str | Answer) -> CudaDriver:
    answers = [Answer(code=0, out=each) if isinstance(each, str) else each for each in (nvml, cuda)]

    class Driven(FakeHost):
        """The scripts are told apart by the library that they load."""

        def run(self, command: object, **options: object) -> Answer:
            del options
            text = str(command)
            return answers["libcuda.so.1" in text] if "ctypes" in text else Answer(code=None, why="gone")

    host.__class__ = Driven
    return driver_facts(host.access, Loader(access=host.access))


GPU = {"name": "NVIDIA A100", "capability": "8.0", "memory": 42949672960, "mig": False}


def test_a_driver_that_works(host: FakeHost) -> None:
    host.write(
        "/proc/driver/nvidia/version",
        "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.95.05  Release Build\n",
    )
    host.write("/dev/nvidia0")
    host.write("/dev/nvidiactl")
    found = driver(
        host,
        json.dumps({"driver": "580.95.05", "cuda": 13000, "gpus": [GPU]}),
        json.dumps(
            {"path": "/usr/lib/libcuda.so.580.95.05", "cuda": 13000, "init": 0, "gpus": [GPU | {"integrated": False}]}
        ),
    )
    assert (found.module, found.open_module, found.nvml, found.cuda, found.init) == (
        "580.95.05",
        True,
        "580.95.05",
        "13.0",
        0,
    )
    assert found.nodes == {"/dev/nvidia0": True, "/dev/nvidiactl": True}
    (gpu,) = found.gpus or ()
    assert (gpu.name, gpu.capability, gpu.memory, gpu.integrated) == ("NVIDIA A100", "8.0", 40 << 30, False)
    assert found.libcuda_version == "580.95.05"


def test_the_three_faces_of_a_driver_that_does_not_fit(host: FakeHost) -> None:
    host.write(
        "/proc/driver/nvidia/version", "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.183.01  Sun May 12\n"
    )
    host.write("/usr/local/cuda-12.4/compat/libcuda.so.550.54.15")
    host.link("/usr/local/cuda-12.4/compat/libcuda.so.1", "libcuda.so.550.54.15")
    host.environ["LD_LIBRARY_PATH"] = "/usr/local/cuda-12.4/compat"
    found = driver(
        host,
        json.dumps({"error": "Driver/library version mismatch"}),
        json.dumps({"path": "/usr/local/cuda-12.4/compat/libcuda.so.1", "cuda": 12040, "init": 804, "gpus": []}),
    )
    assert (found.module, found.open_module, found.init, found.cuda) == ("535.183.01", False, 804, "12.4")
    assert (found.nvml, found.nvml_error) == (None, "Driver/library version mismatch")
    assert found.libcuda_version == "550.54.15"
    assert found.gpus is None
    cuda = cuda_facts(host.access, Loader(access=host.access), survey(host), (), ())
    (compat,) = cuda.compat or ()
    assert (compat.version, compat.used) == ("550.54.15", True)


def test_a_driver_that_hangs_leaves_the_rest(host: FakeHost) -> None:
    found = driver(host, Answer(code=None, why="no response within 30 s"), Answer(code=-11, err=""))
    assert (found.module, found.nvml, found.init, found.gpus) == ("none", None, None, None)
    assert "no response within 30 s" in found.sources["nvml"]
    assert "exit code -11" in found.sources["init"]


def node(host: FakeHost, number: int, properties: str, *banks: tuple[int, int]) -> None:
    host.write(f"{KFD}/{number}/properties", properties)
    for index, (kind, size) in enumerate(banks):
        host.write(f"{KFD}/{number}/mem_banks/{index}/properties", f"heap_type {kind}\nsize_in_bytes {size}\n")


def test_gpus_as_the_kernel_lists_them(host: FakeHost) -> None:
    node(host, 0, "cpu_cores_count 16\nsimd_count 0\nvendor_id 0\n")
    node(
        host,
        1,
        "cpu_cores_count 0\nsimd_count 4\nvendor_id 4098\ndevice_id 5710\ngfx_target_version 100306\n",
        (1, 512 << 20),
    )
    node(host, 2, "simd_count 192\nvendor_id 4098\ndevice_id 29772\ngfx_target_version 110000\n", (1, 24 << 30))
    node(host, 10, "simd_count 1216\nvendor_id 4098\ngfx_target_version 130000\n")
    integrated, card, unknown = kfd_gpus(host.access)
    assert (integrated.gfx, integrated.integrated, integrated.memory) == ("gfx1036", True, 512 << 20)
    assert (card.node, card.gfx, card.integrated, card.memory, card.device) == (2, "gfx1100", False, 24 << 30, "0x744c")
    assert (unknown.node, unknown.gfx, unknown.memory) == (10, "gfx1300", None)


@pytest.mark.parametrize(
    ("number", "name"),
    [
        (90010, "gfx90a"),
        (90402, "gfx942"),
        (90500, "gfx950"),
        (110501, "gfx1151"),
        (120001, "gfx1201"),
        (90012, "gfx90c"),
    ],
)
def test_names_of_targets(number: int, name: str) -> None:
    assert gfx_name(number) == name


def test_rocm_roots(host: FakeHost) -> None:
    for version in ("6.2.0", "6.4.1"):
        root = f"/opt/rocm-{version}"
        host.write(f"{root}/.info/version", f"{version}-120\n")
        major, minor, patch = version.split(".")
        numbers = {"MAJOR": major, "MINOR": minor, "PATCH": f"4{patch}"}
        macros = "".join(f"#define HIP_VERSION_{name} {number}\n" for name, number in numbers.items())
        host.write(f"{root}/include/hip/hip_version.h", macros)
        host.write(f"{root}/amdgcn/bitcode/ocml.bc")
        host.program(f"{root}/bin/hipcc")
    host.link("/opt/rocm", "rocm-6.4.1")
    host.environ["ROCM_PATH"] = "/opt/rocm-6.2.0"
    first, second = find_roots(host.access, ())
    assert (first.version, first.found_by, first.hip_version) == ("6.2.0", ("ROCM_PATH", "/opt"), "6.2.40")
    assert (second.root, second.version, second.found_by) == ("/opt/rocm", "6.4.1", ("/opt/rocm", "/opt"))
    assert first.device_libraries == ("/opt/rocm-6.2.0/amdgcn/bitcode",)
    assert "rocblas" in (first.missing or ())


def test_the_vendors_programs_are_asked_unless_that_unpacks_gigabytes(host: FakeHost) -> None:
    host.program("/usr/bin/rocm_agent_enumerator", {"": "gfx000\ngfx1036\ngfx1100\n"})
    host.write("/usr/bin/offload-arch", "#!/venv/bin/python\nfrom rocm_sdk import main\n").chmod(0o755)
    host.program("/usr/bin/amdgpu-arch", {"": "gfx1036\ngfx90a:sramecc+:xnack-\n"})
    host.write("/dev/dxg")
    found = rocm_facts(host.access, survey(host), ())
    assert found.agents == ("gfx1036", "gfx1100")
    assert found.offload_archs == ("gfx1036", "gfx90a:sramecc+:xnack-")
    assert (found.dxg, found.kfd, found.gpus) == (True, None, None)
    assert "/usr/bin/offload-arch" not in host.asked


@pytest.fixture
def several(host: FakeHost, tmp_path: Path) -> FakeHost:
    """A host with two real libraries of one SONAME, and one that is a link to the first."""
    if shutil.which("cc") is None:
        pytest.skip("no cc")
    source = tmp_path / "empty.c"
    for folder, text in (("usr/lib", "int one;"), ("opt/lib", "int one, two[9999] = {1};")):
        source.write_text(text)
        (host.root / folder).mkdir(parents=True, exist_ok=True)
        target = host.root / folder / "libgomp.so.1.0.0"
        subprocess.run(["cc", "-shared", "-Wl,-soname,libgomp.so.1", "-o", target, source], check=True)
        host.link(f"{folder}/libgomp.so.1", "libgomp.so.1.0.0")
    host.link("usr/lib64/libgomp.so.1", "../lib/libgomp.so.1.0.0")
    host.environ["LD_LIBRARY_PATH"] = "/opt/lib:/gone"
    return host


def test_copies_of_a_library_in_the_loaders_order(several: FakeHost) -> None:
    found = library_facts(several.access, Loader(access=several.access), survey(several), ())
    (copies,) = found.copies or ()
    assert copies.soname == "libgomp.so.1"
    assert [library.origin for library in copies.libraries] == ["LD_LIBRARY_PATH", "default folder"]
    assert copies.differ is True
    assert found.search_path_missing == ("/gone",)
    assert [library.soname for library in found.openmp or ()] == ["libgomp.so.1", "libgomp.so.1"]


def test_one_file_under_two_names_is_no_copy(several: FakeHost) -> None:
    del several.environ["LD_LIBRARY_PATH"]
    found = library_facts(several.access, Loader(access=several.access), survey(several), ())
    assert found.copies == ()


def test_math_libraries_and_their_headers(host: FakeHost) -> None:
    host.write("/opt/intel/oneapi/mkl/latest/lib/libmkl_rt.so.2")
    host.write("/opt/intel/oneapi/mkl/latest/include/mkl.h")
    host.write("/usr/lib/libopenblas.so.0")
    host.write("/usr/lib/libopenblas.a")
    host.write("/usr/include/openblas_config.h")
    places = [LibraryFolder(folder="/opt/intel/oneapi/mkl/latest/lib", origin="MKLROOT")]
    found = library_facts(host.access, Loader(access=host.access), survey(host, *places), ["/usr/include"])
    told = {library.name: (library.headers, library.static, library.origin) for library in found.math or ()}
    assert told["mkl_rt"] == ("/opt/intel/oneapi/mkl/latest/include", False, "MKLROOT")
    assert told["openblas"] == ("/usr/include", True, "default folder")


def test_the_scripts_that_ask_the_driver_run_without_one() -> None:
    """They answer in JSON whatever there is: no library, no device."""
    for script in (nvidia_driver._NVML, nvidia_driver._CUDA):
        done = subprocess.run([sys.executable, "-I", "-S", "-c", script], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        assert isinstance(json.loads(done.stdout), dict)


def test_stubs_are_no_copies_but_where_the_loader_would_take_them(several: FakeHost) -> None:
    shutil.copytree(several.root / "opt/lib", several.root / "opt/stubs", symlinks=True)
    del several.environ["LD_LIBRARY_PATH"]
    place = LibraryFolder(folder="/opt/stubs", origin="compiler")
    assert library_facts(several.access, Loader(access=several.access), survey(several, place), ()).copies == ()
    several.environ["LD_LIBRARY_PATH"] = "/opt/stubs"
    (copies,) = library_facts(several.access, Loader(access=several.access), survey(several), ()).copies or ()
    assert copies.libraries[0].path == "/opt/stubs/libgomp.so.1"
    (several.root / "opt/stubs/libgomp.so.1").rename(several.root / "opt/stubs/libgomp.so")
    assert library_facts(several.access, Loader(access=several.access), survey(several), ()).copies == ()
