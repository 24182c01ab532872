"""The files of a project as a value: all their sizes, and the text of those that say how it is built."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterator

LARGEST_TEXT = 1 << 20
"""Bytes of a file beyond which its text is not read. What people write by hand has a few thousand."""
MOST_TEXT = 32 << 20
"""Bytes of all texts together."""
_DEEPEST = 4
_BUILD_FILES = frozenset(
    {
        *("pyproject.toml", "setup.py", "setup.cfg", "PKG-INFO", "requires.txt", "top_level.txt"),
        *("meson.build", "CMakeLists.txt", "Cargo.toml", "config.toml", "versioneer.py"),
    }
)
_VERSION_FILES = frozenset({"__init__.py", "_version.py", "version.py", "__about__.py", "about.py", "__version__.py"})
_TOOLS_FOLDERS = frozenset({".git", ".hg", ".svn", "__pycache__", "node_modules", ".tox", ".nox", ".venv", "venv"})
_ASIDE = re.compile(
    r"(?:^|/)(?:tests?|testing|docs?|examples?|benchmarks?|samples?|tutorials?|demos?|fuzz(?:ing)?)/", re.IGNORECASE
)


class SourceTree(msgspec.Struct, frozen=True, kw_only=True):
    """A project's files; the same value for an sdist, a folder and a git checkout."""

    sizes: dict[str, int]
    """Path from the project's folder, with ``/`` -> bytes. Links and folders are left out."""
    texts: dict[str, str]
    """Text of the files that :func:`is_told` names; those that are too large are missing."""

    def text(self, path: str) -> str:
        """The text of a file; empty where there is none, or it was not read."""
        return self.texts.get(path, "")

    def below(self, folder: str) -> Iterator[str]:
        """Paths of a folder's files, and of those in folders below it."""
        start = f"{folder}/" if folder else ""
        return (path for path in self.sizes if path.startswith(start))


def is_told(path: str) -> bool:
    """Whether the text of a file may say how the project is built."""
    folder, _, name = path.rpartition("/")
    depth = path.count("/")
    if not folder:
        return name in _BUILD_FILES or name.endswith((".py", ".txt", ".in", ".toml"))
    if depth > _DEEPEST or is_aside(path):
        return False
    return name in _BUILD_FILES or name in _VERSION_FILES or (folder == "subprojects" and name.endswith(".wrap"))


def is_aside(path: str) -> bool:
    """Whether a file is of tests, documents or examples: no part of what is built."""
    return _ASIDE.search(path) is not None


def is_passed_over(folder: str) -> bool:
    """Whether a folder, by its name, is of version control, of tools or of an environment: no part of a project."""
    return folder in _TOOLS_FOLDERS


def line_at(text: str, position: int) -> int:
    """The line of a position in a text, counted from 1."""
    return text.count("\n", 0, position) + 1
