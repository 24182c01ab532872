"""Who brings which shared libraries: families of SONAMEs that a distribution, a driver or a system owns.

The data lies in ``axletree/backends/data/providers-*.toml``; :mod:`axletree.host.providers` reads it. Naming owners by
distribution, not by lists of file names, is what keeps a new CUDA major from being grafted into every wheel.
"""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Literal

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterable


class Provider(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An owner of shared libraries."""

    name: str
    """What messages call it: ``torch``, ``nvidia-cublas``, ``NVIDIA driver``."""
    kind: Literal["distribution", "driver"] = "distribution"
    distributions: tuple[str, ...] = ()
    """Normalised names of distributions, any of which brings them: ``nvidia-cublas``, ``nvidia-cublas-cu12``."""
    sonames: tuple[str, ...]
    """Patterns of SONAMEs: ``libcublas.so.*``."""
    folders: tuple[str, ...] = ()
    """Where they lie below site-packages, newest layout first: ``nvidia/cu13/lib``, ``nvidia/cublas/lib``."""

    def brings(self, soname: str) -> bool:
        """Whether a library is one of its."""
        return any(fnmatchcase(soname, pattern) for pattern in self.sonames)


def find_provider(providers: Iterable[Provider], soname: str) -> Provider | None:
    """The first provider that owns a SONAME, or ``None``."""
    return next((provider for provider in providers if provider.brings(soname)), None)
