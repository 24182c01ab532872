"""Rules about the GPU code in a wheel: for which GPUs, and in which form."""

from __future__ import annotations

from typing import TYPE_CHECKING

from axletree.check.engine import Found, Rule, fires, listing, silent, subject
from axletree.check.gpu import gpu_libraries, named_files, promised_gpus
from axletree.check.rules.wheel.gpu_sample import gpu_library, gpu_sample
from axletree.check.rules.wheel.sample import plain_library, sample
from axletree.core.units import format_bytes, some_of
from axletree.package.bundled import is_grafted
from axletree.package.gpu.arch import order, parse_code, runs

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from axletree.check.dist import DistFacts
    from axletree.package.gpu.arch import Gpu

_ARCH_90 = b'{"variants": {"cu130_sm90": {"nvidia": {"cuda_version_lower_bound": ["13.0"], "sm_arch": ["90_real"]}}}}'
_VARIANT = {"texts": {"demo-1.0.dist-info/variant.json": _ARCH_90}}
_UNPROMISED = 1 << 20
_NAMES = 12


def _label(gpu: Gpu) -> str:
    return f"sm_{gpu.name}" if gpu.maker == "nvidia" else gpu.name


def _runs(name: str, gpus: Iterable[Gpu]) -> bool:
    code = parse_code(name)
    return code is not None and any(runs(code, gpu) for gpu in gpus)


def _damaged(facts: DistFacts) -> Iterator[Found]:
    for path, elf in facts.elfs.items():
        for section in elf.device:
            if section.damaged is not None:
                yield Found(path, f"the GPU code in {section.section} is damaged: {section.damaged}")


def _missing(facts: DistFacts) -> Iterator[Found]:
    libraries = gpu_libraries(facts)
    for gpu in promised_gpus(facts):
        ours = {
            path: codes
            for path, codes in libraries.items()
            if any((code := parse_code(each.arch)) is not None and code.maker == gpu.maker for each in codes)
        }
        lacking = sorted(path for path, codes in ours.items() if not any(_runs(code.arch, [gpu]) for code in codes))
        if lacking:
            archs = sorted({code.arch for path in lacking for code in ours[path]}, key=order)
            what = (
                f"no code that runs on {_label(gpu)}, although the package promises that GPU; the code is for "
                f"{some_of(archs, _NAMES)}"
            )
            message = f"{subject(lacking, 'has', 'have')} {what}"
            yield Found(lacking[0], message, evidence=listing(lacking))


def _unpromised(facts: DistFacts) -> Iterator[Found]:
    gpus = promised_gpus(facts)
    makers = {gpu.maker for gpu in gpus}
    sizes: dict[str, int] = {}
    for codes in gpu_libraries(facts).values():
        for each in codes:
            code = parse_code(each.arch)
            if code is not None and code.maker in makers and not any(runs(code, gpu) for gpu in gpus):
                sizes[each.arch] = sizes.get(each.arch, 0) + each.size
    if "hip" in makers:
        for name, paths in named_files(facts).items():
            if not _runs(name, gpus):
                sizes[name] = sizes.get(name, 0) + sum(paths.values())
    total = sum(sizes.values())
    if total >= _UNPROMISED:
        evidence = tuple(f"{name}: {format_bytes(sizes[name])}" for name in sorted(sizes, key=order))
        promised = ", ".join(map(_label, gpus))
        message = f"{format_bytes(total)} of GPU code and files is never used on the promised GPUs ({promised})"
        yield Found(facts.wheel.filename, message, evidence=evidence)


def _differ(facts: DistFacts) -> Iterator[Found]:
    for maker in ("nvidia", "hip"):
        files: dict[tuple[str, ...], list[str]] = {}
        for path, codes in gpu_libraries(facts).items():
            if is_grafted(path):
                continue  # built by others, for as many GPUs as they like
            parsed = [code for each in codes if (code := parse_code(each.arch)) is not None and code.maker == maker]
            names = {code.name.rstrip("af") if maker == "nvidia" else code.processor for code in parsed}
            if names:
                files.setdefault(tuple(sorted(names, key=order)), []).append(path)
        if len(files) > 1:
            evidence = tuple(f"{some_of(names, _NAMES)}: {some_of(paths, 3)}" for names, paths in sorted(files.items()))
            message = (
                f"the {sum(map(len, files.values()))} libraries with GPU code are built for {len(files)} different "
                "sets of GPUs"
            )
            yield Found(facts.wheel.filename, message, evidence=evidence)


def _no_ptx(facts: DistFacts) -> Iterator[Found]:
    lacking: dict[int, list[str]] = {}
    for path, codes in gpu_libraries(facts).items():
        parsed = [code for each in codes if (code := parse_code(each.arch)) is not None and code.maker == "nvidia"]
        newest = max((code.number for code in parsed if code.form == "binary"), default=0)
        portable = max((code.number for code in parsed if code.form == "intermediate" and not code.suffix), default=0)
        if newest // 10 > portable // 10:
            lacking.setdefault(newest, []).append(path)
    for number, paths in sorted(lacking.items()):
        message = (
            f"{subject(paths, 'has', 'have')} no PTX for sm_{number}, so later GPU generations cannot run the code"
        )
        yield Found(paths[0], message, evidence=listing(paths))


GPU_RULES: tuple[Rule[DistFacts], ...] = (
    Rule(
        id="dist/gpu-damaged",
        severity="error",
        title="Some of the GPU code cannot be read",
        why="The CUDA or HIP runtime parses the same data when it loads the library. It does not find kernels that are "
        "stored after the damaged part, or the process crashes.",
        fix="link the library again; if a tool changed it, compare the output of `cuobjdump --list-elf` before "
        "and after the change",
        check=_damaged,
        cases=lambda: (
            fires(
                "a container that is longer than its section",
                gpu_sample(gpu_library("sm_90", damaged="container 3 extends beyond the section")),
            ),
            silent("readable code", gpu_sample(gpu_library("sm_90", "compute_90"))),
        ),
    ),
    Rule(
        id="dist/gpu-arch-missing",
        severity="error",
        title="A library has no code for a promised GPU",
        why="The variant label, `variant.json` or `--arch` promises that the wheel works on that GPU, but the "
        "library's kernels fail there with `no kernel image is available for execution on the device`.",
        fix=(
            "add the architecture to TORCH_CUDA_ARCH_LIST or PYTORCH_ROCM_ARCH and build the library again, or "
            "stop promising that GPU"
        ),
        check=_missing,
        cases=lambda: (
            fires(
                "sm_90 promised, but missing from one of two libraries",
                gpu_sample(gpu_library("sm_80", "sm_90"), gpu_library("sm_80"), archs=("90",)),
            ),
            fires("sm_90 in variant.json, but code only for sm_100", gpu_sample(gpu_library("sm_100"), wheel=_VARIANT)),
            fires("sm_90a code for a promised sm_100", gpu_sample(gpu_library("sm_90a"), archs=("100",))),
            fires(
                "code for the GPU in a section that only device linkers read",
                gpu_sample(
                    plain_library(
                        device=(*gpu_library("sm_80").device, *gpu_library("sm_90", section="__nv_relfatbin").device)
                    ),
                    archs=("90",),
                ),
            ),
            fires("gfx942 promised, but not gfx90a", gpu_sample(gpu_library("gfx942"), archs=("gfx90a",))),
            silent("sm_86 code for a promised sm_89", gpu_sample(gpu_library("sm_86"), archs=("89",))),
            silent("sm_80 PTX for a promised sm_90", gpu_sample(gpu_library("compute_80"), archs=("90",))),
            silent("no promised GPUs", gpu_sample(gpu_library("sm_80"))),
        ),
    ),
    Rule(
        id="dist/gpu-arch-unpromised",
        severity="info",
        title="The wheel contains code for GPUs that were not promised",
        why="Users who choose the wheel for its GPU download and install code that never runs there.",
        fix="keep only the code for the promised GPUs: `axletree thin WHEEL --arch ...`",
        check=_unpromised,
        cases=lambda: (
            fires(
                "sm_90 in variant.json, but also sm_80 code", gpu_sample(gpu_library("sm_80", "sm_90"), wheel=_VARIANT)
            ),
            fires(
                "files named for gfx1100 in a wheel for gfx90a",
                gpu_sample(gpu_library("gfx90a"), archs=("gfx90a",), files=("demo/db/kernels.gfx1100.dat",)),
            ),
            silent("only sm_90 code", gpu_sample(gpu_library("sm_90"), archs=("90",))),
            silent("no promised GPUs", gpu_sample(gpu_library("sm_80", "sm_90"))),
        ),
    ),
    Rule(
        id="dist/gpu-archs-differ",
        severity="info",
        title="Libraries in one wheel are built for different GPUs",
        why="The wheel as a whole works only on the GPUs that all libraries support; on others, some functions fail.",
        fix=(
            "build all libraries with the same TORCH_CUDA_ARCH_LIST or PYTORCH_ROCM_ARCH, or document which "
            "functions need which GPU"
        ),
        check=_differ,
        cases=lambda: (
            fires(
                "sm_75 in only one of two libraries", gpu_sample(gpu_library("sm_75", "sm_80"), gpu_library("sm_80"))
            ),
            silent(
                "sm_90 in both libraries, sm_90a in one",
                gpu_sample(gpu_library("sm_90", "sm_90a"), gpu_library("sm_90")),
            ),
            silent("the same GPUs", gpu_sample(gpu_library("sm_90"), gpu_library("sm_90"))),
            silent(
                "a grafted NVIDIA library for more GPUs",
                sample(
                    elfs={
                        "demo.libs/libnvjpeg.36e11081.so.13": gpu_library("sm_75", "sm_90"),
                        "demo/libdemo_cuda.so": gpu_library("sm_90"),
                    }
                ),
            ),
        ),
    ),
    Rule(
        id="dist/gpu-no-ptx",
        severity="info",
        title="The newest GPU code has no PTX",
        why="Binary code runs only within one GPU generation. Later generations need PTX, which the driver compiles.",
        fix="add PTX for the newest architecture (`TORCH_CUDA_ARCH_LIST=...;12.0+PTX`) if the wheel should "
        "support later GPUs",
        check=_no_ptx,
        cases=lambda: (
            fires("sm_80 to sm_120, no PTX", gpu_sample(gpu_library("sm_80", "sm_120"))),
            fires("PTX for an older generation", gpu_sample(gpu_library("sm_120", "compute_80"))),
            silent("PTX for the newest generation", gpu_sample(gpu_library("sm_120", "compute_120"))),
            silent("AMD code", gpu_sample(gpu_library("gfx90a"))),
        ),
    ),
)
