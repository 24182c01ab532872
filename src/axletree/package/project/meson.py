"""What a project's meson files do as they stand: subprojects that meson downloads, packages that it installs."""

from __future__ import annotations

import configparser
import re
from typing import TYPE_CHECKING

from axletree.package.project.model import Found
from axletree.package.project.tree import is_aside, line_at

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from axletree.package.project.tree import SourceTree

_FOLDER = "subprojects"
_CALL = re.compile(r"\b(?P<kind>dependency|subproject)\s*\(\s*'(?P<name>[\w.+-]+)'(?P<rest>[^()]{0,400})")
_OPTIONAL = re.compile(r"\brequired\s*:(?!\s*true\b)")
_BLOCK = re.compile(r"^[ \t]*(?P<word>if|endif|foreach|endforeach)\b", re.MULTILINE)
_INSTALLED = re.compile(r"install_sources\s*\((?P<files>[^()]{0,4000}?)\bsubdir\s*:\s*'(?P<folder>\w+)'", re.DOTALL)
_COMMENT = re.compile(r"'''(?:[^']|'(?!''))*(?:''')?|'(?:[^'\\\n]|\\[^\n])*'?|#[^\n]*")
_BY_PACKAGES = frozenset({"pybind11", "numpy", "python", "python3"})
"""Dependencies that meson finds by what Python packages bring."""


def meson_files(tree: SourceTree) -> Iterator[tuple[str, str]]:
    """Paths and texts of a project's meson.build files. Comments, which often show code, are blanks of their length."""
    for path, text in tree.texts.items():
        if path.rpartition("/")[2] == "meson.build" and not is_aside(path) and not path.startswith(f"{_FOLDER}/"):
            yield path, _COMMENT.sub(lambda found: " " * len(found[0]) if found[0][0] == "#" else found[0], text)


def missing_subprojects(tree: SourceTree, requires: Collection[str]) -> tuple[Found, ...]:
    """Dependencies that only a wrap file provides, and whose source is not in the tree; by their names in meson.

    Args:
        tree: The project.
        requires: Normalised names of its build requirements.
    """
    absent = dict(_wraps(tree))
    found: dict[str, Found] = {}
    for path, text in meson_files(tree) if absent else ():
        for call in _CALL.finditer(text):
            name = call["name"]
            by_package = name in _BY_PACKAGES and name in requires
            certain = not _OPTIONAL.search(call["rest"]) and _depth(text, call.start()) == 0 and not by_package
            if name in absent and certain:
                place = Found(value=name, file=path, line=line_at(text, call.start()), why=absent[name])
                found.setdefault(name, place)
    return tuple(found.values())


def _depth(text: str, position: int) -> int:
    """How many blocks a place stands in."""
    words = (found["word"] for found in _BLOCK.finditer(text, 0, position))
    return sum(-1 if word.startswith("end") else 1 for word in words)


def _wraps(tree: SourceTree) -> Iterator[tuple[str, str]]:
    """Names that wrap files provide whose folder is not there, and the file."""
    for path, text in tree.texts.items():
        if not (path.startswith(f"{_FOLDER}/") and path.endswith(".wrap") and path.count("/") == 1):
            continue
        parser = configparser.ConfigParser(interpolation=None, strict=False)
        try:
            parser.read_string(text)
        except configparser.Error:
            continue
        name = path.removeprefix(f"{_FOLDER}/").removesuffix(".wrap")
        wrap = next((parser[section] for section in parser.sections() if section.startswith("wrap-")), None)
        if wrap is None or any(True for _ in tree.below(f"{_FOLDER}/{wrap.get('directory', name)}")):
            continue
        provided = dict(parser["provide"]) if parser.has_section("provide") else {}
        listed = provided.pop("dependency_names", "")
        for each in (name, *provided, *(part.strip() for part in listed.split(","))):
            if each and each != "program_names":
                yield each, path


def installed_packages(tree: SourceTree) -> Iterator[Found]:
    """Packages whose ``__init__.py`` meson installs: ``install_sources('py/__init__.py', subdir: 'a')``."""
    for path, text in meson_files(tree):
        for found in _INSTALLED.finditer(text):
            if "__init__.py" in found["files"]:
                yield Found(value=found["folder"], file=path, line=line_at(text, found.start()))
