"""Libraries with GPU code for the cases of the rules."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from axletree.binary.gpu.code import DeviceCode, DeviceSection
from axletree.check.rules.wheel.sample import plain_library, sample

if TYPE_CHECKING:
    from axletree.binary.elf.facts import ElfFacts
    from axletree.binary.gpu.code import Packing
    from axletree.check.dist import DistFacts

_LIB = "demo/lib/libdemo_cuda.so"
_OTHER = "demo/lib/libdemo_linalg.so"


def gpu_library(
    *archs: str, packing: Packing = "zstd", size: int = 4 << 20, section: str = ".nv_fatbin", damaged: str | None = None
) -> ElfFacts:
    """A library with as many bytes of code for each architecture."""
    code = tuple(
        DeviceCode(
            section=section,
            arch=arch,
            form="intermediate" if arch.startswith("compute_") else "binary",
            packing=packing,
            count=1,
            size=size,
            unpacked=size * 4,
            containers=1,
        )
        for arch in archs
    )
    found = DeviceSection(section=section, containers=1, size=size * len(archs), code=code, damaged=damaged)
    return plain_library(device=(found,))


def gpu_sample(*libraries: ElfFacts, **changes: Any) -> DistFacts:
    """A wheel that has these as its libraries."""
    return sample(elfs=dict(zip((_LIB, _OTHER), libraries, strict=False)), **changes)
