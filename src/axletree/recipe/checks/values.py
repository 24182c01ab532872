"""Single values: versions, sizes, names of variables, and what a text must be once it is filled in."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.version import InvalidVersion, Version

from axletree.core.trees import is_safe_path
from axletree.core.units import parse_size
from axletree.recipe.addresses import has_login
from axletree.recipe.checks.axes import PYTHON, twice
from axletree.recipe.conda import add_up
from axletree.recipe.faults import Fault

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from axletree.recipe.faults import Path
    from axletree.recipe.model import Recipe
    from axletree.recipe.resources import Resources

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_OWN_PREFIX = "AXLETREE_"
_GLIBC = re.compile(r"2\.[0-9]{1,2}")
_CONDA_NAME = re.compile(r"[a-z0-9_](?:[a-z0-9_.-]*[a-z0-9_])?")
_CONDA_BUILD = re.compile(r"[A-Za-z0-9_.+]+")
_CONDA_BUILDS = re.compile(r"[A-Za-z0-9_.+*]+")
_ONE_VERSION = r"(?:[=<>](?:==?)?|!==?|~=)?[A-Za-z0-9_.!+*]+"
_CONDA_VERSIONS = re.compile(rf"\*|{_ONE_VERSION}(?:[,|]{_ONE_VERSION})*")
_LONGEST_BUILD = 64


def value_faults(recipe: Recipe) -> Iterator[Fault]:
    """All faults of single values that hold whatever the variant is."""
    yield from _version_faults(recipe)
    for path, resources in _resources(recipe):
        for key in ("memory", "memory_per_job", "disk"):
            size = getattr(resources, key)
            message = size_message(size) if size is not None else None
            if message is not None:
                yield Fault(path=(*path, key.replace("_", "-")), message=message)
    for name, stage in recipe.stages.items():
        yield from _variable_faults(("stages", name, "env"), stage.env)
        yield from twice(stage.pass_env, ("stages", name, "pass-env"), "variable")
        for number, variable in enumerate(stage.pass_env):
            at = ("stages", name, "pass-env", number)
            yield from _variable_fault(at, variable)
            if variable in stage.env:
                yield Fault(path=at, message=f"env already sets {variable}, so it cannot also be passed from the shell")
    for number, override in enumerate(recipe.override):
        yield from _variable_faults(("override", number, "env"), override.env)
        yield from twice(override.pass_env, ("override", number, "pass-env"), "variable")
        for place, variable in enumerate(override.pass_env):
            yield from _variable_fault(("override", number, "pass-env", place), variable)
    for name, package in recipe.packages.items():
        if package.glibc is not None and not _GLIBC.fullmatch(package.glibc):
            message = f"{package.glibc!r} is not a valid glibc version (expected one such as '2.28')"
            yield Fault(path=("packages", name, "glibc"), message=message)


def _version_faults(recipe: Recipe) -> Iterator[Fault]:
    try:
        version = Version(recipe.version)
    except InvalidVersion:
        yield Fault(path=("version",), message=f"{recipe.version!r} is not a valid version (PEP 440)")
        return
    labelled = [name for name, package in recipe.packages.items() if package.local is not None]
    if version.local is not None and labelled:
        message = f"the version already has a local label ({version.local!r})"
        hint = f"remove it and use packages.{labelled[0]}.local"
        yield Fault(path=("version",), message=message, hint=hint)


def _resources(recipe: Recipe) -> Iterator[tuple[Path, Resources]]:
    for name, stage in recipe.stages.items():
        yield ("stages", name, "resources"), stage.resources
    for name, test in recipe.tests.items():
        yield ("tests", name, "resources"), test.resources
    for number, override in enumerate(recipe.override):
        if override.resources is not None:
            yield ("override", number, "resources"), override.resources


def _variable_faults(path: Path, names: Iterable[str]) -> Iterator[Fault]:
    for name in names:
        yield from _variable_fault((*path, name), name)


def _variable_fault(path: Path, name: str) -> Iterator[Fault]:
    if not _VARIABLE.fullmatch(name):
        yield Fault(path=path, message=f"{name!r} is not a valid environment variable name")
    elif name.startswith(_OWN_PREFIX):
        yield Fault(path=path, message=f"Axletree reserves variables that start with {_OWN_PREFIX}")


def size_message(text: str) -> str | None:
    """What is wrong with a size."""
    try:
        parse_size(text)
    except ValueError as error:
        return str(error)
    return None


def requirement_message(text: str) -> str | None:
    """What is wrong with a requirement (PEP 508)."""
    try:
        requirement = Requirement(text)
    except InvalidRequirement as error:
        return f"{text!r} is not a valid requirement: {str(error).splitlines()[0]}"
    if has_login(requirement.url or ""):
        return f"the URL of {requirement.name} contains a user name or password, which would be stored and published"
    return None


def specifier_message(text: str) -> str | None:
    """What is wrong with a set of version specifiers, such as ``>=3.11``."""
    try:
        SpecifierSet(text)
    except InvalidSpecifier:
        return f"{text!r} is not a version specifier such as '>=3.11'"
    return None


def label_message(text: str) -> str | None:
    """What is wrong with a local version label: a reader of it must get back what was written (PEP 440)."""
    try:
        local = Version(f"1+{text}").local
    except InvalidVersion:
        return f"{text!r} is not a valid local version label: use letters and digits, in parts separated by dots"
    if local != text:
        return f"local version label {text!r} is not normalized: write it as {local!r}"
    return None


def python_message(text: str) -> str | None:
    """What is wrong with an interpreter's version."""
    return None if PYTHON.fullmatch(text) else f"{text!r} is not a Python version such as '3.11' or '3.13t'"


def inside_message(text: str) -> str | None:
    """What is wrong with a relative path that must stay inside its folder."""
    if is_safe_path(text):
        return None
    return f"{text!r} must be a relative path inside the folder, with '/' and without '.' or '..'"


def folder_message(text: str) -> str | None:
    """As :func:`inside_message`, but ``.`` is the folder itself."""
    return None if text == "." else inside_message(text)


def prefix_message(text: str) -> str | None:
    """As :func:`inside_message`, but nothing is the folder itself."""
    return None if text == "" else inside_message(text)


def conda_name_message(text: str) -> str | None:
    """What is wrong with the name of a conda package, or of a feature."""
    if _CONDA_NAME.fullmatch(text):
        return None
    return f"{text!r} is not a valid conda package name: use lowercase letters, digits, '_', '.' and '-'"


def build_message(text: str) -> str | None:
    """What is wrong with a conda build string (CEP 26)."""
    if len(text) > _LONGEST_BUILD:
        return f"build string {text!r} has {len(text)} characters; the limit is {_LONGEST_BUILD}"
    if not _CONDA_BUILD.fullmatch(text):
        return f"{text!r} is not a valid build string: use letters, digits, '_', '.' and '+'"
    return None


def number_message(text: str) -> str | None:
    """What is wrong with a sum of build numbers."""
    try:
        add_up(text)
    except ValueError as error:
        return str(error)
    return None


def spec_message(text: str) -> str | None:
    """What is wrong with a conda dependency: a name, perhaps a version, perhaps a build string."""
    parts = text.split()
    message = conda_name_message(parts[0]) if parts else "a dependency cannot be empty"
    if message is not None:
        return message
    if len(parts) > 3:
        return f"{text!r} is not a valid conda dependency: expected a name, a version without spaces and a build string"
    if len(parts) > 1 and not _CONDA_VERSIONS.fullmatch(parts[1]):
        return f"{parts[1]!r} is not a conda version such as '>=2.6,<3' or '2.6.*'"
    if len(parts) > 2 and not _CONDA_BUILDS.fullmatch(parts[2]):
        return f"{parts[2]!r} is not a build string or a pattern such as 'cpu*'"
    return None


def line_message(text: str) -> str | None:
    """What is wrong with a text that must be one line, as metadata has it."""
    return "the text must be a single line" if "\n" in text or "\r" in text else None
