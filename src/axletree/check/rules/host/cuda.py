"""Rules about CUDA toolkits: which one a build takes, and whether it can make what is wanted."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from axletree.backends.bounds import numbers
from axletree.check.engine import Case, Found, Rule
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
        there = "the toolkits here have no nvcc" if facts.host.cuda.toolkits else "no toolkit is here"
        message = f"GPU code needs CUDA {facts.wish.cuda} to compile, but {there}"
        evidence = tuple(f"{each.root}: libraries alone" for each in facts.host.cuda.toolkits)
        yield Found(where="CUDA", message=message, evidence=evidence)


def _another(facts: Examined) -> Iterator[Found]:
    toolkit, wanted = taken_toolkit(facts), facts.wish.cuda
    if toolkit is None or wanted is None or toolkit.version is None or release_of(toolkit.version) == wanted:
        return
    others = [
        each for each in facts.host.cuda.toolkits or () if release_of(each.version) == wanted and each.nvcc != "none"
    ]
    message = f"a build takes CUDA {toolkit.version} ({', '.join(toolkit.found_by)}), and {wanted} is wanted"
    fix = f"$ export CUDA_HOME={others[0].root} PATH={others[0].root}/bin:$PATH" if others else None
    yield Found(where=toolkit.root, message=message, fix=fix)


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
        f"{name} names CUDA {by_variable.version}, but the nvcc on PATH is from {by_path.version} in {by_path.root}"
    )
    fix = f"$ export PATH={by_variable.root}/bin:$PATH"
    yield Found(where=by_variable.root, message=message, fix=fix)


def _named_in_vain(facts: Examined) -> Iterator[Found]:
    if facts.host.cuda.toolkits is None:
        return
    for name in _ROOTS:
        value = facts.host.variable(name)
        if value and not any(name in each.found_by for each in facts.host.cuda.toolkits):
            yield Found(where=name, message=f"{name} is {value}, where no CUDA toolkit is")


def _headers_differ(facts: Examined) -> Iterator[Found]:
    for each in facts.host.cuda.toolkits or ():
        compiler, header = release_of(each.nvcc_version), release_of(each.header_version)
        if compiler and header and header not in ("none", compiler):
            message = f"its nvcc is from CUDA {compiler}, but its headers are from {header}"
            yield Found(where=each.root, message=message)


def _incomplete(facts: Examined) -> Iterator[Found]:
    toolkit = taken_toolkit(facts)
    if facts.wish.cuda is not None and toolkit is not None and toolkit.missing:
        message = f"the toolkit lacks {', '.join(toolkit.missing)}, which PyTorch and many extensions include"
        yield Found(where=toolkit.root, message=message)


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
        message = f"nvcc of CUDA {toolkit.version} has no code generator for {', '.join(bad)}"
        least, most = _range(known, bounds.archs if bounds else None)
        fix = f"leave them out of TORCH_CUDA_ARCH_LIST (it takes {least} to {most}), or take a toolkit that knows them"
        yield Found(where=toolkit.nvcc or toolkit.root, message=message, fix=fix)


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
                f"torch {torch.version} was built with CUDA {torch.cuda}, and extensions would be "
                f"compiled with {toolkit.version}"
            )
            yield Found(where=toolkit.root, message=message)


def _cudnn(facts: Examined) -> Iterator[Found]:
    header = (facts.host.cuda.headers or {}).get("cudnn")
    libraries = [each for each in facts.host.cuda.libraries or () if each.name == "cudnn" and each.version]
    if header and libraries and numbers(header)[:2] != numbers(libraries[0].version or "")[:2]:
        message = f"cudnn.h is from {header}, but the loader uses library version {libraries[0].version}"
        yield Found(where=libraries[0].path, message=message)


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
        title="No CUDA toolkit to compile with",
        references=("NVIDIA, CUDA Installation Guide for Linux",),
        why="The variant compiles GPU code. A driver alone, or the run-time libraries that wheels bring, have no nvcc.",
        fix="install a toolkit, or let the environment bring it:\n$ pip install nvidia-cuda-nvcc\n"
        "then name it: export CUDA_HOME=...",
        check=_missing,
        cases=lambda: (
            Case(title="none at all", facts=on(wish=FOR_CUDA), fires=True),
            Case(
                title="libraries without nvcc",
                facts=on(wish=FOR_CUDA, cuda=_toolkits(msgspec.structs.replace(TOOLKIT, nvcc="none"))),
                fires=True,
            ),
            Case(title="a toolkit", facts=on(WITH_CUDA, FOR_CUDA), fires=False),
            Case(title="CUDA is not requested", facts=on(), fires=False),
        ),
    ),
    Rule(
        id="cuda/toolkit-another",
        severity="error",
        title="The build would use a CUDA toolkit of another release",
        references=("torch/utils/cpp_extension.py, _find_cuda_home",),
        why="What is built says in its name and metadata that it is for one release, and would be of another.",
        fix="install that release, and name it by CUDA_HOME and PATH",
        check=_another,
        cases=lambda: (
            Case(title="12.2 for cu130", facts=on(WITH_CUDA, FOR_CUDA, cuda=_toolkits(_OLD)), fires=True),
            Case(
                title="both, the wrong one first",
                facts=on(WITH_CUDA, FOR_CUDA, cuda=_toolkits(_OLD, TOOLKIT)),
                fires=True,
            ),
            Case(title="13.0 for cu130", facts=on(WITH_CUDA, FOR_CUDA), fires=False),
        ),
    ),
    Rule(
        id="cuda/toolkits-disagree",
        severity="warning",
        title="CUDA_HOME and PATH point to different toolkits",
        references=("torch/utils/cpp_extension.py, _find_cuda_home", "CMake, FindCUDAToolkit"),
        why="torch.utils.cpp_extension uses one, CMake the other: headers of one are mixed with code of the other.",
        fix="let both name the same toolkit",
        check=_disagree,
        cases=lambda: (
            Case(
                title="12.2 by variable, 13.0 by PATH", facts=on(WITH_CUDA, cuda=_toolkits(_OLD, TOOLKIT)), fires=True
            ),
            Case(
                title="the same by a link",
                facts=on(
                    WITH_CUDA,
                    cuda=_toolkits(
                        msgspec.structs.replace(TOOLKIT, root="/usr/local/cuda-13.0", found_by=("CUDA_HOME",)), TOOLKIT
                    ),
                ),
                fires=False,
            ),
        ),
    ),
    Rule(
        id="cuda/home-wrong",
        severity="error",
        title="CUDA_HOME names a folder without a toolkit",
        references=("torch/utils/cpp_extension.py, _find_cuda_home",),
        why=(
            "Build tools trust the variable: they fail with `CUDA_HOME environment variable is not set` or a missing "
            "nvcc."
        ),
        fix="name the folder that has bin/nvcc, or unset the variable",
        check=_named_in_vain,
        cases=lambda: (
            Case(title="a missing folder", facts=having(("CUDA_HOME", "/usr/local/cuda-11.8")), fires=True),
            Case(title="not set", facts=on(WITH_CUDA), fires=False),
        ),
    ),
    Rule(
        id="cuda/headers-differ",
        severity="error",
        title="nvcc and the headers next to it are from different releases",
        references=("NVIDIA, cuda.h, CUDA_VERSION",),
        why="Two installations share one folder: compiled code calls functions that the library does not have.",
        fix="reinstall the toolkit, or make the versions of its packages agree",
        check=_headers_differ,
        cases=lambda: (
            Case(
                title="nvcc 13.0 over headers of 12.8",
                facts=on(WITH_CUDA, cuda=_toolkits(msgspec.structs.replace(TOOLKIT, header_version="12.8"))),
                fires=True,
            ),
            Case(title="both of 13.0", facts=on(WITH_CUDA), fires=False),
        ),
    ),
    Rule(
        id="cuda/toolkit-incomplete",
        severity="warning",
        title="The CUDA toolkit lacks parts",
        references=("CMake, FindCUDAToolkit, imported targets",),
        why="Configuring turns features off, or compiling stops at a missing header.",
        fix="install the -dev packages of these parts, or the wheels that have them",
        check=_incomplete,
        cases=lambda: (
            Case(
                title="no cuSPARSE",
                facts=on(WITH_CUDA, FOR_CUDA, cuda=_toolkits(msgspec.structs.replace(TOOLKIT, missing=("cusparse",)))),
                fires=True,
            ),
            Case(title="all there", facts=on(WITH_CUDA, FOR_CUDA), fires=False),
        ),
    ),
    Rule(
        id="cuda/arch-unknown",
        severity="error",
        title="nvcc has no code generator for a requested GPU generation",
        references=("pytorch/pytorch#166120", "NVIDIA, nvcc, --list-gpu-arch"),
        why="It stops with `Unsupported gpu architecture`, for most projects after hours of other files.",
        fix="another list, or another toolkit",
        check=_archs,
        cases=lambda: (
            Case(
                title="sm_70 with CUDA 13",
                facts=on(WITH_CUDA, msgspec.structs.replace(FOR_CUDA, archs=("7.0", "9.0"))),
                fires=True,
            ),
            Case(
                title="by a variable", facts=having(("TORCH_CUDA_ARCH_LIST", "5.0;9.0+PTX"), host=WITH_CUDA), fires=True
            ),
            Case(
                title="sm_80 and sm_90a",
                facts=on(WITH_CUDA, msgspec.structs.replace(FOR_CUDA, archs=("8.0", "9.0a"))),
                fires=False,
            ),
        ),
    ),
    Rule(
        id="cuda/torch-differs",
        severity="error",
        title="The installed torch was built for a different CUDA version than the toolkit",
        references=("pytorch/pytorch#73047",),
        why="torch.utils.cpp_extension refuses to compile when the major releases differ; what slips through loads two "
        "CUDA runtimes.",
        fix="install the torch of that CUDA release, or name a toolkit of torch's",
        check=_torch_differs,
        cases=lambda: (
            Case(
                title="torch of 12.8, toolkit 13.0",
                facts=with_torch(WITH_CUDA, version="2.8.0+cu128", cuda="12.8"),
                fires=True,
            ),
            Case(title="torch of 13.0", facts=with_torch(WITH_CUDA, version="2.14.1+cu130", cuda="13.0"), fires=False),
            Case(
                title="torch without CUDA", facts=with_torch(WITH_CUDA, version="2.13.0+cpu", cuda="none"), fires=False
            ),
        ),
    ),
    Rule(
        id="cuda/cudnn-differs",
        severity="warning",
        title="cuDNN's header and library are from different releases",
        references=("pytorch/pytorch#185512", "pytorch/pytorch#188892"),
        why="What is compiled by the one asks the other for functions and sizes that it does not have: "
        "CUDNN_STATUS_SUBLIBRARY_VERSION_MISMATCH, at the first convolution.",
        fix="remove the one of them, or put the right folder first in LD_LIBRARY_PATH",
        check=_cudnn,
        cases=lambda: (
            Case(
                title="header 9.1, library 9.13", facts=on(WITH_CUDA, cuda={"headers": {"cudnn": "9.1.0"}}), fires=True
            ),
            Case(title="both 9.13", facts=on(WITH_CUDA, cuda={"headers": {"cudnn": "9.13.1"}}), fires=False),
        ),
    ),
)
"""Rules about :class:`~axletree.check.host.examined.Examined`: CUDA to build with."""
