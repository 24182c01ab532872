"""Names of GPUs and of code for them, and which runs on which.

NVIDIA (CUDA C++ Programming Guide, "Binary Compatibility" and "PTX Compatibility"): a binary runs on GPUs of the same
major version and the same or a higher minor one; with suffix ``a`` only on exactly its GPU, with ``f`` on the family,
which so far is again the major version from its own minor on. PTX runs on equal and higher versions; ``a`` and ``f``
restrict it in the same way. Tegra boards and other GPUs do not run each other's binaries.

AMD (LLVM "User Guide for AMDGPU Backend", target IDs): processors must be equal, or the code's a generic one that
stands for the GPU's; a feature (``xnack``, ``sramecc``) that both name must agree.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Literal

import msgspec

from axletree.core.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

Maker = Literal["nvidia", "hip"]

_TEGRA = frozenset({53, 62, 72, 87})
_GENERIC = {
    "gfx9-generic": ("gfx900", "gfx902", "gfx904", "gfx906", "gfx909", "gfx90c"),
    "gfx9-4-generic": ("gfx940", "gfx941", "gfx942", "gfx950"),
    "gfx10-1-generic": ("gfx1010", "gfx1011", "gfx1012", "gfx1013"),
    "gfx10-3-generic": ("gfx1030", "gfx1031", "gfx1032", "gfx1033", "gfx1034", "gfx1035", "gfx1036"),
    "gfx11-generic": (
        *("gfx1100", "gfx1101", "gfx1102", "gfx1103"),
        *("gfx1150", "gfx1151", "gfx1152", "gfx1153"),
    ),
    "gfx12-generic": ("gfx1200", "gfx1201"),
}
"""Generic processors: the GPUs that run their code ("Generic processor code object versioning" of the guide above)."""
SPIRV = "amdgcnspirv"
"""AMD's portable code, compiled by the driver."""

_NVIDIA_CODE = re.compile(r"(sm|compute|lto|kind\d+)_(\d{2,3})([af]?)")
_NVIDIA_GPU = re.compile(r"(?:sm_?|compute_)?(\d{2,3})[af]?|(\d{1,2})\.(\d)")
_HIP = re.compile(r"(gfx[0-9a-f]+|gfx\d+(?:-\d)?-generic)((?::(?:xnack|sramecc)[+-])*)")


class CodeArch(msgspec.Struct, frozen=True, kw_only=True):
    """What code was made for."""

    maker: Maker
    name: str
    """As the maker's tools spell it: ``sm_90a``, ``compute_120``, ``gfx90a:xnack-``."""
    form: Literal["binary", "intermediate", "other"]
    """``other``: code that no driver loads, such as that for link-time optimisation."""
    number: int = 0
    """NVIDIA: 10 x major + minor."""
    suffix: Literal["", "a", "f"] = ""
    processor: str = ""
    """AMD: ``gfx90a``."""
    features: tuple[tuple[str, bool], ...] = ()
    """AMD: (feature, on) of those that it names."""


class Gpu(msgspec.Struct, frozen=True, kw_only=True):
    """A GPU that code is wanted for."""

    maker: Maker
    name: str
    """``90`` or ``gfx90a:xnack-``."""
    number: int = 0
    processor: str = ""
    features: tuple[tuple[str, bool], ...] = ()


def parse_code(name: str) -> CodeArch | None:
    """What an entry's architecture says; ``None`` where it is of no known form."""
    found = _NVIDIA_CODE.fullmatch(name)
    if found is not None:
        kind, number, suffix = found.groups()
        form: Literal["binary", "intermediate", "other"] = (
            "binary" if kind == "sm" else "intermediate" if kind == "compute" else "other"
        )
        return CodeArch(maker="nvidia", name=name, form=form, number=int(number), suffix=suffix)  # type: ignore[arg-type]
    if name == SPIRV:
        return CodeArch(maker="hip", name=name, form="intermediate", processor=name)
    found = _HIP.fullmatch(name)
    if found is None:
        return None
    return CodeArch(maker="hip", name=name, form="binary", processor=found[1], features=_features(found[2]))


def parse_gpu(text: str) -> Gpu:
    """Read a GPU: ``90``, ``9.0``, ``sm_90``, ``90a`` (the GPU that runs it), ``gfx90a``, ``gfx90a:xnack-``.

    Raises:
        UsageError: it is none of these.
    """
    found = _NVIDIA_GPU.fullmatch(text)
    if found is not None:
        number = int(found[1] or found[2] + found[3])
        return Gpu(maker="nvidia", name=str(number), number=number)
    found = _HIP.fullmatch(text)
    if found is not None and not found[1].endswith("-generic"):
        return Gpu(maker="hip", name=text, processor=found[1], features=_features(found[2]))
    hint = "use a name such as 90, sm_90, 9.0 or gfx90a:xnack-"
    raise UsageError(f"unknown GPU architecture {text[:60]!r}", hint=hint)


def gpu_of(code: CodeArch) -> Gpu | None:
    """The GPU that binary code was made for; ``None`` for generic and intermediate code."""
    if code.form != "binary" or code.processor.endswith("-generic"):
        return None
    if code.maker == "nvidia":
        return Gpu(maker="nvidia", name=str(code.number), number=code.number)
    return Gpu(maker="hip", name=code.name, processor=code.processor, features=code.features)


def order(name: str) -> tuple[object, ...]:
    """A key that sorts architectures: NVIDIA's binaries by number, then PTX, then AMD's by their digits."""
    code = parse_code(name)
    if code is None:
        return (9, 0, "", name)
    digits = int(re.sub(r"\D", "", code.processor) or 0) if code.maker == "hip" else code.number
    rank = (code.maker == "hip") * 3 + ("binary", "intermediate", "other").index(code.form)
    return (rank, digits, code.suffix, name)


def runs(code: CodeArch, gpu: Gpu) -> bool:
    """Whether a driver can run code on a GPU, as it is or by compiling it."""
    if code.maker != gpu.maker or code.form == "other":
        return False
    if code.maker == "hip":
        return code.form == "intermediate" or _runs_on_amd(code, gpu)
    if code.suffix == "a":
        return code.number == gpu.number
    if code.suffix == "f" or code.form == "binary":
        same_major = code.number // 10 == gpu.number // 10
        if code.form == "binary" and code.number != gpu.number and {code.number, gpu.number} & _TEGRA:
            return False
        return same_major and code.number <= gpu.number
    return code.number <= gpu.number


def _runs_on_amd(code: CodeArch, gpu: Gpu) -> bool:
    if code.processor != gpu.processor and gpu.processor not in _GENERIC.get(code.processor, ()):
        return False
    wanted = dict(gpu.features)
    return all(wanted.get(feature, on) == on for feature, on in code.features)


def choose(codes: Sequence[CodeArch | None], gpu: Gpu) -> frozenset[int]:
    """Which entries of a container a GPU needs: all that its driver may pick, so that it picks what it always did.

    Those are the binaries that run on it with the highest number, among plain ones, those with ``a`` and those with
    ``f`` each; AMD's generic code only where there is none for the very processor. Only where no binary runs,
    intermediate code is chosen in the same way. Empty where nothing runs.
    """
    for form in ("binary", "intermediate"):
        able = [
            (index, code)
            for index, code in enumerate(codes)
            if code is not None and code.form == form and runs(code, gpu)
        ]
        if able:
            return frozenset(_best(able))
    return frozenset()


def _best(able: Sequence[tuple[int, CodeArch]]) -> Iterable[int]:
    if able[0][1].maker == "hip":
        exact = [index for index, code in able if not code.processor.endswith("-generic")]
        return exact or [index for index, _ in able]
    highest: dict[str, int] = {}
    for _, code in able:
        highest[code.suffix] = max(code.number, highest.get(code.suffix, 0))
    return [index for index, code in able if code.number == highest[code.suffix]]


def _features(text: str) -> tuple[tuple[str, bool], ...]:
    return tuple(sorted((part[:-1], part[-1] == "+") for part in text.split(":") if part))
