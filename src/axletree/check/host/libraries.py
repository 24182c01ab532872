"""BLAS, OpenMP, and libraries of which there are several."""

from __future__ import annotations

from axletree.check.host.part import FactGroup, HostLibrary


class MathLibrary(HostLibrary, frozen=True, kw_only=True):
    """A BLAS, LAPACK or MAGMA to build with."""

    headers: str | None = None
    """Folder of its headers; ``none``."""
    static: bool | None = None


class Copies(FactGroup, frozen=True, kw_only=True):
    """A library that exists several times where programs search.

    A program without a search path of its own uses the first. A program with one, such as torch with the paths of its
    own folders and of NVIDIA's wheels, uses a file from ``LD_LIBRARY_PATH`` if there is one, then its own, and never
    one from the loader's cache.
    """

    soname: str
    libraries: tuple[HostLibrary, ...]
    """In the loader's order: ``LD_LIBRARY_PATH``, then the cache; then those of Python or conda packages, which find
    them by their own search paths."""
    differ: bool | None = None
    """Whether they have different versions or different content."""


class Libraries(FactGroup, frozen=True, kw_only=True):
    """Libraries that affect whether a build works and how fast it is."""

    math: tuple[MathLibrary, ...] | None = None
    """MKL, OpenBLAS, BLIS, NVPL, reference BLAS, MAGMA."""
    openmp: tuple[HostLibrary, ...] | None = None
    """``gomp``, ``omp``, ``iomp5``, from all places."""
    copies: tuple[Copies, ...] | None = None
    preload: tuple[str, ...] | None = None
    """``LD_PRELOAD``."""
    search_path: tuple[str, ...] | None = None
    """``LD_LIBRARY_PATH``, an empty entry as ``.``."""
    search_path_missing: tuple[str, ...] | None = None
    """Folders of it that do not exist."""
