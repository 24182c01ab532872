"""BLAS, OpenMP, and libraries of which there are several."""

from __future__ import annotations

from axletree.check.host.part import Library, Part


class MathLibrary(Library, frozen=True, kw_only=True):
    """A BLAS, LAPACK or MAGMA to build with."""

    headers: str | None = None
    """Folder of its headers; ``none``."""
    static: bool | None = None


class Copies(Part, frozen=True, kw_only=True):
    """A library of which several files lie in the search path: the first wins."""

    soname: str
    libraries: tuple[Library, ...]
    """In the loader's order: ``LD_LIBRARY_PATH``, then the cache; then those that packages of Python or conda bring and
    find by their own search paths."""
    differ: bool | None = None
    """Whether they are of different versions, or of different content."""


class Libraries(Part, frozen=True, kw_only=True):
    """Libraries that decide how fast and whether a build works."""

    math: tuple[MathLibrary, ...] | None = None
    """MKL, OpenBLAS, BLIS, NVPL, reference BLAS, MAGMA."""
    openmp: tuple[Library, ...] | None = None
    """``gomp``, ``omp``, ``iomp5``, wherever they lie."""
    copies: tuple[Copies, ...] | None = None
    preload: tuple[str, ...] | None = None
    """``LD_PRELOAD``."""
    search_path: tuple[str, ...] | None = None
    """``LD_LIBRARY_PATH``, an empty entry as ``.``."""
    search_path_missing: tuple[str, ...] | None = None
    """Folders of it that are not there."""
