"""BLAS, OpenMP, and libraries of which there are several."""

from __future__ import annotations

from axletree.check.host.part import FactGroup, HostLibrary


class MathLibrary(HostLibrary, frozen=True, kw_only=True):
    """A BLAS, LAPACK or MAGMA to build with."""

    headers: str | None = None
    """Folder of its headers; ``none``."""
    static: bool | None = None


class Copies(FactGroup, frozen=True, kw_only=True):
    """A library of which several files lie where programs look.

    A program without a search path of its own takes the first. One with such a path, as torch has to what lies in its
    own folders and in NVIDIA's wheels, takes a file from ``LD_LIBRARY_PATH`` if there is one, else its own, and never
    one of the loader's cache.
    """

    soname: str
    libraries: tuple[HostLibrary, ...]
    """In the loader's order: ``LD_LIBRARY_PATH``, then the cache; then those that packages of Python or conda bring and
    find by their own search paths."""
    differ: bool | None = None
    """Whether they are of different versions, or of different content."""


class Libraries(FactGroup, frozen=True, kw_only=True):
    """Libraries that decide how fast and whether a build works."""

    math: tuple[MathLibrary, ...] | None = None
    """MKL, OpenBLAS, BLIS, NVPL, reference BLAS, MAGMA."""
    openmp: tuple[HostLibrary, ...] | None = None
    """``gomp``, ``omp``, ``iomp5``, wherever they lie."""
    copies: tuple[Copies, ...] | None = None
    preload: tuple[str, ...] | None = None
    """``LD_PRELOAD``."""
    search_path: tuple[str, ...] | None = None
    """``LD_LIBRARY_PATH``, an empty entry as ``.``."""
    search_path_missing: tuple[str, ...] | None = None
    """Folders of it that are not there."""
