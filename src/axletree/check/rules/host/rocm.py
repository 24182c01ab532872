"""Rules about ROCm: GPUs and their order, access to them, the installation that a build takes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from axletree.backends.bounds import numbers
from axletree.check.engine import Found, Rule, fires, silent
from axletree.check.host.gpu import RocmRoot
from axletree.check.rules.host.sample import DISCRETE, FOR_ROCM, INTEGRATED, ROCM, WITH_ROCM, having, on

if TYPE_CHECKING:
    from collections.abc import Iterator

    from axletree.check.host.examined import Examined

_VISIBLE = ("ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES", "GPU_DEVICE_ORDINAL")
_OVERRIDE = "HSA_OVERRIDE_GFX_VERSION"


def _root(facts: Examined) -> RocmRoot | None:
    return next(iter(facts.host.rocm.roots or ()), None)


def _missing(facts: Examined) -> Iterator[Found]:
    roots = facts.host.rocm.roots
    if facts.wish.rocm is not None and roots is not None and not any(each.hipcc != "none" for each in roots):
        there = "the installed parts do not include hipcc" if roots else "ROCm is not installed"
        message = f"compiling GPU code requires ROCm {facts.wish.rocm}, but {there}"
        yield Found("ROCm", message)


def _another(facts: Examined) -> Iterator[Found]:
    root, wanted = _root(facts), facts.wish.rocm
    if root is None or wanted is None or not root.version or numbers(root.version)[:2] == numbers(wanted)[:2]:
        return
    others = [each for each in facts.host.rocm.roots or () if numbers(each.version or "")[:2] == numbers(wanted)[:2]]
    fix = f"$ export ROCM_PATH={others[0].root} PATH={others[0].root}/bin:$PATH" if others else None
    yield Found(root.root, f"builds use ROCm {root.version}, but ROCm {wanted} is required", fix=fix)


def _mixed(facts: Examined) -> Iterator[Found]:
    named = {
        each.real or each.root: each for each in facts.host.rocm.roots or () if set(each.found_by) - {"/opt", "wheel"}
    }
    versions = {numbers(each.version or "")[:2] for each in named.values() if each.version}
    if len(versions) > 1:
        first = next(iter(named.values()))
        evidence = tuple(f"{each.root} ({', '.join(each.found_by)}): {each.version}" for each in named.values())
        message = "variables, PATH and folders point to different ROCm releases"
        yield Found(
            first.root,
            message,
            evidence=evidence,
            fix=f"$ export ROCM_PATH={first.root} HIP_PATH={first.root} PATH={first.root}/bin:$PATH",
        )


def _integrated_first(facts: Examined) -> Iterator[Found]:
    gpus = facts.host.rocm.gpus or ()
    discrete = [number for number, gpu in enumerate(gpus) if gpu.integrated is False]
    if not gpus or not gpus[0].integrated or not discrete or any(facts.host.variable(name) for name in _VISIBLE):
        return
    message = f"device 0 is {gpus[0].gfx}, the processor's integrated GPU, and the other GPUs come after it"
    fix = f"$ export HIP_VISIBLE_DEVICES={','.join(map(str, discrete))}"
    yield Found(
        gpus[0].gfx or "GPU 0", message, evidence=tuple(f"{n}: {gpu.gfx}" for n, gpu in enumerate(gpus)), fix=fix
    )


def _override(facts: Examined) -> Iterator[Found]:
    value = facts.host.variable(_OVERRIDE)
    if not value:
        return
    pretended = _target(value)
    gpus = [gpu.gfx for gpu in facts.host.rocm.gpus or () if gpu.gfx]
    if pretended in gpus:
        message = (
            f"{_OVERRIDE}={value} selects {pretended}, which this machine has: the variable has no effect on that "
            f"GPU and "
            "is wrong for all others"
        )
    else:
        message = (
            f"{_OVERRIDE}={value} makes {', '.join(gpus) or 'every GPU'} identify as {pretended}: programs run code "
            "for a different GPU and may crash"
        )
    yield Found(_OVERRIDE, message)


def _target(version: str) -> str:
    """``10.3.0`` -> ``gfx1030``, ``9.0.10`` -> ``gfx90a``: only minor version and stepping are hexadecimal."""
    major, *rest = version.strip().split(".")
    return f"gfx{major}" + "".join(f"{int(part):x}" if part.isdecimal() else part for part in rest)


def _closed(facts: Examined) -> Iterator[Found]:
    rocm = facts.host.rocm
    closed = [
        *(["/dev/kfd"] if rocm.kfd is False else []),
        *(node for node, may in (rocm.render_nodes or {}).items() if not may),
    ]
    if closed and rocm.gpus:
        yield Found(closed[0], f"this user is not allowed to open {', '.join(closed)}")


def _container(facts: Examined) -> Iterator[Found]:
    rocm, system = facts.host.rocm, facts.host.system
    if (
        system.container not in (None, "none")
        and rocm.gpus
        and rocm.kfd is None
        and not rocm.render_nodes
        and not system.wsl
    ):
        yield Found("/dev/kfd", "the host has AMD GPUs, but this container has neither /dev/kfd nor /dev/dri")


def _wsl(facts: Examined) -> Iterator[Found]:
    rocm = facts.host.rocm
    if facts.host.system.wsl and (facts.wish.rocm or rocm.roots) and rocm.kfd is None:
        more = "" if rocm.dxg else "; /dev/dxg is missing too, so no GPU is available"
        yield Found("WSL", f"WSL has no /dev/kfd, so programs access AMD GPUs through /dev/dxg{more}")


def _uncovered(facts: Examined) -> Iterator[Found]:
    archs = {arch.partition(":")[0] for arch in facts.wish.archs if arch.startswith("gfx")}
    for gpu in facts.host.rocm.gpus or ():
        if (
            archs
            and gpu.gfx
            and not gpu.integrated
            and gpu.gfx not in archs
            and not any(_generic(arch, gpu.gfx) for arch in archs)
        ):
            message = (
                f"this machine has a {gpu.gfx} GPU, but the build compiles code only for {', '.join(sorted(archs))}"
            )
            yield Found(gpu.gfx, message, fix=f"add {gpu.gfx} to PYTORCH_ROCM_ARCH")


def _generic(arch: str, gfx: str) -> bool:
    """Whether an architecture such as ``gfx11-generic`` covers a GPU."""
    return arch.endswith("-generic") and gfx.startswith(arch.removesuffix("-generic").replace("-", ""))


def _no_device_code(facts: Examined) -> Iterator[Found]:
    root = _root(facts)
    if facts.wish.rocm and root is not None and root.device_libraries == ():
        yield Found(root.root, "the device libraries (ocml.bc) are missing, so hipcc cannot compile GPU code")


def _incomplete(facts: Examined) -> Iterator[Found]:
    root = _root(facts)
    if facts.wish.rocm and root is not None and root.missing:
        yield Found(root.root, f"ROCm lacks {', '.join(root.missing)}, which PyTorch needs")


def _roots(*roots: RocmRoot) -> dict[str, object]:
    return {"roots": roots}


_FIRST = (ROCM.roots or ())[0]
_OLD = RocmRoot(root="/opt/rocm-6.0.2", real="/opt/rocm-6.0.2", found_by=("ROCM_PATH",), version="6.0.2")

ROCM_RULES: tuple[Rule[Examined], ...] = (
    Rule(
        id="rocm/toolkit-missing",
        severity="error",
        title="No ROCm toolkit with hipcc found",
        references=("ROCm, installation on Linux",),
        why="The variant compiles GPU code, but no compiler for it is installed.",
        fix="install ROCm, or set its location: export ROCM_PATH=...",
        check=_missing,
        cases=lambda: (
            fires("none", on(wish=FOR_ROCM)),
            silent("ROCm 7.1", on(WITH_ROCM, FOR_ROCM)),
        ),
    ),
    Rule(
        id="rocm/toolkit-another",
        severity="error",
        title="The build would use a ROCm toolkit from the wrong release",
        references=("pytorch/pytorch: cmake/public/LoadHIP.cmake, ROCM_PATH",),
        why="The package's name states one ROCm release, but the build would use another.",
        fix="install the requested release, and point ROCM_PATH and PATH to it",
        check=_another,
        cases=lambda: (
            fires("ROCm 6.0 for rocm7.1", on(WITH_ROCM, FOR_ROCM, rocm=_roots(_OLD, _FIRST))),
            silent("ROCm 7.1 for rocm7.1", on(WITH_ROCM, FOR_ROCM)),
        ),
    ),
    Rule(
        id="rocm/mixed",
        severity="warning",
        title="Several ROCm releases are in use at the same time",
        references=("ROCm/TheRock#1119", "pytorch/pytorch: cmake/public/LoadHIP.cmake"),
        why="hipcc uses one release and CMake's packages use another, so headers from one are combined with "
        "libraries from the other.",
        fix="point all variables to the same release",
        check=_mixed,
        cases=lambda: (
            fires("ROCM_PATH with ROCm 6.0, /opt/rocm with ROCm 7.1", on(WITH_ROCM, rocm=_roots(_OLD, _FIRST))),
            silent("one", on(WITH_ROCM)),
        ),
    ),
    Rule(
        id="rocm/integrated-first",
        severity="warning",
        title="The integrated GPU comes first",
        references=('ROCm, "GPU isolation techniques"',),
        why="Programs use device 0, and builds that detect the GPU compile for it, so the code runs slowly or crashes.",
        fix="hide the integrated GPU with HIP_VISIBLE_DEVICES",
        check=_integrated_first,
        cases=lambda: (
            fires("an integrated GPU, then a graphics card", on(WITH_ROCM, rocm={"gpus": (INTEGRATED, DISCRETE)})),
            silent("a graphics card, then an integrated GPU", on(WITH_ROCM, rocm={"gpus": (DISCRETE, INTEGRATED)})),
            silent(
                "an integrated GPU that is already hidden",
                having(
                    ("HIP_VISIBLE_DEVICES", "1"),
                    host=msgspec.structs.replace(
                        WITH_ROCM, rocm=msgspec.structs.replace(ROCM, gpus=(INTEGRATED, DISCRETE))
                    ),
                ),
            ),
        ),
    ),
    Rule(
        id="rocm/hsa-override",
        severity="warning",
        title="HSA_OVERRIDE_GFX_VERSION is set",
        references=("ROCm, environment variables, HSA_OVERRIDE_GFX_VERSION",),
        why="The variable makes every GPU identify as a different kind. It lets an unsupported GPU run, but breaks "
        "code built for the correct GPU.",
        fix="$ unset HSA_OVERRIDE_GFX_VERSION\nthen set PYTORCH_ROCM_ARCH to the architecture of the actual GPU",
        check=_override,
        cases=lambda: (
            fires("10.3.0 on a gfx1100 GPU", having((_OVERRIDE, "10.3.0"), host=WITH_ROCM)),
            silent("variable not set", on(WITH_ROCM)),
        ),
    ),
    Rule(
        id="rocm/device-closed",
        severity="warning",
        title="The GPU's device files cannot be opened",
        references=('ROCm, installation prerequisites, "Group permissions"',),
        why="HIP reports that there is no GPU although one is present.",
        fix="$ sudo usermod -aG render,video $USER\nthen log in again",
        check=_closed,
        cases=lambda: (
            fires("a user outside the render group", on(WITH_ROCM, rocm={"kfd": False})),
            silent("open", on(WITH_ROCM)),
        ),
    ),
    Rule(
        id="rocm/container-without-gpu",
        severity="warning",
        title="The container was started without GPUs",
        references=('ROCm, "Running ROCm Docker containers"',),
        why="HIP does not find a GPU.",
        fix="$ docker run --device /dev/kfd --device /dev/dri --group-add video --group-add render ...",
        check=_container,
        cases=lambda: (
            fires("docker", on(WITH_ROCM, system={"container": "docker"}, rocm={"kfd": None, "render_nodes": {}})),
            silent("a Docker container with devices", on(WITH_ROCM, system={"container": "docker"})),
        ),
    ),
    Rule(
        id="rocm/wsl",
        severity="warning",
        title="ROCm runs in WSL",
        references=('ROCm, "Use ROCm on Radeon GPUs: WSL"',),
        why="The WSL kernel has no KFD, so programs that look for GPUs through it find none; only ROCm for WSL works.",
        fix=(
            "install ROCm for WSL (librocdxg, or the hsa-runtime package for WSL), then set PYTORCH_ROCM_ARCH "
            "to your GPU's architecture"
        ),
        check=_wsl,
        cases=lambda: (
            fires("WSL 2", on(WITH_ROCM, system={"wsl": 2}, rocm={"kfd": None, "dxg": True, "gpus": ()})),
            silent("Linux", on(WITH_ROCM)),
        ),
    ),
    Rule(
        id="rocm/gpu-not-covered",
        severity="warning",
        title="The build has no code for this machine's GPU",
        references=("pytorch/pytorch#164346",),
        why="The built code does not run here and fails with `invalid device function` or hipErrorNoBinaryForGpu.",
        fix="add the GPU's architecture to PYTORCH_ROCM_ARCH",
        check=_uncovered,
        cases=lambda: (
            fires(
                "a gfx1201", on(WITH_ROCM, FOR_ROCM, rocm={"gpus": (msgspec.structs.replace(DISCRETE, gfx="gfx1201"),)})
            ),
            silent("a gfx1100", on(WITH_ROCM, FOR_ROCM)),
        ),
    ),
    Rule(
        id="rocm/device-libraries-missing",
        severity="error",
        title="ROCm's device libraries are missing",
        references=("Clang, HIP support, --rocm-device-lib-path",),
        why="Compiling any GPU file fails with `cannot find ROCm device library`.",
        fix="$ apt-get install rocm-device-libs",
        check=_no_device_code,
        cases=lambda: (
            fires("none", on(WITH_ROCM, FOR_ROCM, rocm=_roots(msgspec.structs.replace(_FIRST, device_libraries=())))),
            silent(
                "there",
                on(
                    WITH_ROCM,
                    FOR_ROCM,
                    rocm=_roots(msgspec.structs.replace(_FIRST, device_libraries=("/opt/rocm/amdgcn/bitcode",))),
                ),
            ),
        ),
    ),
    Rule(
        id="rocm/toolkit-incomplete",
        severity="warning",
        title="ROCm parts that PyTorch needs are missing",
        references=("pytorch/pytorch: cmake/public/LoadHIP.cmake",),
        why="Configuration stops at the first missing package.",
        fix="install the -dev packages of these libraries",
        check=_incomplete,
        cases=lambda: (
            fires(
                "no MIOpen", on(WITH_ROCM, FOR_ROCM, rocm=_roots(msgspec.structs.replace(_FIRST, missing=("miopen",))))
            ),
            silent("a complete installation", on(WITH_ROCM, FOR_ROCM)),
        ),
    ),
)
"""Rules about :class:`~axletree.check.host.examined.Examined`: ROCm."""
