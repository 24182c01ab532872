"""What a project's wheel requires where it is installed, and what its tests do."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from packaging.utils import canonicalize_name

from axletree.package.project.model import Found
from axletree.package.project.needs import name_of
from axletree.package.wheel.metadata import parse_requirement

if TYPE_CHECKING:
    from collections.abc import Iterator

    from axletree.package.project.pyproject import PyProject
    from axletree.package.project.setup_script import SetupScript
    from axletree.package.project.tree import SourceTree
    from axletree.package.wheel.metadata import Metadata

_TESTS = frozenset({"test", "tests", "testing", "dev", "develop", "development"})
_EXTRA = re.compile(r"""extra\s*==\s*['"]([^'"]+)['"]""")
_INFO = "PKG-INFO"


def run_requirements(
    tree: SourceTree, project: PyProject, script: SetupScript, info: Metadata | None
) -> tuple[Found, ...] | None:
    """Requirements of the wheel itself, without those of extras; ``None`` where only code knows them."""
    if project.table("project") and "dependencies" not in (project.get("project", "dynamic") or ()):
        return tuple(project.texts("project", "dependencies"))
    if info is not None and info.requires:
        texts = (text for text in info.requires if not _EXTRA.search(text))
        return tuple(Found(value=text, file=_INFO) for text in texts)
    by_egg = next((path for path in tree.texts if path.endswith(".egg-info/requires.txt")), None)
    if by_egg is not None:
        return tuple(_of_egg(tree.texts[by_egg], by_egg))
    if (poetry := project.table("tool", "poetry", "dependencies")) and not project.table("project"):
        return tuple(_of_poetry(poetry, project))
    if "install_requires" not in script.arguments and info is not None:
        return ()
    return script.texts("install_requires", "options", "install_requires")


def test_requirements(
    project: PyProject, script: SetupScript, info: Metadata | None, *, name: str
) -> tuple[Found, ...]:
    """Requirements of the project's tests: of extras and dependency groups that are called so."""
    found: dict[str, Found] = {}
    for place in (("project", "optional-dependencies"), ("dependency-groups",)):
        for group in project.table(*place):
            if group.lower() in _TESTS:
                for each in project.texts(*place, group):
                    found.setdefault(each.value, each)
    for text in info.requires if info is not None else ():
        extra = _EXTRA.search(text)
        if extra is not None and extra[1].lower() in _TESTS:
            plain = text.partition(";")[0].strip()
            found.setdefault(plain, Found(value=plain, file=_INFO, why=f"extra {extra[1]}"))
    for extra_, each in script.extras:
        if extra_.lower() in _TESTS:
            found.setdefault(each.value, each)
    return tuple(each for each in found.values() if name_of(each.value) != canonicalize_name(name))


def _of_egg(text: str, file: str) -> Iterator[Found]:
    """Lines of ``requires.txt``; its sections are extras and markers."""
    marker = ""
    for number, line in enumerate(text.split("\n"), start=1):
        plain = line.strip()
        if plain.startswith("["):
            extra, _, marker = plain.strip("[]").partition(":")
            if extra:
                return  # extras stand below what is always required
        elif plain:
            yield Found(value=f"{plain}; {marker}" if marker else plain, file=file, line=number)


def _of_poetry(table: dict[str, object], project: PyProject) -> Iterator[Found]:
    """Poetry's own table, as far as its versions mean what they do elsewhere."""
    for name, value in table.items():
        text = value.get("version") if isinstance(value, dict) and not value.get("optional") else value
        if name.lower() == "python" or not isinstance(text, str):
            continue
        spec = "" if text.startswith(("^", "~")) or text == "*" else text if text[:1] in "<>=!" else f"=={text}"
        found = f"{name}{spec}"
        yield project.found(found if parse_requirement(found) else name, "tool", "poetry", "dependencies", name)
