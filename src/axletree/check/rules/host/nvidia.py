"""Rules about NVIDIA's driver: does it serve what is built, and do its parts fit?"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from axletree.backends.bounds import numbers
from axletree.check.engine import Found, Rule, fires, silent
from axletree.check.host.gpu import CompatPackage, NvidiaGpu
from axletree.check.rules.host.cuda import taken_toolkit
from axletree.check.rules.host.sample import DRIVER, FOR_CUDA, WITH_CUDA, on

if TYPE_CHECKING:
    from collections.abc import Iterator

    from axletree.check.host.examined import Examined

_FORWARD, _MISMATCH = 804, 803
_CONTAINERS = frozenset({"docker", "podman", "kubernetes", "container", "lxc", "apptainer"})
_LOAD_AGAIN = (
    "reboot; or, if nothing uses the GPU, reload the driver:\n$ sudo rmmod nvidia_uvm nvidia_drm nvidia_modeset "
    "nvidia && sudo modprobe nvidia nvidia_uvm"
)


def _module(facts: Examined) -> str | None:
    driver = facts.host.cuda.driver
    return driver.module if driver is not None and driver.module != "none" else None


def _too_old(facts: Examined) -> Iterator[Found]:
    driver, module = facts.host.cuda.driver, _module(facts)
    toolkit = taken_toolkit(facts)
    wanted = facts.wish.cuda or (toolkit.version if toolkit is not None else None)
    bounds = facts.bounds.of_cuda(wanted) if wanted else None
    if driver is None or module is None or wanted is None or bounds is None:
        return
    served = driver.cuda if driver.cuda not in (None, "none") else None
    by_compat = any(each.used for each in facts.host.cuda.compat or ())
    if by_compat or numbers(module) >= numbers(bounds.driver):
        return
    message = (
        f"driver {module}{f' (up to CUDA {served})' if served else ''} is too old: "
        f"running CUDA {wanted} code needs driver {bounds.driver} or later"
    )
    yield Found("driver", message, fix=_newer(facts, bounds.driver))


def _newer(facts: Examined, driver: str) -> str:
    ways = [
        f"update the driver to {driver} or later",
        "build and install packages for a CUDA release that the driver supports",
    ]
    if any("GeForce" not in (gpu.name or "GeForce") for gpu in (facts.host.cuda.driver or DRIVER).gpus or ()):
        ways.insert(1, "on data-center GPUs, install cuda-compat and add its folder to LD_LIBRARY_PATH")
    return "\nor ".join(ways)


def _forward(facts: Examined) -> Iterator[Found]:
    """Error 804 has three causes; what lies on the host tells them apart."""
    driver = facts.host.cuda.driver
    if driver is None or driver.init != _FORWARD:
        return
    compat = next((each for each in facts.host.cuda.compat or () if each.used), None)
    library, module = driver.libcuda_version, _module(facts)
    names = ", ".join(sorted({gpu.name for gpu in driver.gpus or () if gpu.name})) or "this GPU"
    if compat is not None:
        message = (
            f"the loader uses libcuda {compat.version or ''} from {compat.path}, NVIDIA's forward compatibility "
            f"package, which does not support {names}"
        )
        fix = (
            f"remove {compat.path} from LD_LIBRARY_PATH and /etc/ld.so.conf.d, use an image with an older CUDA "
            "release, or update the driver"
        )
    elif library and module and library != module:
        message = (
            f"libcuda is from driver {library}, but the kernel still runs {module}: the driver was updated but "
            "not reloaded"
        )
        fix = _LOAD_AGAIN
    else:
        place = "in the container" if facts.host.system.container in _CONTAINERS else "on this host"
        message = (
            f"libcuda ({driver.libcuda or 'not found'}) and the kernel's driver {module or ''} match, so the driver "
            f"files {place} are incomplete"
        )
        fix = (
            "reinstall NVIDIA's container toolkit on the host, and restart the container:\n"
            "$ sudo apt-get install --reinstall nvidia-container-toolkit && sudo systemctl restart docker\n"
            "then check whether the image contains its own libcuda:\n$ ldconfig -p | grep libcuda"
        )
    yield Found(driver.libcuda or "libcuda.so.1", message.replace("  ", " "), fix=fix)


def _mismatch(facts: Examined) -> Iterator[Found]:
    driver = facts.host.cuda.driver
    if driver is None or driver.init == _FORWARD:
        return
    library, module = driver.libcuda_version, _module(facts)
    compat = next((each for each in facts.host.cuda.compat or () if each.used), None)
    refused = driver.init == _MISMATCH or "mismatch" in (driver.nvml_error or "")
    differ = bool(library and module and library != module)
    if compat is not None and refused:
        message = f"the loader uses libcuda {library} from {compat.path}, but the kernel runs driver {module}"
        fix = f"remove {compat.path} from LD_LIBRARY_PATH: it is only for kernels with an older driver"
        yield Found(compat.path, message, fix=fix)
    elif refused or (differ and compat is None):
        message = f"the kernel runs driver {module}, but the libraries are from driver {library}"
        yield Found("driver", message, fix=_LOAD_AGAIN)


def _no_driver(facts: Examined) -> Iterator[Found]:
    driver = facts.host.cuda.driver
    if facts.wish.cuda is None or driver is None or driver.module != "none" or facts.host.system.wsl:
        return
    message = "no NVIDIA driver is loaded: CUDA code compiles, but tests that need a GPU cannot run"
    yield Found("driver", message)


def _nodes(facts: Examined) -> Iterator[Found]:
    driver = facts.host.cuda.driver
    closed = [node for node, open_ in (driver.nodes or {}).items() if not open_] if driver is not None else []
    if closed:
        yield Found(closed[0], f"this user is not allowed to open {', '.join(closed)}")
    elif driver is not None and driver.nodes == {} and _module(facts) and facts.host.system.container in _CONTAINERS:
        message = "the host has a driver, but this container has no /dev/nvidia* because it was started without GPUs"
        yield Found("/dev/nvidia0", message, fix="$ docker run --gpus all ...")


def _hidden(facts: Examined) -> Iterator[Found]:
    value = facts.host.cuda.hidden
    if value is not None and value.strip() in ("", "-1", "none", "NoDevFiles") and _module(facts):
        yield Found("CUDA_VISIBLE_DEVICES", f"CUDA_VISIBLE_DEVICES is {value!r}, which hides every GPU")


def _stub(facts: Examined) -> Iterator[Found]:
    driver = facts.host.cuda.driver
    if driver is not None and "/stubs/" in f"{driver.libcuda or ''}/":
        yield Found(driver.libcuda or "", "the loader uses the libcuda stub, which is only for linking")


def _uncovered(facts: Examined) -> Iterator[Found]:
    driver = facts.host.cuda.driver
    archs = {arch.rstrip("af") for arch in facts.wish.archs if arch[:1].isdigit()}
    for gpu in (driver.gpus or ()) if driver is not None and archs else ():
        if gpu.capability and not any(_runs(arch, gpu.capability) for arch in archs):
            message = (
                f"{gpu.name} has compute capability {gpu.capability}, but the build compiles code only for "
                f"{', '.join(sorted(archs, key=numbers))}"
            )
            yield Found(gpu.name or "GPU", message, fix=f"add {gpu.capability} to TORCH_CUDA_ARCH_LIST")


def _runs(arch: str, capability: str) -> bool:
    """Code for a generation runs on later ones of the same major number."""
    return numbers(arch)[:1] == numbers(capability)[:1] and numbers(arch) <= numbers(capability)


def _driver(**fields: object) -> dict[str, object]:
    return {"driver": msgspec.structs.replace(DRIVER, **fields)}


_GEFORCE = (NvidiaGpu(name="NVIDIA GeForce RTX 3060", capability="8.6"),)
_COMPAT = (CompatPackage(path="/usr/local/cuda-13.0/compat", version="580.95.05", used=True),)

NVIDIA_RULES: tuple[Rule[Examined], ...] = (
    Rule(
        id="cuda/error-804",
        severity="error",
        title="CUDA fails to initialize with error 804 (forward compatibility)",
        references=("DeepVAC/TorchPod#43", 'NVIDIA, CUDA Compatibility, "Forward Compatibility"'),
        why="A user-mode driver newer than the kernel's works only on data-center GPUs. There are three possible "
        "causes: a compat package in an image, a driver that was updated but not reloaded, or a broken "
        "container toolkit.",
        fix="find out which package or image libcuda.so.1 comes from",
        check=_forward,
        cases=lambda: (
            fires(
                "a CUDA image on a GeForce GPU",
                on(WITH_CUDA, cuda={**_driver(init=804, module="535.86.05", gpus=_GEFORCE), "compat": _COMPAT}),
            ),
            fires(
                "a driver that was updated without a reboot", on(WITH_CUDA, cuda=_driver(init=804, module="535.86.05"))
            ),
            fires(
                "a container toolkit that provides only some files",
                on(WITH_CUDA, cuda=_driver(init=804), system={"container": "docker"}),
            ),
            silent("a working driver", on(WITH_CUDA)),
        ),
    ),
    Rule(
        id="cuda/driver-mismatch",
        severity="error",
        title="The driver's libraries and kernel module have different versions",
        references=("NVIDIA, CUDA Driver API, cudaErrorSystemDriverMismatch",),
        why="CUDA fails to initialize with error 803, `Driver/library version mismatch`.",
        fix=_LOAD_AGAIN,
        check=_mismatch,
        cases=lambda: (
            fires("a different libcuda version", on(WITH_CUDA, cuda=_driver(module="570.86.15"))),
            fires(
                "a mismatch reported by NVML", on(WITH_CUDA, cuda=_driver(nvml_error="Driver/library version mismatch"))
            ),
            silent(
                "a compat package used on purpose",
                on(WITH_CUDA, cuda={**_driver(module="535.86.05"), "compat": _COMPAT}),
            ),
            fires(
                "a compat package in an image, older than the driver",
                on(
                    WITH_CUDA,
                    cuda={**_driver(init=803, module="580.159.04", libcuda_version="580.95.05"), "compat": _COMPAT},
                ),
            ),
            silent("the same version", on(WITH_CUDA)),
        ),
    ),
    Rule(
        id="cuda/driver-too-old",
        severity="warning",
        title="The driver is too old for the build's CUDA release",
        references=('NVIDIA, CUDA Compatibility, "Minor Version Compatibility"',),
        why="The code compiles, but fails at the first call with `CUDA driver version is insufficient for CUDA "
        "runtime version`.",
        fix="update the driver",
        check=_too_old,
        cases=lambda: (
            fires(
                "a CUDA 11 driver with a CUDA 13 toolkit",
                on(WITH_CUDA, FOR_CUDA, cuda=_driver(module="470.256.02", libcuda_version="470.256.02", cuda="11.4")),
            ),
            silent("compatible minor releases", on(WITH_CUDA, FOR_CUDA, cuda=_driver(module="580.65.06"))),
        ),
    ),
    Rule(
        id="cuda/driver-missing",
        severity="info",
        title="No NVIDIA driver is loaded",
        references=("NVIDIA, CUDA Installation Guide for Linux",),
        why="Compiling does not need a GPU, but tests on a GPU and builds that detect one do.",
        fix=(
            "to build anyway, set TORCH_CUDA_ARCH_LIST, which is otherwise detected from the GPU; run GPU "
            "tests on a machine with a GPU"
        ),
        check=_no_driver,
        cases=lambda: (
            fires("a build machine without a driver", on(WITH_CUDA, FOR_CUDA, cuda=_driver(module="none"))),
            silent("a driver", on(WITH_CUDA, FOR_CUDA)),
        ),
    ),
    Rule(
        id="cuda/device-closed",
        severity="warning",
        title="The GPU's device files cannot be opened",
        references=("NVIDIA Container Toolkit, user guide",),
        why="CUDA reports that there is no GPU although one is present.",
        fix=(
            "add the user to the group that owns the device files (usually video), or start the container with "
            "--gpus all"
        ),
        check=_nodes,
        cases=lambda: (
            fires("no permission", on(WITH_CUDA, cuda=_driver(nodes={"/dev/nvidia0": False}))),
            fires("a container without GPUs", on(WITH_CUDA, cuda=_driver(nodes={}), system={"container": "docker"})),
            silent("open", on(WITH_CUDA)),
        ),
    ),
    Rule(
        id="cuda/devices-hidden",
        severity="warning",
        title="CUDA_VISIBLE_DEVICES hides every GPU",
        references=("NVIDIA, CUDA C++ Programming Guide, CUDA_VISIBLE_DEVICES",),
        why="torch.cuda.is_available() returns False, and tests that need a GPU are silently skipped.",
        fix="$ unset CUDA_VISIBLE_DEVICES",
        check=_hidden,
        cases=lambda: (
            fires("set to an empty value", on(WITH_CUDA, cuda={"hidden": ""})),
            silent("one visible GPU", on(WITH_CUDA, cuda={"hidden": "0"})),
        ),
    ),
    Rule(
        id="cuda/stub-loaded",
        severity="error",
        title="The loader uses the libcuda stub",
        references=("NVIDIA, CUDA Runtime API, cudaErrorStubLibrary",),
        why="The stub defines every function but implements none of them: CUDA fails with error 34, `CUDA driver "
        "is a stub library`.",
        fix="remove the stubs folder from LD_LIBRARY_PATH; it belongs in LIBRARY_PATH, which the linker reads",
        check=_stub,
        cases=lambda: (
            fires(
                "the stubs folder in LD_LIBRARY_PATH",
                on(WITH_CUDA, cuda=_driver(libcuda="/usr/local/cuda/lib64/stubs/libcuda.so.1")),
            ),
            silent("the driver's own library", on(WITH_CUDA)),
        ),
    ),
    Rule(
        id="cuda/gpu-not-covered",
        severity="warning",
        title="The build has no code for this machine's GPU",
        references=("pytorch/pytorch#31285",),
        why="The built code does not run here and fails with `no kernel image is available for execution on the "
        "device`.",
        fix="add this GPU's architecture to TORCH_CUDA_ARCH_LIST",
        check=_uncovered,
        cases=lambda: (
            fires(
                "a GeForce GTX 1080 with code for 8.0 and 9.0",
                on(
                    WITH_CUDA,
                    FOR_CUDA,
                    cuda=_driver(gpus=(NvidiaGpu(name="NVIDIA GeForce GTX 1080", capability="6.1"),)),
                ),
            ),
            silent("an 8.6 GPU, which runs code for 8.0", on(WITH_CUDA, FOR_CUDA, cuda=_driver(gpus=_GEFORCE))),
        ),
    ),
)
"""Rules about :class:`~axletree.check.host.examined.Examined`: NVIDIA's driver."""
