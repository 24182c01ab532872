"""pyproject.toml: its tables, and where each key stands."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from axletree.package.project.model import Backend, Found
from axletree.recipe.faults import Path
from axletree.recipe.locate import line_of, locate
from axletree.recipe.toml import tables_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from axletree.package.project.tree import SourceTree

FILE = "pyproject.toml"
LEGACY = ("setuptools", "wheel")
"""What PEP 518 has a build require where a project does not say."""
_BACKENDS: dict[str, Backend] = {
    "setuptools": "setuptools",
    "scikit_build_core": "scikit-build-core",
    "mesonpy": "meson-python",
    "maturin": "maturin",
    "hatchling": "hatchling",
    "flit_core": "flit",
    "flit_scm": "flit",
    "pdm": "pdm",
    "poetry": "poetry",
    "poetry_dynamic_versioning": "poetry",
}
_BY_TABLE: dict[str, Backend] = {
    "scikit-build": "scikit-build-core",
    "meson-python": "meson-python",
    "maturin": "maturin",
    "hatch": "hatchling",
    "flit": "flit",
    "pdm": "pdm",
    "setuptools": "setuptools",
}
"""Tables that tell which backend one in the tree, or a wrapper, stands for."""
_BY_REQUIREMENT: tuple[Backend, ...] = ("scikit-build-core", "meson-python", "maturin", "hatchling", "setuptools")


class PyProject(msgspec.Struct, frozen=True, kw_only=True):
    """The file's content; empty tables where there is none."""

    values: dict[str, Any]
    lines: dict[Path, int]

    def get(self, *path: str) -> Any:
        """A value; ``None`` where there is none."""
        value: Any = self.values
        for key in path:
            value = value.get(key) if isinstance(value, dict) else None
        return value

    def table(self, *path: str) -> dict[str, Any]:
        """A table; empty where there is none."""
        value = self.get(*path)
        return value if isinstance(value, dict) else {}

    def text(self, *path: str) -> Found | None:
        """A text that is not empty, and where it stands."""
        value = self.get(*path)
        return self.found(value, *path) if isinstance(value, str) and value else None

    def texts(self, *path: str) -> Iterator[Found]:
        """The texts of a list, and where each stands."""
        value = self.get(*path)
        for number, each in enumerate(value if isinstance(value, list) else ()):
            if isinstance(each, str):
                yield self.found(each, *path, number)

    def found(self, value: str, *path: str | int, why: str = "") -> Found:
        """A fact that a key tells."""
        return Found(value=value, file=FILE, line=line_of(self.lines, path), why=why)


def providers_of(project: PyProject) -> Iterator[Found]:
    """Providers of dynamic metadata that scikit-build-core is told to call, by their modules."""
    for field in project.table("tool", "scikit-build", "metadata"):
        if (provider := project.text("tool", "scikit-build", "metadata", field, "provider")) is not None:
            yield provider
    listed = project.get("tool", "dynamic-metadata")
    for number, each in enumerate(listed if isinstance(listed, list) else ()):
        if isinstance(each, dict) and isinstance(each.get("provider"), str):
            yield project.found(each["provider"], "tool", "dynamic-metadata", number, "provider")


def read_pyproject(tree: SourceTree) -> PyProject:
    """The tables of a project's pyproject.toml; a file that is no TOML counts as none."""
    text = tree.text(FILE)
    values = tables_of(text)
    return PyProject(values=values, lines=locate(text) if values else {})


def read_backend(project: PyProject) -> tuple[Backend, Found, bool]:
    """The build backend, where it is named, and whether it lies in the tree itself."""
    named = project.text("build-system", "build-backend")
    in_tree = bool(project.get("build-system", "backend-path"))
    if named is None:
        why = f"{FILE} does not name a build backend" if project.values else f"no {FILE}"
        return "setuptools", Found(value="setuptools.build_meta:__legacy__", why=why), False
    known = _BACKENDS.get(named.value.partition(".")[0].partition(":")[0])
    if known is not None and not in_tree:
        return known, named, False
    tools = project.table("tool")
    wrapped = next((kind for table, kind in _BY_TABLE.items() if table in tools), None)
    required = " ".join(each.value for each in project.texts("build-system", "requires"))
    wrapped = wrapped or next((kind for kind in _BY_REQUIREMENT if kind in required), None)
    return wrapped or "other", named, in_tree
