"""What rules about GPU code look at: which code a wheel has, and for which GPUs it was promised."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from axletree.core.errors import AxletreeError, IntegrityError
from axletree.package.gpu.arch import Gpu, parse_gpu
from axletree.package.gpu.variant import VARIANT_FILE, parse_variants

if TYPE_CHECKING:
    from collections.abc import Iterator

    from axletree.binary.elf.facts import ElfFacts
    from axletree.binary.gpu.code import DeviceCode
    from axletree.check.dist import DistFacts

_RELOCATABLE = "__nv_relfatbin"
"""What a device linker takes (``-rdc``); the driver loads what was linked from it, in ``.nv_fatbin``."""
_IN_LABEL = re.compile(r"(?:^|[_.])(?:sm_?(\d{2,3}[af]?)|(gfx[0-9a-f]{3,5}))(?=$|[_.])")
_IN_NAME = re.compile(r"(?<![A-Za-z0-9])(gfx[0-9]{1,2}[0-9a-f]{2})(?![0-9A-Za-z])")
_PROPERTY = re.compile(r"(\d{2,3}[af]?)(?:_real|_virtual)?|(gfx[0-9a-f]{3,5})")


def gpu_libraries(facts: DistFacts) -> dict[str, tuple[DeviceCode, ...]]:
    """Path -> GPU code of each file that a driver can load."""
    return {path: codes for path, elf in facts.elfs.items() if (codes := tuple(device_codes(elf, loaded=True)))}


def device_codes(elf: ElfFacts, *, loaded: bool = False) -> Iterator[DeviceCode]:
    """All GPU code of a file; ``loaded``: only what a driver can load."""
    for section in elf.device:
        if not loaded or section.section != _RELOCATABLE:
            yield from section.code


def promised_gpus(facts: DistFacts) -> tuple[Gpu, ...]:
    """The GPUs that the caller, the variant label or ``variant.json`` names, sorted."""
    texts = {*facts.archs, *(one or other for one, other in _IN_LABEL.findall(facts.wheel.name.variant))}
    texts.update(_properties(facts.wheel.texts.get(f"{facts.wheel.dist_info}/{VARIANT_FILE}", b"")))
    found: dict[str, Gpu] = {}
    for text in texts:
        try:
            gpu = parse_gpu(text)
        except AxletreeError:
            continue
        found[gpu.name] = gpu
    return tuple(found[name] for name in sorted(found, key=lambda name: (len(name), name)))


def _properties(data: bytes) -> Iterator[str]:
    """GPUs in the values of ``sm_arch``, ``gfx_arch`` and the like of a variant (PEP 825)."""
    try:
        variants = parse_variants(data).variants
    except IntegrityError:
        return  # whether the file is right is another's business
    for variant in variants:
        for part in variant.properties:
            found = _PROPERTY.fullmatch(part.value) if "arch" in part.feature else None
            if found is not None:
                yield found[1] or found[2]


def named_files(facts: DistFacts) -> dict[str, dict[str, int]]:
    """AMD processor -> path and size of the files whose names say that they are for it."""
    found: dict[str, dict[str, int]] = {}
    for member in facts.wheel.members:
        name = _IN_NAME.search(member.path.rpartition("/")[2])
        if name is not None and not member.path.endswith((".py", ".pyi", ".h", ".hpp", ".json", ".md")):
            found.setdefault(name[1], {})[member.path] = member.size
    return found
