"""What goes together: CUDA with host compilers, drivers and GPUs, PyTorch's source with CMake and GCC; from a table."""

from __future__ import annotations

import re

import msgspec

from axletree.core.shipped import read_table, shipped_file

Numbers = tuple[int, ...]


class CudaBounds(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What one CUDA release takes."""

    gcc: tuple[int, int] | None = None
    """Least major version of GCC that nvcc takes as host compiler, and the first that it does not take any more."""
    clang: tuple[int, int] | None = None
    driver: str
    """Oldest driver that runs what is built with it."""
    archs: tuple[int, int]
    """First and last GPU generation that nvcc compiles for: 75 for 7.5."""


class TorchBounds(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the source tree of a PyTorch release demands."""

    cmake: tuple[str, str]
    """Least version, and the first that is refused (empty: none)."""
    gcc: str
    """Least version."""


class Bounds(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The table."""

    cuda: dict[str, CudaBounds]
    torch: dict[str, TorchBounds]

    def of_cuda(self, release: str) -> CudaBounds | None:
        """Bounds of a release such as ``12.4`` or ``12.4.131``; ``None`` for one that the table lacks."""
        return self.cuda.get(".".join(release.split(".")[:2]))

    def of_torch(self, version: str) -> TorchBounds | None:
        """Bounds of the newest release in the table that is not newer than a version."""
        named = sorted(self.torch, key=numbers)
        older = [release for release in named if numbers(release) <= numbers(version)[: len(numbers(release))]]
        return self.torch[older[-1]] if older else None


def decode_bounds(data: bytes, *, file: str) -> Bounds:
    """Read the table (TOML).

    Raises:
        IntegrityError: it is not in its form.
    """
    return read_table(data, Bounds, file=file, wrong="the file is not a valid table of version bounds")


TOOLCHAIN_BOUNDS = shipped_file("toolchain-bounds.toml", decode_bounds)
"""The table that ships."""


def numbers(version: str) -> Numbers:
    """The numbers that a version begins with, to compare by: (2, 8, 0) of ``2.8.0+cu128``."""
    found = re.match(r"\d+(?:\.\d+)*", version)
    return tuple(int(part) for part in found[0].split(".")) if found else ()
