"""How large PyTorch's CUDA library will be, before it is compiled: whether its architectures fit what code reaches.

Code of the small model (``-mcmodel=small``, what everybody compiles with on x86-64) reaches 2 GiB by relative
addresses. GPU code lies between the program and its data, so with too much of it the link ends in ``relocation
truncated to fit``, after hours. What one architecture takes is known from PyTorch's own wheels.
"""

from __future__ import annotations

import re
from typing import Literal

import msgspec

from axletree.core.shipped import read_table, shipped_file

REACH = 1 << 31
"""Bytes that a 32-bit relative address reaches to one side (System V ABI, AMD64 supplement, "Architectural
Constraints")."""
Mode = Literal["none", "speed", "balance", "size"]
MODES: tuple[Mode, ...] = ("none", "speed", "balance", "size")

_FAMILIES = {
    "Maxwell": "5.0;5.2",
    "Pascal": "6.0;6.1",
    "Volta": "7.0+PTX",
    "Turing": "7.5+PTX",
    "Ampere": "8.0;8.6+PTX",
    "Ada": "8.9+PTX",
    "Hopper": "9.0+PTX",
    "Blackwell": "10.0;10.3;12.0;12.1+PTX",
}
"""Names that PyTorch takes in an arch list (``cmake/Modules_CUDA_fix/.../select_compute_arch.cmake``)."""
_ARCH = re.compile(r"(\d{1,2})\.(\d)([af]?)(?:\(\d{1,2}\.\d\))?(\+PTX)?")
_MODE = re.compile(r"-?-compress-mode[= ,]+(\w+)")
_PTX = (0.6, 1.4)
"""Packed PTX of an architecture against its binary code: two entries of 2.14.1 have 1.36, unpacked 0.63."""
_MEASURED, _DERIVED = (0.9, 1.15), (0.75, 1.5)
"""Error bounds. Between releases an architecture grew by up to 13 % (12.4 to 12.6), from 2.8 to 2.14 by up to 24 %; a
mode that was converted is right to 20 %."""


class GpuArch(msgspec.Struct, frozen=True, kw_only=True):
    """One item of an arch list."""

    number: int
    """10 x major + minor."""
    suffix: str = ""
    ptx: bool = False

    def __str__(self) -> str:
        """As arch lists have it."""
        return f"{self.number // 10}.{self.number % 10}{self.suffix}{'+PTX' if self.ptx else ''}"


class Measured(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A wheel that was measured. Bytes."""

    torch: str
    cuda: str
    mode: Mode
    host: int
    packed: dict[int, int]
    unpacked: dict[int, int]


class LinkSizes(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What ``backends/data/link-size.toml`` holds."""

    library: str
    modes: dict[Mode, float]
    defaults: dict[str, Mode]
    measured: tuple[Measured, ...]


class LinkEstimate(msgspec.Struct, frozen=True, kw_only=True):
    """How large a library will be. Bytes."""

    library: str
    archs: tuple[GpuArch, ...]
    cuda: str
    mode: Mode
    least: int
    expected: int
    most: int
    basis: str
    """The wheel that was measured."""
    by_arch: dict[str, int]
    """Architecture -> expected bytes."""


def decode_link_sizes(data: bytes, *, file: str) -> LinkSizes:
    """Read the table of measured sizes (TOML).

    Raises:
        IntegrityError: it is not in its form.
    """
    return read_table(data, LinkSizes, file=file, wrong="the file is not a valid table of sizes")


LINK_SIZES = shipped_file("link-size.toml", decode_link_sizes)
"""The measured sizes that ship."""


def parse_arch_list(text: str) -> tuple[GpuArch, ...] | None:
    """Read ``TORCH_CUDA_ARCH_LIST``: ``8.0;9.0a 12.0+PTX``, names of families too; each once.

    Returns:
        ``None`` where it leaves the choice to CMake (``Auto``, ``Common``, ``All``), or holds what is no architecture.
    """
    found: dict[tuple[int, str], bool] = {}
    for item in re.split(r"[;,\s]+", text.strip()):
        name, plus, _ = item.partition("+PTX")
        for part in _FAMILIES.get(name, item).split(";"):
            match = _ARCH.fullmatch(part)
            if match is None:
                return None
            arch = (int(match[1] + match[2]), match[3])
            found[arch] = found.get(arch, False) or match[4] is not None or (name in _FAMILIES and plus != "")
    return tuple(GpuArch(number=number, suffix=suffix, ptx=ptx) for (number, suffix), ptx in found.items())


def compression(flags: str, *, cuda: str, sizes: LinkSizes) -> Mode:
    """How GPU code is packed: as the flags of nvcc say, else by the default of its release.

    PyTorch's own build always gives ``-Xfatbin -compress-all``.
    """
    given = [mode for word in _MODE.findall(flags) for mode in MODES if mode == word]
    if given:
        return given[-1]  # the last one counts
    older = [release for release in sizes.defaults if _release(release) <= _release(cuda)]
    return sizes.defaults[max(older, key=_release, default=min(sizes.defaults, key=_release))]


def estimate(archs: tuple[GpuArch, ...], *, cuda: str, mode: Mode, sizes: LinkSizes) -> LinkEstimate:
    """Estimate the loaded size of the library for some architectures.

    The wheel of the same release of CUDA counts, else that of the next older one. An architecture that it has no code
    for is taken to be as large as the nearest that it has.
    """
    basis = _basis(cuda, sizes)
    least = most = float(basis.host)
    expected = float(basis.host)
    by_arch: dict[str, int] = {}
    for arch in archs:
        nearest = min(basis.packed, key=lambda number: (abs(number - arch.number), number))
        size, exact = _packed(nearest, mode, basis, sizes)
        low, high = _MEASURED if exact and nearest == arch.number and basis.cuda == cuda else _DERIVED
        ptx_low, ptx_high = _PTX if arch.ptx else (0.0, 0.0)
        least += size * low * (1 + ptx_low)
        most += size * high * (1 + ptx_high)
        mine = size * (1 + (ptx_low + ptx_high) / 2)
        expected += mine
        by_arch[str(arch)] = round(mine)
    return LinkEstimate(
        library=sizes.library,
        archs=archs,
        cuda=cuda,
        mode=mode,
        least=round(least),
        expected=round(expected),
        most=round(most),
        basis=f"torch {basis.torch}, CUDA {basis.cuda}, mode {basis.mode}",
        by_arch=by_arch,
    )


def _packed(number: int, mode: Mode, basis: Measured, sizes: LinkSizes) -> tuple[float, bool]:
    """Bytes of an architecture in a mode, and whether just that was measured."""
    if mode == "none":
        return basis.unpacked[number], True
    if mode == basis.mode:
        return basis.packed[number], True
    return basis.packed[number] * sizes.modes[mode] / sizes.modes[basis.mode], False


def _basis(cuda: str, sizes: LinkSizes) -> Measured:
    older = [wheel for wheel in sizes.measured if _release(wheel.cuda) <= _release(cuda)]
    return max(older, key=lambda wheel: _release(wheel.cuda), default=sizes.measured[0])


def _release(text: str) -> tuple[int, ...]:
    return tuple(map(int, text.split(".")))
