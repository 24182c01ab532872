"""Whether a project's wheel is for the stable ABI, and from which Python on."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from axletree.package.project.model import Found
from axletree.package.project.setup_script import stable_tag
from axletree.package.project.tree import line_at

if TYPE_CHECKING:
    from axletree.package.project.model import Backend
    from axletree.package.project.pyproject import PyProject
    from axletree.package.project.setup_script import SetupScript
    from axletree.package.project.tree import SourceTree

_TAG = re.compile(r"cp(\d)(\d+)")
_MESON = re.compile(r"limited_api\s*:\s*'(\d\.\d+)'")
_WHY = "stable ABI"
_CARGO = re.compile(r"[\"']abi3-py(\d)(\d+)[\"']")


def stable_abi_of(tree: SourceTree, project: PyProject, script: SetupScript, backend: Backend) -> Found | None:
    """The oldest Python of a wheel's stable ABI, such as ``3.9``; ``None`` where wheels are of one Python each."""
    match backend:
        case "setuptools":
            option = project.text("tool", "distutils", "bdist_wheel", "py-limited-api")
            return _of_tag(option) or stable_tag(script)
        case "scikit-build-core":
            return _of_tag(project.text("tool", "scikit-build", "wheel", "py-api"))
        case "meson-python":
            return _of_meson(tree, project)
        case "maturin" if hit := _CARGO.search(text := tree.text("Cargo.toml")):
            return Found(value=f"{hit[1]}.{hit[2]}", file="Cargo.toml", line=line_at(text, hit.start()), why=_WHY)
        case _:
            return None


def _of_meson(tree: SourceTree, project: PyProject) -> Found | None:
    if project.get("tool", "meson-python", "limited-api") is not True:
        return None
    hits = (_MESON.search(text) for path, text in tree.texts.items() if path.endswith("meson.build"))
    oldest = next((hit[1] for hit in hits if hit is not None), "")
    return project.found(oldest, "tool", "meson-python", "limited-api", why=_WHY)


def _of_tag(option: Found | None) -> Found | None:
    found = _TAG.fullmatch(option.value) if option is not None else None
    if option is None or found is None:
        return None
    return Found(value=f"{found[1]}.{found[2]}", file=option.file, line=option.line, why=_WHY)
