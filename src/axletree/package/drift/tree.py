"""A source tree's files that say something of dependencies: which they are, and what they say together."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import msgspec

from axletree.package.drift.cmake import find_pins, project_version
from axletree.package.drift.requirements import (
    RequirementOrigin,
    of_build_matrix,
    of_pyproject,
    of_requirements_file,
    of_setup_py,
)
from axletree.package.drift.scripts import of_pin_file, of_script
from axletree.package.drift.tags import parse_describe, tag_version
from axletree.package.drift.vendored import (
    FOLDERS,
    HEADERS,
    VERSION_FILES,
    VendoredSubmodule,
    of_copy,
    of_submodule,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from axletree.package.drift.evidence import Evidence
    from axletree.package.drift.names import DependencyTable

_TESTS = re.compile(r"(?:^|/)(?:tests?|examples?|docs?|benchmarks?|tutorials?|samples?)/")
_CI = re.compile(r"^(?:\.ci|\.circleci|\.github|ci|\.gitlab)/")
_REQUIREMENTS = re.compile(r"(?:^|/)[\w.-]*requirements[\w.-]*\.txt$")
_DEEPEST = 6
_OWN = ("requirements.txt", "requirements-build.txt", "pyproject.toml", "setup.py", "version.txt", "VERSION")


class SourceFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What was read of a source tree."""

    folder: str
    """As the user gave it."""
    files: dict[str, str]
    """Path from the tree -> content, of the files that may tell."""
    copies: tuple[str, ...] = ()
    """Folders with vendored copies, whether their files tell anything or not."""
    submodules: tuple[VendoredSubmodule, ...] = ()
    commit: str = ""
    """The commit that was read; empty where the tree is no git repository."""
    described: str = ""
    """``git describe --tags --long`` of it."""
    notes: tuple[str, ...] = ()


def headers_of(table: DependencyTable) -> frozenset[str]:
    """Names, without folders, of the files in which the table looks for versions of vendored copies."""
    return frozenset(
        macro.file.rpartition("/")[2] for dependency in table.dependencies.values() for macro in dependency.macros
    )


def is_wanted(path: str, *, modules: Collection[str] = (), headers: frozenset[str] = frozenset()) -> bool:
    """Whether a file of a tree may say something of dependencies, by its path.

    Args:
        path: from the tree.
        modules: folders that are known to hold vendored copies, beside those that are usual.
        headers: see :func:`headers_of`.
    """
    last = path.rpartition("/")[2]
    folder = copy_of(path, modules)
    if folder is not None:
        inside = path.removeprefix(f"{folder}/")
        told = inside in VERSION_FILES or HEADERS.search(inside) is not None or last in headers
        return _is_download(last) or (told and inside.count("/") <= _DEEPEST)
    if path in _OWN or "/" not in path:
        return path in _OWN or path == "CMakeLists.txt"
    if _CI.match(path):
        pins = last.endswith(".txt") and ("pin" in path or last.endswith("_version.txt"))
        return pins or last.endswith(".sh") or "build_matrix" in last or _REQUIREMENTS.search(path) is not None
    if _TESTS.search(path):
        return False
    beside_copies = path.rpartition("/")[0] in FOLDERS and last.endswith(".txt")
    return beside_copies or last == "CMakeLists.txt" or last.endswith(".cmake")


def copy_of(path: str, modules: Collection[str] = ()) -> str | None:
    """The innermost folder with a vendored copy that a file is in: a known one, or where copies usually lie."""
    parts = path.split("/")
    for at in range(len(parts) - 1, 0, -1):
        folder = "/".join(parts[:at])
        if folder in modules or (1 < at <= _DEEPEST and parts[at - 2] in FOLDERS):
            return folder
    return None


def _is_download(last: str) -> bool:
    """NNPACK's DownloadSix.cmake and its like."""
    return last.startswith("Download") and last.endswith(".cmake")


def source_version(facts: SourceFacts) -> tuple[str, str] | None:
    """The version of a tree and what says so: ``version.txt``, else the tag of its commit, else its CMake project."""
    text = facts.files.get("version.txt", "").strip()
    if (version := tag_version(text)) is not None:
        return str(version), "version.txt"
    described = parse_describe(facts.described)
    if described is not None and described.commits == 0 and (version := tag_version(described.tag)) is not None:
        return str(version), f"tag {described.tag}"
    found = project_version(facts.files.get("CMakeLists.txt", ""), file="CMakeLists.txt")
    return None if found is None else (found[0], f"CMakeLists.txt:{found[1]}")


def of_tree(facts: SourceFacts, *, table: DependencyTable, pythons: tuple[str, ...]) -> tuple[Evidence, ...]:
    """Everything that a source tree says of its dependencies."""
    found: list[Evidence] = [of_submodule(module, table=table) for module in facts.submodules]
    modules = {module.path: module for module in facts.submodules}
    copies: dict[str, dict[str, str]] = {folder: {} for folder in facts.copies}
    for path, text in facts.files.items():
        folder = copy_of(path, modules)
        if folder is not None:
            copies.setdefault(folder, {})[path.removeprefix(f"{folder}/")] = text
            if _is_download(path.rpartition("/")[2]):
                found += find_pins(text, file=path, table=table)
        else:
            found += _of_file(path, text, table, pythons)
    for folder, files in sorted(copies.items()):
        url = modules[folder].url if folder in modules else ""
        found += of_copy(folder, files, table=table, url=url)
    return tuple(found)


def _of_file(path: str, text: str, table: DependencyTable, pythons: tuple[str, ...]) -> Iterable[Evidence]:
    last = path.rpartition("/")[2]
    if path == "pyproject.toml":
        return of_pyproject(text, file=path, table=table, pythons=pythons)
    if path == "setup.py":
        return of_setup_py(text, file=path, table=table, pythons=pythons)
    if _REQUIREMENTS.search(path):
        return _of_list(path, text, table, pythons)
    if last.endswith(".py"):
        return of_build_matrix(text, file=path, table=table, pythons=pythons)
    if last.endswith(".sh"):
        return of_script(text, file=path, table=table)
    if last == "CMakeLists.txt" or last.endswith(".cmake"):
        return find_pins(text, file=path, table=table)
    return of_pin_file(text, file=path, table=table) if path not in _OWN else ()


def _of_list(path: str, text: str, table: DependencyTable, pythons: tuple[str, ...]) -> Iterable[Evidence]:
    """A requirements file: ``requirements-build.txt`` must hold for a build, ``requirements.txt`` is for developers."""
    own = "/" not in path
    origin = RequirementOrigin(
        column="requires" if own else "ci",
        role="requires" if path == "requirements-build.txt" else "pin",
        file=path,
        phase="build" if own else "test",
        pythons=pythons,
    )
    return of_requirements_file(text, origin, table=table)
