"""What files of a tree are to a build, by their names."""

from __future__ import annotations

import re
from pathlib import PurePosixPath

_COMPILED = r"c|cc|cpp|cxx|c\+\+|cuh?|h|hh|hip|hpp|hxx|inc|inl|ipp|mm?|[sS]|asm|f|f90|cl"
_IS_COMPILED = re.compile(rf"\.(?:{_COMPILED})")
_IS_CODE = re.compile(rf"\.(?:{_COMPILED}|pyx|pxd|pxi|cmake|in)")
_IS_HEADER = re.compile(r"\.(?:h|hh|hpp|hxx|cuh|inc|inl|ipp|pxd|pxi|in)")


def is_compiled(name: str) -> bool:
    """Whether a file of this name is compiled or included: a configuration may read it, and keeps nothing."""
    return _IS_COMPILED.fullmatch(PurePosixPath(name).suffix) is not None


def is_code(name: str) -> bool:
    """Whether a file of this name is compiled, included, made code of, or read by CMake."""
    return name == "CMakeLists.txt" or _IS_CODE.fullmatch(PurePosixPath(name).suffix) is not None


def is_header(name: str) -> bool:
    """Whether a file of this name is one that others include."""
    return _IS_HEADER.fullmatch(PurePosixPath(name).suffix) is not None
