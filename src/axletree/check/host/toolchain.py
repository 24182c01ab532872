"""Compilers, linkers, and the tools of builds."""

from __future__ import annotations

from axletree.check.host.part import FactGroup, HostTool


class Runtime(FactGroup, frozen=True, kw_only=True):
    """A C++ runtime library, and the newest symbol versions that it defines."""

    path: str
    real: str | None = None
    glibcxx: str | None = None
    """``3.4.30``, of ``GLIBCXX_3.4.30``."""
    cxxabi: str | None = None
    """``1.3.13``."""


class Compiler(HostTool, frozen=True, kw_only=True):
    """A compiler and its defaults, as tested."""

    kind: str
    """``gcc``, ``clang``, ``nvcc``, ``hipcc``."""
    language: str
    """``c``, ``c++``, ``cuda``, ``hip``."""
    real: str | None = None
    """The program that links lead to."""
    wrapper: str | None = None
    """``ccache`` or similar, if the name leads to one."""
    origin: str | None = None
    """``PATH``, or the variable or folder that names it: ``CC``, ``CUDAHOSTCXX``, ``/usr/local/cuda``."""
    target: str | None = None
    """``x86_64-linux-gnu``."""
    sysroot: str | None = None
    """Its sysroot; ``/`` if it has none of its own."""
    includes: tuple[str, ...] | None = None
    """Folders that ``#include <...>`` searches, in order, including those from variables."""
    libraries: tuple[str, ...] | None = None
    """Folders that the linker searches, in order."""
    standards: tuple[str, ...] | None = None
    """The language standards that it accepts, out of ``c++17``, ``c++20``, ``c++23``."""
    linker: str | None = None
    """The linker that it runs."""
    assembler: str | None = None
    runtime: Runtime | None = None
    """The libstdc++ that it links."""
    works: bool | None = None
    """Whether it compiled and linked a small program, and the program ran (for GPU code: whether it compiled)."""
    openmp: bool | None = None
    """Whether it did so with ``-fopenmp``."""
    host_compiler: str | None = None
    """nvcc: the compiler that it runs for host code."""
    host_kind: str | None = None
    """nvcc: ``gcc`` or ``clang``."""
    host_version: str | None = None
    """nvcc: version of that compiler."""


class BuildTool(HostTool, frozen=True, kw_only=True):
    """cmake, ninja or make."""

    jobserver_fifo: bool | None = None
    """Whether it uses tokens of a FIFO job server; false if it ignores the server or stops with an error."""
    jobserver_pipe: bool | None = None
    """The same for a pipe."""


class Toolchain(FactGroup, frozen=True, kw_only=True):
    """Compilers, linkers and build tools."""

    compilers: tuple[Compiler, ...] | None = None
    """In the order in which builds find them: from ``CC``, ``CXX``, then PATH."""
    linkers: tuple[HostTool, ...] | None = None
    """``ld``, ``ld.bfd``, ``ld.gold``, ``ld.lld``, ``mold``."""
    build_tools: tuple[BuildTool, ...] | None = None
    """``cmake``, ``ninja``, ``make``: the first of each on PATH."""
    tools: tuple[HostTool, ...] | None = None
    """Binutils, ``patchelf``, ``ccache``, ``sccache``, ``pkg-config``, ``perl``, ``git-lfs`` and others."""
    runtime: Runtime | None = None
    """The libstdc++ that the loader uses for a program without a search path of its own."""
