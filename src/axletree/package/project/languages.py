"""Which languages a project compiles, and which programs of the host its build calls."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from axletree.package.project.meson import meson_files
from axletree.package.project.model import Found
from axletree.package.project.tree import is_aside, line_at

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from axletree.package.project.cmake import CMakeUse
    from axletree.package.project.model import Backend, Language
    from axletree.package.project.tree import SourceTree

_SUFFIXES: dict[str, Language] = {
    **dict.fromkeys((".c",), "C"),
    **dict.fromkeys((".cc", ".cpp", ".cxx", ".c++"), "C++"),
    ".cu": "CUDA",
    ".hip": "HIP",
    **dict.fromkeys((".f", ".for", ".f77", ".f90", ".f95", ".f03", ".f08"), "Fortran"),
    ".pyx": "Cython",
    ".rs": "Rust",
}
NATIVE: tuple[Backend, ...] = ("scikit-build-core", "meson-python", "maturin")
"""Backends whose projects compile whatever sources they have."""
_RUST: tuple[tuple[Language, str], ...] = (("Rust", "cargo"), ("Rust", "rustc"))
_CXX_CYTHON = re.compile(r"language\s*=\s*[\"']?c\+\+")
_MESON_CALL = re.compile(r"^[ \t]*(?:project|add_languages)[ \t]*\((?P<rest>[^)]{0,400})", re.MULTILINE)
_MESON_LANGUAGE = re.compile(r"'(cpp|fortran|cython|cuda|c|rust)'")
_OF_MESON: dict[str, Language] = {
    "c": "C",
    "cpp": "C++",
    "fortran": "Fortran",
    "cython": "Cython",
    "cuda": "CUDA",
    "rust": "Rust",
}
_CMAKE_ENABLE = re.compile(r"enable_language\s*\(\s*(CUDA|HIP|Fortran)|\bLANGUAGES\b([^)]{0,80})")
_PKG_CONFIG = {
    "setup.py": re.compile(r"pkg-config|pkgconfig"),
    "meson.build": re.compile(r"method\s*:\s*'pkg-config'"),
    "CMakeLists.txt": re.compile(r"pkg_check_modules|pkg_search_module|find_package\s*\(\s*PkgConfig"),
}


def languages_of(
    tree: SourceTree, backend: Backend, *, cmake: CMakeUse | None = None, compiles: bool, rust: bool = True
) -> tuple[Found, ...]:
    """The compiled languages of a project, each once, with the first file of it.

    Args:
        tree: The project.
        backend: What builds it.
        cmake: What its CMake files do, where scikit-build-core runs them.
        compiles: Whether its build script makes extension modules.
        rust: Whether its build compiles Rust.
    """
    if not compiles and backend not in NATIVE and cmake is None:
        return ()
    found: dict[str, Found] = {}
    if backend == "meson-python" and (told := tuple(_of_meson(tree))):
        return tuple({each.value: each for each in told}.values())
    for path in sorted(tree.sizes, key=lambda path: (path.count("/"), path)):
        dot = path.rfind(".")
        language = _SUFFIXES.get(path[dot:].lower()) if dot > 0 and not is_aside(path) else None
        if language is not None and (rust or language != "Rust") and not _is_off(path, cmake):
            found.setdefault(language, Found(value=language, file=path))
    for each in _of_cmake(tree, cmake):
        found.setdefault(each.value, each)
    return tuple(found[name] for name in sorted(found))


def _of_meson(tree: SourceTree) -> Iterator[Found]:
    """Languages that meson.build declares; other files there may be of vendored projects and of their tests."""
    text = dict(meson_files(tree)).get("meson.build", "")
    for call in _MESON_CALL.finditer(text):
        for match in _MESON_LANGUAGE.finditer(call["rest"]):
            line = line_at(text, call.start("rest") + match.start())
            yield Found(value=_OF_MESON[match[1]], file="meson.build", line=line)


def _is_off(path: str, cmake: CMakeUse | None) -> bool:
    """Whether a file lies in a folder that the project's options leave out."""
    return cmake is not None and any(path.startswith(f"{folder}/") for folder in cmake.off)


def _of_cmake(tree: SourceTree, cmake: CMakeUse | None) -> Iterator[Found]:
    """Languages that CMake files enable, for sources that they generate or fetch."""
    for path in tree.texts:
        if path == "CMakeLists.txt" or (path.endswith("/CMakeLists.txt") and cmake is not None):
            if _is_off(path, cmake) or is_aside(path):
                continue
            for match in _CMAKE_ENABLE.finditer(tree.text(path)):
                names = [match[1]] if match[1] else re.findall(r"\b(?:CUDA|HIP|Fortran|CXX|C)\b", match[2])
                for name in names if cmake is not None else [name for name in names if name not in {"C", "CXX"}]:
                    language = name.replace("CXX", "C++")
                    yield Found(value=language, file=path, line=line_at(tree.text(path), match.start()))


def tools_of(tree: SourceTree, backend: Backend, languages: Iterable[Found]) -> tuple[Found, ...]:
    """Programs of the host that a build calls; what Python packages bring as well is not among them."""
    found: dict[str, Found] = {}
    by_name = {each.value: each for each in languages}
    compiled = by_name.keys() - {"Rust"}
    for language, tool in (("C", "cc"), ("Cython", "cc"), ("C++", "c++"), ("Fortran", "gfortran"), *_RUST):
        if language in by_name:
            found.setdefault(tool, Found(value=tool, file=by_name[language].file, line=by_name[language].line))
    if "cc" not in found and compiled and backend != "meson-python":
        found["cc"] = Found(value="cc", why="CMake and setuptools always need a C compiler")
    if "Cython" in by_name and "c++" not in found and _cython_is_cxx(tree):
        found["c++"] = Found(value="c++", file="setup.py")
    for file, pattern in _PKG_CONFIG.items():
        if compiled and (match := pattern.search(tree.text(file))):
            found.setdefault(
                "pkg-config", Found(value="pkg-config", file=file, line=line_at(tree.text(file), match.start()))
            )
    return tuple(found.values())


def _cython_is_cxx(tree: SourceTree) -> bool:
    return any(_CXX_CYTHON.search(tree.text(file)) for file in ("setup.py", "pyproject.toml", "setup.cfg"))
