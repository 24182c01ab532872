"""What a project's wheel can be imported by."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from axletree.package.project.meson import installed_packages, meson_files
from axletree.package.project.model import Found
from axletree.package.project.setup_script import extensions
from axletree.package.project.tree import line_at

if TYPE_CHECKING:
    from collections.abc import Iterator

    from axletree.package.project.model import Backend
    from axletree.package.project.pyproject import PyProject
    from axletree.package.project.setup_script import SetupScript
    from axletree.package.project.tree import SourceTree

_ROOTS = ("", "src", "lib", "python", "pysrc", "py")
"""Folders that packages lie in, where a project does not say."""
_NO_PACKAGES = frozenset(
    {
        *("test", "tests", "testing", "doc", "docs", "example", "examples", "benchmark", "benchmarks", "sample"),
        *("samples", "tool", "tools", "util", "utils", "script", "scripts", "ci", "build", "dist", "bin", "etc"),
        *("third_party", "thirdparty", "external", "extern", "vendor", "subprojects", "packaging", "conda"),
        *("requirements", "setup", "conftest", "noxfile", "tasks", "versioneer", "buildconfig"),
    }
)
_MOST = 4
_MOST_COMPILED = 3
_MESON_EXTENSION = re.compile(
    r"extension_module\s*\(\s*'(?P<name>\w+)'(?P<rest>(?:[^()']|'[^'\n]*'|\([^()]*\)){0,4000})\)"
)
_MESON_SUBDIR = re.compile(r"\bsubdir\s*:\s*'(?P<folder>[\w./-]+)'")


def imports_of(
    tree: SourceTree, project: PyProject, script: SetupScript, backend: Backend, name: str
) -> tuple[Found, ...]:
    """Packages and modules that the wheel brings, by what says it best."""
    for found in (
        tuple(_configured(tree, project, backend)),
        tuple(_by_metadata(tree)),
        tuple(_by_script(script)),
        tuple(_by_folders(tree, project, script, name)),
    ):
        if found:
            return found[:_MOST]
    return ()


def compiled_of(tree: SourceTree, script: SetupScript, project: PyProject, backend: Backend) -> tuple[Found, ...]:
    """Names of compiled modules that a build makes; of many, some are usually left out where a library is missing."""
    found: dict[str, Found] = {}
    if backend == "setuptools":
        for each in extensions(script, tree):
            found.setdefault(each.value, each)
        for number, table in enumerate(project.get("tool", "setuptools", "ext-modules") or ()):
            if isinstance(table, dict) and isinstance(table.get("name"), str):
                path = ("tool", "setuptools", "ext-modules", number, "name")
                found.setdefault(table["name"], project.found(table["name"], *path))
    if backend == "meson-python":
        for each in _of_meson(tree):
            found.setdefault(each.value, each)
    if backend == "maturin" and (module := project.text("tool", "maturin", "module-name")):
        found[module.value] = module
    plain = [each for each in found.values() if "test" not in each.value]
    return tuple(plain) if len(plain) <= _MOST_COMPILED else ()


def _of_meson(tree: SourceTree) -> Iterator[Found]:
    for path, text in meson_files(tree):
        for match in _MESON_EXTENSION.finditer(text):
            subdir = _MESON_SUBDIR.search(match["rest"])
            package = f"{subdir['folder'].strip('/').replace('/', '.')}." if subdir else ""
            if subdir or "subdir" not in match["rest"]:
                yield Found(value=package + match["name"], file=path, line=line_at(text, match.start()))


def _configured(tree: SourceTree, project: PyProject, backend: Backend) -> Iterator[Found]:
    """What pyproject.toml, or meson.build, says of the packages in a wheel."""
    match backend:
        case "setuptools":
            for key in ("packages", "py-modules"):
                yield from (each for each in project.texts("tool", "setuptools", key) if "." not in each.value)
        case "hatchling":
            for each in project.texts("tool", "hatch", "build", "targets", "wheel", "packages"):
                yield project.found(_last(each.value), "tool", "hatch", "build", "targets", "wheel", "packages")
        case "scikit-build-core":
            value = project.get("tool", "scikit-build", "wheel", "packages")
            for each in value if isinstance(value, list | dict) else ():
                yield project.found(_last(str(each)), "tool", "scikit-build", "wheel", "packages")
        case "flit":
            if (module := project.text("tool", "flit", "module", "name")) is not None:
                yield module
        case "poetry":
            for number, each in enumerate(project.get("tool", "poetry", "packages") or ()):
                if isinstance(each, dict) and isinstance(each.get("include"), str) and "*" not in each["include"]:
                    yield project.found(_last(each["include"]), "tool", "poetry", "packages", number)
        case "maturin":
            if (module := project.text("tool", "maturin", "module-name")) is not None:
                yield project.found(module.value.partition(".")[0], "tool", "maturin", "module-name")
        case "meson-python":
            yield from installed_packages(tree)
        case _:
            return


def _by_metadata(tree: SourceTree) -> Iterator[Found]:
    """``top_level.txt``, which setuptools writes into its sdists; private names only where there are no others."""
    found: list[Found] = []
    for path, text in tree.texts.items():
        if path.endswith(".egg-info/top_level.txt"):
            names = enumerate(text.split("\n"), start=1)
            found += [
                Found(value=name, file=path, line=line)
                for line, name in names
                if _is_module(name) and name not in _NO_PACKAGES
            ]
    yield from [each for each in found if not each.value.startswith("_")] or found


def _by_script(script: SetupScript) -> Iterator[Found]:
    for argument in ("packages", "py_modules"):
        found = script.texts(argument, "options", argument) or ()
        yield from (each for each in found if _is_module(each.value) and each.value not in _NO_PACKAGES)


def _by_folders(tree: SourceTree, project: PyProject, script: SetupScript, name: str) -> Iterator[Found]:
    """Packages and modules where they usually lie; where one is called as the project is, only that."""
    where = [each.value for each in project.texts("tool", "setuptools", "packages", "find", "where")]
    package_dir = script.config.get("options", {}).get("package_dir", "").replace("=", "").strip()
    source = project.get("tool", "maturin", "python-source")
    stated = [*where, *([package_dir] if package_dir else []), *([source] if isinstance(source, str) else [])]
    candidates: dict[str, Found] = {}
    for root in dict.fromkeys([*(folder.strip("./") for folder in stated), *_ROOTS]):
        for each in _in_root(tree, root):
            if each.value.lower() not in _NO_PACKAGES or (root and _same(each.value, name)):
                candidates.setdefault(each.value, each)
        if candidates and root in stated:
            break
    same = [each for each in candidates.values() if _same(each.value, name)]
    yield from same or (each for each in candidates.values() if each.file.endswith("__init__.py"))


def _in_root(tree: SourceTree, root: str) -> Iterator[Found]:
    start = f"{root}/" if root else ""
    for path in sorted(tree.below(root)):
        parts = path.removeprefix(start).split("/")
        module = parts[0].removesuffix(".py")
        is_package = len(parts) == 2 and parts[1] == "__init__.py"
        is_module = len(parts) == 1 and parts[0].endswith(".py")
        if (is_package or is_module) and _is_module(module):
            yield Found(value=module, file=path)


def _same(module: str, name: str) -> bool:
    """Whether a module is called as its project is."""
    return module.replace("_", "").lower() == re.sub(r"[-_.]+", "", name).lower()


def _last(path: str) -> str:
    return path.rstrip("/").rpartition("/")[2].replace("-", "_").removesuffix(".py")


def _is_module(name: str) -> bool:
    return name.isidentifier()
