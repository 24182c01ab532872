"""A project's files -> what is known of how it is built."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Literal

import msgspec

from axletree.core.errors import IntegrityError
from axletree.package.project.cmake import read_cmake, uses_scikit_build
from axletree.package.project.doubts import doubts_of
from axletree.package.project.gpu import gpu_use, switches_of
from axletree.package.project.languages import NATIVE, languages_of, tools_of
from axletree.package.project.meson import meson_files, missing_subprojects
from axletree.package.project.model import Found, Project
from axletree.package.project.modules import compiled_of, imports_of
from axletree.package.project.needs import asked_beyond, declared, name_of
from axletree.package.project.pyproject import read_backend, read_pyproject
from axletree.package.project.requirements import poetry_python, run_requirements, test_requirements
from axletree.package.project.setup_script import linked, read_setup
from axletree.package.project.stable_abi import stable_abi_of
from axletree.package.project.tree import is_aside, line_at
from axletree.package.project.versions import read_version
from axletree.package.wheel.metadata import Metadata, parse_fields

if TYPE_CHECKING:
    from collections.abc import Iterator

    from axletree.package.project.model import Asked, Backend
    from axletree.package.project.pyproject import PyProject
    from axletree.package.project.setup_script import SetupScript
    from axletree.package.project.tree import SourceTree

INFO = "PKG-INFO"
_EXTENSIONS = frozenset({"ext_modules", "cffi_modules", "rust_extensions", "cmake_source_dir", "ext_package"})
"""Arguments of ``setup()`` that make extension modules."""
_PYTHON = re.compile(r"Programming Language :: Python :: (3\.\d+)")
_HEADERS_OF_HOST = re.compile(r"dependency\s*\(\s*'(\w[\w.+-]*)'")
_HARMLESS = frozenset({"pybind11", "numpy", "python", "python3", "threads", "openmp", "nanobind", "cython", "dl", "m"})
"""Dependencies that meson finds without pkg-config."""


def read_project(tree: SourceTree, *, fallback: str) -> Project:
    """Everything that a project's files tell.

    Args:
        tree: The files.
        fallback: What it is called where no file contains its name.
    """
    project, script, info = read_pyproject(tree), read_setup(tree), _metadata(tree)
    backend, backend_at, in_tree = read_backend(project)
    name = _name(project, script, info, fallback)
    version = read_version(tree, project, script, _field(tree, info, "Version"), backend=backend)
    requires = declared(project)
    compiled = compiled_of(tree, script, project, backend)
    cmake = read_cmake(tree, project, backend)
    languages = languages_of(
        tree,
        backend,
        cmake=cmake if uses_scikit_build(project, backend) else None,
        compiles=_compiles(script, project, backend, tree),
        rust=_uses_rust(tree, script, backend, requires),
    )
    languages = (*languages, *_by_script_of_poetry(project, requires, languages))
    gpu = gpu_use(tree, languages, requires)
    run = run_requirements(tree, project, script, info)
    crates = _crates(tree, backend, requires, languages)
    asked = asked_beyond(tree, project, script, backend, version, requires, cmake)
    imports = imports_of(tree, project, script, backend, name.value)
    required = {name_of(each.value) for each in requires}
    possible = [each for each in cmake.possible if name_of(each.value) not in required]
    result = Project(
        name=name,
        version=version,
        summary=(info.get("Summary") or "") if info else str(project.get("project", "description") or ""),
        license=_license(tree, project, script, info),
        is_sdist=info is not None,
        backend=backend,
        backend_at=backend_at,
        in_tree_backend=in_tree,
        requires=requires,
        asked=asked,
        requires_python=_requires_python(tree, project, script, info),
        pythons=_pythons(project, info),
        stable_abi=stable_abi_of(tree, project, script, backend),
        compiles=bool(languages) or backend in NATIVE or _by_mypyc(tree, requires, asked),
        languages=languages,
        tools=tools_of(tree, backend, languages),
        gpu=gpu,
        switches=switches_of(tree),
        run_requires=run or (),
        test_requires=test_requirements(project, script, info, name=name.value),
        tests=_tests(tree),
        imports=imports,
        compiled=compiled,
        linked=tuple({each.value: each for each in linked(script)}.values()),
        crates=crates,
        downloads=(*cmake.downloads, *_subprojects(tree, backend, requires)),
        notices=tuple(doubts_of(tree, script, cmake, possible)),
        system_pybind11=_header_library(tree, backend, {name_of(each.value) for each in requires}),
    )
    return msgspec.structs.replace(result, unknown=tuple(_unknown(result, run_known=run is not None)))


def _unknown(project: Project, *, run_known: bool) -> Iterator[str]:
    """What a reader of the recipe must know that nobody could find out."""
    if project.version.stated is None and project.version.from_git:
        yield f"the version: {project.version.from_git} reads it from git, but no tag provides it"
    elif project.version.stated is None:
        yield "the version: no file contains it as plain text"
    if project.in_tree_backend:
        yield f"the requirements of its own build backend ({project.backend_at.value}) beyond {project.backend_at.file}"
    if project.backend == "other":
        yield f"the requirements of the build backend {project.backend_at.value} beyond build-system.requires"
    if not run_known:
        yield "the wheel's requirements: code computes them; add them to environments.test.requires"
    if not project.imports:
        yield "the wheel's modules: add them to tests.imports.imports"
    if project.version.from_git == "versioneer" and not project.is_sdist:
        yield "how to pass a version to versioneer, which has no variable for it: build from an sdist or an archive"


def _metadata(tree: SourceTree) -> Metadata | None:
    """The metadata of an sdist; ``None`` where there is none that can be read."""
    if INFO not in tree.texts:
        return None
    try:
        return parse_fields(tree.texts[INFO].encode(), file=INFO)
    except IntegrityError:
        return None


def _field(tree: SourceTree, info: Metadata | None, name: str) -> Found | None:
    value = info.get(name) if info else None
    if not value or value == "UNKNOWN":
        return None
    at = re.search(rf"^{re.escape(name)}:", tree.texts[INFO], re.MULTILINE | re.IGNORECASE)
    return Found(value=value, file=INFO, line=line_at(tree.texts[INFO], at.start()) if at else None)


def _name(project: PyProject, script: SetupScript, info: Metadata | None, fallback: str) -> Found:
    found = project.text("project", "name") or project.text("tool", "poetry", "name")
    found = found or script.text("name", "metadata", "name")
    if found is None and info is not None and info.name:
        found = Found(value=info.name, file=INFO)
    return found or Found(value=fallback, why="no file contains its name")


def _license(tree: SourceTree, project: PyProject, script: SetupScript, info: Metadata | None) -> Found | None:
    said = (
        project.text("project", "license"),
        project.text("project", "license", "text"),
        _field(tree, info, "License-Expression"),
        script.text("license", "metadata", "license"),
        _field(tree, info, "License"),
    )
    return next((each for each in said if each is not None and "\n" not in each.value), None)


def _requires_python(tree: SourceTree, project: PyProject, script: SetupScript, info: Metadata | None) -> Found | None:
    return (
        project.text("project", "requires-python")
        or _field(tree, info, "Requires-Python")
        or script.text("python_requires", "options", "python_requires")
        or poetry_python(project)
    )


def _pythons(project: PyProject, info: Metadata | None) -> tuple[str, ...]:
    texts = [each.value for each in project.texts("project", "classifiers")]
    texts += info.get_all("Classifier") if info else ()
    return tuple(dict.fromkeys(found[1] for text in texts if (found := _PYTHON.fullmatch(text.strip()))))


def _compiles(script: SetupScript, project: PyProject, backend: Backend, tree: SourceTree) -> bool:
    """Whether a build script, or a hook, makes extension modules."""
    if script.arguments.keys() & _EXTENSIONS or project.get("tool", "setuptools", "ext-modules"):
        return True
    hooks = (
        ("tool", "hatch", "build", "hooks"),
        ("tool", "poetry", "build"),
        ("tool", "pdm", "build", "run-setuptools"),
    )
    if backend == "other" or any(project.get(*hook) for hook in hooks):
        return True
    in_scripts = any(
        "Extension" in text for path, text in tree.texts.items() if "/" not in path and path.endswith(".py")
    )
    return in_scripts or any(path.endswith(".pyx") and not is_aside(path) for path in tree.sizes)


def _uses_rust(tree: SourceTree, script: SetupScript, backend: Backend, requires: tuple[Found, ...]) -> bool:
    """Whether a build compiles the Rust sources that are there: many projects have a second implementation in Rust."""
    names = {name_of(each.value) for each in requires}
    named = any("rust" in name or "maturin" in name for name in names) or "rust_extensions" in script.arguments
    return named or backend in (*NATIVE, "other") or re.search(r"\bcargo\b", tree.text("setup.py")) is not None


def _by_script_of_poetry(
    project: PyProject, requires: tuple[Found, ...], languages: tuple[Found, ...]
) -> Iterator[Found]:
    """Cython, where a build script of Poetry's compiles Python files with it."""
    script = project.text("tool", "poetry", "build", "script") or project.text("tool", "poetry", "build")
    by_cython = any(name_of(each.value) == "cython" for each in requires)
    if script is not None and by_cython and not any(each.value == "Cython" for each in languages):
        yield msgspec.structs.replace(script, value="Cython")


def _subprojects(tree: SourceTree, backend: Backend, requires: tuple[Found, ...]) -> tuple[Found, ...]:
    if backend != "meson-python":
        return ()
    return missing_subprojects(tree, {name_of(each.value) for each in requires})


def _by_mypyc(tree: SourceTree, requires: tuple[Found, ...], asked: tuple[Asked, ...]) -> bool:
    """Whether Python files are compiled."""
    names = {name_of(text) for text in (*(each.value for each in requires), *(each.requirement for each in asked))}
    return any("mypyc" in name for name in names) or "mypycify" in tree.text("setup.py")


def _crates(
    tree: SourceTree, backend: Backend, requires: tuple[Found, ...], languages: tuple[Found, ...]
) -> Literal["", "vendored", "fetched"]:
    """Where the crates of a Rust project come from."""
    by_rust = backend == "maturin" or any(name_of(each.value) == "setuptools-rust" for each in requires)
    if not by_rust and not ("Cargo.toml" in tree.sizes and any(each.value == "Rust" for each in languages)):
        return ""
    told = tree.text(".cargo/config.toml") or tree.text(".cargo/config")
    needs = re.search(r"^\[(?:build-|target\.[^\]\n]{1,200}\.)?dependencies", tree.text("Cargo.toml"), re.MULTILINE)
    lock = [path for path in tree.sizes if path.rpartition("/")[2] == "Cargo.lock"]
    if ("replace-with" in told and "directory" in told) or (needs is None and not lock):
        return "vendored"
    return "fetched"


def _header_library(tree: SourceTree, backend: Backend, requires: set[str]) -> Found | None:
    """pybind11 that meson would take from the host by pkg-config, though the build requires its own."""
    if backend != "meson-python" or not requires & {"pybind11", "nanobind"}:
        return None
    found: dict[str, Found] = {}
    for path, text in meson_files(tree):
        for match in _HEADERS_OF_HOST.finditer(text):
            found.setdefault(match[1], Found(value=match[1], file=path, line=line_at(text, match.start())))
    return found.get("pybind11") if found.keys() <= _HARMLESS else None


def _tests(tree: SourceTree) -> str:
    """The folder with the project's tests, where most projects have it."""
    for folder in ("tests", "test"):
        names = [path.rpartition("/")[2] for path in tree.below(folder)]
        if any(name.startswith("test_") and name.endswith(".py") for name in names):
            return folder
    return ""
