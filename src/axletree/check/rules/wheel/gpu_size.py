"""Rules about what GPU code weighs: packing, single architectures, files beside the libraries."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from axletree.backends.link_size import REACH
from axletree.binary.elf.facts import SectionSize
from axletree.check.engine import Found, Rule, fires, listing, silent, subject
from axletree.check.gpu import device_codes, gpu_libraries, named_files
from axletree.check.rules.wheel.gpu_sample import gpu_library, gpu_sample
from axletree.check.rules.wheel.sample import plain_library, sample
from axletree.core.units import format_bytes
from axletree.package.gpu.arch import order, parse_code

if TYPE_CHECKING:
    from collections.abc import Iterator

    from axletree.check.dist import DistFacts

_SOME, _MUCH = 1 << 20, 16 << 20
_LARGE = 50 << 20
_SHARE = 0.6
_X86_64 = 62
_NEAR = 0.75
"""From which part of what code reaches on: one more architecture of six is that much."""


def _stray_files(facts: DistFacts) -> Iterator[Found]:
    known = {
        code.processor for codes in gpu_libraries(facts).values() for each in codes if (code := parse_code(each.arch))
    }
    generic = any(name.endswith("-generic") or name == "amdgcnspirv" for name in known)
    if not any(known) or generic:
        return
    for processor, files in sorted(named_files(facts).items()):
        if processor not in known:
            size, paths = format_bytes(sum(files.values())), sorted(files)
            message = (
                f"{subject(paths, 'is', 'are')} for {processor} ({size}), but no library in the wheel has code "
                "for that GPU"
            )
            yield Found(paths[0], message, evidence=listing(paths))


def _raw(facts: DistFacts) -> dict[str, int]:
    """Path -> bytes of GPU code that is not compressed."""
    sizes = {
        path: sum(code.size for code in device_codes(elf) if code.packing == "none") for path, elf in facts.elfs.items()
    }
    return {path: sizes[path] for path in sorted(sizes, key=lambda path: (-sizes[path], path)) if sizes[path]}


def _uncompressed(facts: DistFacts, *, least: int = _MUCH, most: int | None = None) -> Iterator[Found]:
    sizes = _raw(facts)
    total = sum(sizes.values())
    if total >= least and (most is None or total < most):
        evidence = tuple(f"{path}: {format_bytes(size)}" for path, size in sizes.items())
        message = f"{format_bytes(total)} of the GPU code is not compressed"
        yield Found(facts.wheel.filename, message, evidence=evidence)


def _uncompressed_some(facts: DistFacts) -> Iterator[Found]:
    return _uncompressed(facts, least=_SOME, most=_MUCH)


def _one_arch(facts: DistFacts) -> Iterator[Found]:
    for path, elf in facts.elfs.items():
        sizes: dict[str, int] = {}
        for code in device_codes(elf):
            sizes[code.arch] = sizes.get(code.arch, 0) + code.size
        total = sum(sizes.values())
        largest = max(sizes, key=lambda arch: sizes[arch], default="")
        if len(sizes) > 2 and total >= _LARGE and sizes[largest] >= _SHARE * total:
            message = f"{sizes[largest] / total:.0%} of the GPU code ({format_bytes(total)}) is for {largest}"
            evidence = tuple(f"{arch}: {format_bytes(sizes[arch])}" for arch in sorted(sizes, key=order))
            yield Found(path, message, evidence=evidence)


def _of_size(size: int) -> DistFacts:
    """A wheel with one library that has so many bytes of GPU code."""
    library = plain_library()
    sections = (*library.sections, SectionSize(name=".nv_fatbin", size=size, loaded=True))
    return sample(elfs={"demo/libdemo.so": msgspec.structs.replace(library, sections=sections)})


def _near_reach(facts: DistFacts) -> Iterator[Found]:
    for path, elf in facts.elfs.items():
        loaded = sum(section.size for section in elf.sections if section.loaded)
        if elf.machine == _X86_64 and loaded >= _NEAR * REACH:
            sections = sorted(elf.sections, key=lambda section: -section.size)
            share = f"{loaded / REACH:.0%} of the {format_bytes(REACH)} that code can address"
            message = f"{format_bytes(loaded)} of the library is loaded into memory, which is {share}"
            evidence = tuple(
                f"{section.name}: {format_bytes(section.size)}" for section in sections[:4] if section.loaded
            )
            yield Found(path, message, evidence=evidence)


_COMPRESSION = (
    "Compressed code takes up a fifth to a third of the space once installed, and also makes the wheel smaller."
)
_COMPRESS = "compile with `nvcc --compress-mode=size` (CUDA 12.8 and later) or `clang --offload-compress`"

GPU_SIZE_RULES: tuple[Rule[DistFacts], ...] = (
    Rule(
        id="dist/near-reach",
        severity="warning",
        title="A library is almost too large to link",
        why="Code in the small code model can address 2 GiB on x86-64. The next architecture or release may push "
        "the library over that limit, and linking then fails with `relocation truncated to fit` after "
        "everything has been compiled.",
        fix="build for fewer architectures, use `nvcc -compress-mode=size`, or use a linker script that places "
        ".nv_fatbin after .bss",
        check=_near_reach,
        cases=lambda: (
            fires("1.8 GiB of GPU code", _of_size(1_900 << 20)),
            silent("1 GB of GPU code", _of_size(1_000 << 20)),
        ),
    ),
    Rule(
        id="dist/gpu-files-stray",
        severity="info",
        title="Files are for a GPU that no library supports",
        why="Libraries load kernel databases and code objects only for the GPUs that they were built for. Files "
        "for other GPUs are dead weight, or the libraries lack code for them by mistake.",
        fix="build the libraries and these files for the same list of architectures",
        check=_stray_files,
        cases=lambda: (
            fires(
                "gfx1100 files with a gfx90a library",
                gpu_sample(gpu_library("gfx90a"), files=("demo/library/Kernels.so-000-gfx1100.hsaco",)),
            ),
            silent(
                "gfx90a files with a gfx90a:xnack- library",
                gpu_sample(gpu_library("gfx90a:xnack-"), files=("demo/library/Kernels.so-000-gfx90a.hsaco",)),
            ),
            silent(
                "files without a library",
                sample(elfs={}, filename="demo-1.0-py3-none-any.whl", files=("demo/gfx90a.dat",)),
            ),
        ),
    ),
    Rule(
        id="dist/gpu-uncompressed",
        severity="warning",
        title="A large part of the GPU code is not compressed",
        why=_COMPRESSION,
        fix=_COMPRESS,
        check=_uncompressed,
        cases=lambda: (
            fires(
                "20 MB of uncompressed code", gpu_sample(gpu_library("sm_80", "sm_90", packing="none", size=10 << 20))
            ),
            silent("4 MB of uncompressed code", gpu_sample(gpu_library("sm_90", packing="none"))),
            silent("200 MB of compressed code", gpu_sample(gpu_library("sm_80", "sm_90", size=100 << 20))),
        ),
    ),
    Rule(
        id="dist/gpu-uncompressed-some",
        severity="info",
        title="Some GPU code is not compressed",
        why=_COMPRESSION,
        fix=_COMPRESS,
        check=_uncompressed_some,
        cases=lambda: (
            fires("4 MB of uncompressed code", gpu_sample(gpu_library("sm_90", packing="none"))),
            silent(
                "20 MB of uncompressed code, which another rule reports",
                gpu_sample(gpu_library("sm_80", "sm_90", packing="none", size=10 << 20)),
            ),
            silent("compressed code", gpu_sample(gpu_library("sm_90"))),
        ),
    ),
    Rule(
        id="dist/gpu-one-arch-share",
        severity="info",
        title="Most of the GPU code is for one GPU",
        why="Every user downloads this code, but few have that GPU: a separate variant would make the wheel "
        "smaller for everyone else.",
        fix="ship that architecture as a separate variant: `axletree thin WHEEL --arch-each`",
        check=_one_arch,
        cases=lambda: (
            fires(
                "70 of 90 MB for sm_90",
                gpu_sample(
                    plain_library(
                        device=(
                            *gpu_library("sm_80", "sm_120", size=10 << 20).device,
                            *gpu_library("sm_90", size=70 << 20).device,
                        )
                    )
                ),
            ),
            silent("the same amount for each GPU", gpu_sample(gpu_library("sm_80", "sm_90", "sm_120", size=30 << 20))),
        ),
    ),
)
