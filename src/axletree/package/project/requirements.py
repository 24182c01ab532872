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
_POETRY = ("tool", "poetry", "dependencies")


def run_requirements(
    tree: SourceTree, project: PyProject, script: SetupScript, info: Metadata | None
) -> tuple[Found, ...] | None:
    """Requirements of the wheel itself, without those of extras; ``None`` where only code knows them."""
    table = project.table("project")
    beside = project.table(*_POETRY) and "dependencies" not in table  # then Poetry takes those of its own table
    if table and not beside and "dependencies" not in (table.get("dynamic") or ()):
        return tuple(project.texts("project", "dependencies"))
    if info is not None and info.requires:
        texts = (text for text in info.requires if not _EXTRA.search(text))
        return tuple(Found(value=text, file=_INFO) for text in texts)
    by_egg = next((path for path in tree.texts if path.endswith(".egg-info/requires.txt")), None)
    if by_egg is not None:
        return tuple(_of_egg(tree.texts[by_egg], by_egg))
    if (poetry := project.table(*_POETRY)) and (beside or not table):
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


def poetry_python(project: PyProject) -> Found | None:
    """The Pythons that a project of Poetry's own table takes."""
    value = project.get("tool", "poetry", "dependencies", "python")
    return project.found(_pep_440(value), *_POETRY, "python") if isinstance(value, str) else None


def _of_poetry(table: dict[str, object], project: PyProject) -> Iterator[Found]:
    """The requirements of Poetry's own table."""
    for name, value in table.items():
        text = value.get("version") if isinstance(value, dict) and not value.get("optional") else value
        if name.lower() == "python" or not isinstance(text, str):
            continue
        found = f"{name}{_pep_440(text)}"
        yield project.found(found if parse_requirement(found) else name, *_POETRY, name)


def _pep_440(text: str) -> str:
    """Versions as Poetry writes them, as PEP 440 has them: ``^1.2`` is ``>=1.2,<2``, ``~1.2`` is ``>=1.2,<1.3``."""
    return ",".join(filter(None, (_one(part.strip()) for part in text.split(","))))


def _one(text: str) -> str:
    kind = text[:1] if text[:1] in "^~" and text[:2] != "~=" else ""
    if not kind:
        return "" if text == "*" else text if text[:1] in "<>=!~" else f"=={text}"
    numbers = [int(part) for part in re.findall(r"\d+", text.partition("-")[0])] or [0]
    first = next((at for at, number in enumerate(numbers) if number), len(numbers) - 1)
    at = first if kind == "^" else min(1, len(numbers) - 1)
    return f">={text[1:].strip()},<{'.'.join(map(str, [*numbers[:at], numbers[at] + 1]))}"
