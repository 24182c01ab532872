"""Rules about CUDA toolkits: which one a build takes, and whether it can make what is wanted."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from axletree.backends.bounds import numbers
from axletree.check.engine import Found, Rule, fires, silent
from axletree.check.rules.host.sample import FOR_CUDA, TOOLKIT, WITH_CUDA, having, on, with_torch

if TYPE_CHECKING:
    from collections.abc import Iterator

    from axletree.check.host.examined import Examined
    from axletree.check.host.gpu import CudaToolkit

_ROOTS = ("CUDA_HOME", "CUDA_PATH", "CUDA_ROOT")


def release_of(version: str | None) -> str | None:
    """``12.4`` of ``12.4.131``."""
    return ".".join(version.split(".")[:2]) if version else None


def taken_toolkit(facts: Examined) -> CudaToolkit | None:
    """The toolkit that a build takes: the first that has a compiler."""
    return next((each for each in facts.host.cuda.toolkits or () if each.nvcc not in (None, "none")), None)


def _missing(facts: Examined) -> Iterator[Found]:
    if facts.wish.cuda is not None and facts.host.cuda.toolkits is not None and taken_toolkit(facts) is None:
        there = "the installed toolkits have no nvcc" if facts.host.cuda.toolkits else "no toolkit is installed"
        message = f"compiling GPU code requires CUDA {facts.wish.cuda}, but {there}"
        evidence = tuple(f"{each.root}: libraries only" for each in facts.host.cuda.toolkits)
        yield Found("CUDA", message, evidence=evidence)


def _another(facts: Examined) -> Iterator[Found]:
    toolkit, wanted = taken_toolkit(facts), facts.wish.cuda
    if toolkit is None or wanted is None or toolkit.version is None or release_of(toolkit.version) == wanted:
        return
    others = [
        each for each in facts.host.cuda.toolkits or () if release_of(each.version) == wanted and each.nvcc != "none"
    ]
    message = f"builds use CUDA {toolkit.version} ({', '.join(toolkit.found_by)}), but CUDA {wanted} is required"
    fix = f"$ export CUDA_HOME={others[0].root} PATH={others[0].root}/bin:$PATH" if others else None
    yield Found(toolkit.root, message, fix=fix)


def _disagree(facts: Examined) -> Iterator[Found]:
    toolkits = [each for each in facts.host.cuda.toolkits or () if each.nvcc not in (None, "none")]
    by_variable = next((each for each in toolkits if set(_ROOTS) & set(each.found_by)), None)
    by_path = next((each for each in toolkits if "PATH" in each.found_by), None)
    if (
        by_variable is None
        or by_path is None
        or (by_variable.real or by_variable.root) == (by_path.real or by_path.root)
    ):
        return
    name = next(name for name in _ROOTS if name in by_variable.found_by)
    message = (
        f"{name} points to CUDA {by_variable.version}, but the nvcc on PATH is from CUDA {by_path.version} in "
        f"{by_path.root}"
    )
    fix = f"$ export PATH={by_variable.root}/bin:$PATH"
    yield Found(by_variable.root, message, fix=fix)


def _named_in_vain(facts: Examined) -> Iterator[Found]:
    if facts.host.cuda.toolkits is None:
        return
    for name in _ROOTS:
        value = facts.host.variable(name)
        if value and not any(name in each.found_by for each in facts.host.cuda.toolkits):
            yield Found(name, f"{name} is {value}, but there is no CUDA toolkit in that folder")


def _headers_differ(facts: Examined) -> Iterator[Found]:
    for each in facts.host.cuda.toolkits or ():
        compiler, header = release_of(each.nvcc_version), release_of(each.header_version)
        if compiler and header and header not in ("none", compiler):
            message = f"nvcc is from CUDA {compiler}, but the headers are from CUDA {header}"
            yield Found(each.root, message)


def _incomplete(facts: Examined) -> Iterator[Found]:
    toolkit = taken_toolkit(facts)
    if facts.wish.cuda is not None and toolkit is not None and toolkit.missing:
        message = f"the toolkit lacks {', '.join(toolkit.missing)}, which PyTorch and many extensions use"
        yield Found(toolkit.root, message)


def _archs(facts: Examined) -> Iterator[Found]:
    toolkit = taken_toolkit(facts)
    if toolkit is None or facts.wish.cuda not in (None, release_of(toolkit.version)):  # another one is to be taken
        return
    known = {arch.removeprefix("compute_") for arch in toolkit.archs or ()}
    bounds = facts.bounds.of_cuda(toolkit.version or "")
    wanted = facts.wish.archs or _listed(facts.host.variable("TORCH_CUDA_ARCH_LIST") or "")
    bad = [
        arch for arch in wanted if arch[:1].isdigit() and not _compiles(arch, known, bounds.archs if bounds else None)
    ]
    if bad:
        message = f"nvcc from CUDA {toolkit.version} cannot generate code for {', '.join(bad)}"
        least, most = _range(known, bounds.archs if bounds else None)
        fix = (
            f"remove them from TORCH_CUDA_ARCH_LIST (this nvcc supports {least} to {most}), or use a toolkit that "
            "supports them"
        )
        yield Found(toolkit.nvcc or toolkit.root, message, fix=fix)


def _listed(text: str) -> tuple[str, ...]:
    words = text.replace(";", " ").replace(",", " ").split()
    return tuple(word.removesuffix("+PTX") for word in words if word[:1].isdigit())


def _number(arch: str) -> int:
    """75 of ``7.5``, 90 of ``9.0a``."""
    major, _, minor = arch.rstrip("af").partition(".")
    return int(major) * 10 + int(minor or 0)


def _compiles(arch: str, known: set[str], bounds: tuple[int, int] | None) -> bool:
    if known:
        return str(_number(arch)) in {name.rstrip("af") for name in known}
    return bounds is None or bounds[0] <= _number(arch) <= bounds[1]


def _range(known: set[str], bounds: tuple[int, int] | None) -> tuple[str, str]:
    numbers_ = sorted(int(name.rstrip("af")) for name in known) or list(bounds or (0, 0))
    return f"{numbers_[0] // 10}.{numbers_[0] % 10}", f"{numbers_[-1] // 10}.{numbers_[-1] % 10}"


def _torch_differs(facts: Examined) -> Iterator[Found]:
    toolkit = taken_toolkit(facts)
    for python in (facts.host.python.interpreters or ())[:1]:
        torch = python.torch
        if facts.wish.torch or torch is None or torch.cuda in (None, "none") or toolkit is None or not toolkit.version:
            continue
        if numbers(toolkit.version)[:1] != numbers(torch.cuda)[:1]:
            message = (
                f"torch {torch.version} was built with CUDA {torch.cuda}, but extensions would be compiled with "
                f"CUDA {toolkit.version}"
            )
            yield Found(toolkit.root, message)


def _cudnn(facts: Examined) -> Iterator[Found]:
    header = (facts.host.cuda.headers or {}).get("cudnn")
    libraries = [each for each in facts.host.cuda.libraries or () if each.name == "cudnn" and each.version]
    if header and libraries and numbers(header)[:2] != numbers(libraries[0].version or "")[:2]:
        message = f"cudnn.h is from version {header}, but the loader uses library version {libraries[0].version}"
        yield Found(libraries[0].path, message)


def _toolkits(*kits: CudaToolkit) -> dict[str, object]:
    return {"toolkits": kits}


_OLD = msgspec.structs.replace(
    TOOLKIT,
    root="/opt/cuda-12.2",
    real="/opt/cuda-12.2",
    found_by=("CUDA_HOME",),
    version="12.2",
    nvcc="/opt/cuda-12.2/bin/nvcc",
    nvcc_version="12.2.140",
    header_version="12.2",
    archs=("compute_50", "compute_80", "compute_90"),
    gcc_most=12,
)

CUDA_RULES: tuple[Rule[Examined], ...] = (
    Rule(
        id="cuda/toolkit-missing",
        severity="error",
        title="No CUDA toolkit with nvcc found",
        references=("NVIDIA, CUDA Installation Guide for Linux",),
        why="The variant compiles GPU code, which requires nvcc. Neither a driver nor the runtime libraries in "
        "wheels provide it.",
        fix="install a toolkit, or add nvcc to the environment:\n$ pip install nvidia-cuda-nvcc\n"
        "then set its location: export CUDA_HOME=...",
        check=_missing,
        cases=lambda: (
            fires("no toolkit", on(wish=FOR_CUDA)),
            fires(
                "libraries without nvcc",
                on(wish=FOR_CUDA, cuda=_toolkits(msgspec.structs.replace(TOOLKIT, nvcc="none"))),
            ),
            silent("a toolkit", on(WITH_CUDA, FOR_CUDA)),
            silent("a build that does not need CUDA", on()),
        ),
    ),
    Rule(
        id="cuda/toolkit-another",
        severity="error",
        title="The build would use a CUDA toolkit from the wrong release",
        references=("torch/utils/cpp_extension.py, _find_cuda_home",),
        why="The package's name and metadata state one CUDA release, but the build would use another.",
        fix="install the requested release, and point CUDA_HOME and PATH to it",
        check=_another,
        cases=lambda: (
            fires("CUDA 12.2 for cu130", on(WITH_CUDA, FOR_CUDA, cuda=_toolkits(_OLD))),
            fires("two toolkits, the wrong one first", on(WITH_CUDA, FOR_CUDA, cuda=_toolkits(_OLD, TOOLKIT))),
            silent("CUDA 13.0 for cu130", on(WITH_CUDA, FOR_CUDA)),
        ),
    ),
    Rule(
        id="cuda/toolkits-disagree",
        severity="warning",
        title="CUDA_HOME and PATH point to different toolkits",
        references=("torch/utils/cpp_extension.py, _find_cuda_home", "CMake, FindCUDAToolkit"),
        why="torch.utils.cpp_extension uses one toolkit and CMake uses the other, so headers from one are "
        "combined with code from the other.",
        fix="point both variables to the same toolkit",
        check=_disagree,
        cases=lambda: (
            fires("CUDA_HOME with CUDA 12.2, PATH with CUDA 13.0", on(WITH_CUDA, cuda=_toolkits(_OLD, TOOLKIT))),
            silent(
                "the same toolkit through a symbolic link",
                on(
                    WITH_CUDA,
                    cuda=_toolkits(
                        msgspec.structs.replace(TOOLKIT, root="/usr/local/cuda-13.0", found_by=("CUDA_HOME",)), TOOLKIT
                    ),
                ),
            ),
        ),
    ),
    Rule(
        id="cuda/home-wrong",
        severity="error",
        title="CUDA_HOME points to a folder without a CUDA toolkit",
        references=("torch/utils/cpp_extension.py, _find_cuda_home",),
        why="Build tools trust the variable. If it is wrong, they fail with `CUDA_HOME environment variable is not "
        "set` or do not find nvcc.",
        fix="set CUDA_HOME to the folder that contains bin/nvcc, or unset it",
        check=_named_in_vain,
        cases=lambda: (
            fires("a missing folder", having(("CUDA_HOME", "/usr/local/cuda-11.8"))),
            silent("variable not set", on(WITH_CUDA)),
        ),
    ),
    Rule(
        id="cuda/headers-differ",
        severity="error",
        title="nvcc and the headers next to it are from different releases",
        references=("NVIDIA, cuda.h, CUDA_VERSION",),
        why="Two installations share one folder, so compiled code calls functions that the libraries do not provide.",
        fix="reinstall the toolkit, or install matching versions of its packages",
        check=_headers_differ,
        cases=lambda: (
            fires(
                "nvcc 13.0 with CUDA 12.8 headers",
                on(WITH_CUDA, cuda=_toolkits(msgspec.structs.replace(TOOLKIT, header_version="12.8"))),
            ),
            silent("nvcc and headers from CUDA 13.0", on(WITH_CUDA)),
        ),
    ),
    Rule(
        id="cuda/toolkit-incomplete",
        severity="warning",
        title="Parts of the CUDA toolkit are missing",
        references=("CMake, FindCUDAToolkit, imported targets",),
        why="Configuration disables features, or compilation stops at a missing header.",
        fix="install the -dev packages or the NVIDIA wheels of these libraries",
        check=_incomplete,
        cases=lambda: (
            fires(
                "no cuSPARSE",
                on(WITH_CUDA, FOR_CUDA, cuda=_toolkits(msgspec.structs.replace(TOOLKIT, missing=("cusparse",)))),
            ),
            silent("a complete toolkit", on(WITH_CUDA, FOR_CUDA)),
        ),
    ),
    Rule(
        id="cuda/arch-unknown",
        severity="error",
        title="nvcc does not support a requested GPU generation",
        references=("pytorch/pytorch#166120", "NVIDIA, nvcc, --list-gpu-arch"),
        why="nvcc stops with `Unsupported gpu architecture`, in most projects only after hours of compiling "
        "other files.",
        fix="change the architecture list, or use a different toolkit",
        check=_archs,
        cases=lambda: (
            fires("sm_70 with CUDA 13", on(WITH_CUDA, msgspec.structs.replace(FOR_CUDA, archs=("7.0", "9.0")))),
            fires("an architecture from a variable", having(("TORCH_CUDA_ARCH_LIST", "5.0;9.0+PTX"), host=WITH_CUDA)),
            silent("sm_80 and sm_90a", on(WITH_CUDA, msgspec.structs.replace(FOR_CUDA, archs=("8.0", "9.0a")))),
        ),
    ),
    Rule(
        id="cuda/torch-differs",
        severity="error",
        title="The installed torch and the CUDA toolkit have different CUDA versions",
        references=("pytorch/pytorch#73047",),
        why="torch.utils.cpp_extension refuses to compile if the major releases differ; other builds may load two "
        "CUDA runtimes into one process.",
        fix=(
            "install a torch built for the toolkit's CUDA release, or set CUDA_HOME to a toolkit of torch's "
            "CUDA release"
        ),
        check=_torch_differs,
        cases=lambda: (
            fires(
                "torch built for CUDA 12.8, toolkit is 13.0", with_torch(WITH_CUDA, version="2.8.0+cu128", cuda="12.8")
            ),
            silent(
                "torch built for CUDA 13.0, toolkit is 13.0", with_torch(WITH_CUDA, version="2.14.1+cu130", cuda="13.0")
            ),
            silent("torch built without CUDA", with_torch(WITH_CUDA, version="2.13.0+cpu", cuda="none")),
        ),
    ),
    Rule(
        id="cuda/cudnn-differs",
        severity="warning",
        title="cuDNN's header and library are from different releases",
        references=("pytorch/pytorch#185512", "pytorch/pytorch#188892"),
        why="Code compiled with the header expects functions and structure sizes that differ from the library's, so "
        "the first convolution fails with CUDNN_STATUS_SUBLIBRARY_VERSION_MISMATCH.",
        fix=(
            "remove one of the two cuDNN installations, or put the folder of the library that matches cudnn.h "
            "first in LD_LIBRARY_PATH"
        ),
        check=_cudnn,
        cases=lambda: (
            fires("cuDNN header 9.1, library 9.13", on(WITH_CUDA, cuda={"headers": {"cudnn": "9.1.0"}})),
            silent("both 9.13", on(WITH_CUDA, cuda={"headers": {"cudnn": "9.13.1"}})),
        ),
    ),
)
"""Rules about :class:`~axletree.check.host.examined.Examined`: CUDA to build with."""
