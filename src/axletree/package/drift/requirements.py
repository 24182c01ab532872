"""PEP 508 requirements as evidence: METADATA, requirements files, pyproject.toml, setup.py, build matrices."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING, Any

import msgspec
from packaging.markers import UndefinedComparison, UndefinedEnvironmentName
from packaging.specifiers import InvalidSpecifier
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion

from axletree.package.drift import ranges
from axletree.package.drift.evidence import Column, Evidence, Phase, Role, cuda_label
from axletree.package.drift.names import look_up, own_version
from axletree.package.project.code import assigned, parse_python, texts_in
from axletree.package.wheel.metadata import parse_requirement
from axletree.recipe.toml import tables_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from packaging.requirements import Requirement

    from axletree.package.drift.names import DependencyTable
    from axletree.package.wheel.metadata import Metadata

_EXTRA = re.compile(r"""extra\s*==\s*['"]([^'"]+)['"]""")
_COMMENT = re.compile(r"(?:^|\s)#.*$")
_REQUIREMENT_TABLE = re.compile(r"REQUIREMENTS")
_CUDA = re.compile(r"\d{1,2}\.\d{1,2}(?:\.\d+)?")
_LONGEST = 1000
_LINUX = {
    "os_name": "posix",
    "sys_platform": "linux",
    "platform_system": "Linux",
    "platform_machine": "x86_64",
    "platform_python_implementation": "CPython",
    "implementation_name": "cpython",
    "platform_release": "",
    "platform_version": "",
}
"""What markers are decided for; the Python comes from the wheel or the recipe."""


class RequirementOrigin(msgspec.Struct, frozen=True, kw_only=True):
    """What all requirements of one list have in common."""

    column: Column
    role: Role
    file: str
    phase: Phase = ""
    gpus: tuple[str, ...] = ()
    pythons: tuple[str, ...] = ()
    """Python versions that matter (``3.11``); a requirement for none of them is left out. Empty for any."""
    when: str = ""


def of_requirement(
    text: str, origin: RequirementOrigin, *, table: DependencyTable, line: int | None = None
) -> tuple[Evidence, ...]:
    """What a requirement says; nothing where it is none, or is never for Linux and the Pythons that matter.

    ``cuda-toolkit[cublas,nvrtc]==13.0.3`` speaks of the toolkit and of each part that it names.
    """
    requirement = parse_requirement(text) if len(text) <= _LONGEST else None
    if requirement is None:
        return ()
    optional = _extra(requirement)
    if not applies(requirement, origin.pythons, optional):
        return ()
    project = canonicalize_name(requirement.name)
    marker = "" if requirement.marker is None else str(requirement.marker)
    condition = "" if optional and marker.count("==") == 1 and "and" not in marker else marker
    base = Evidence(
        dependency=look_up(table, "pypi", project),
        column=origin.column,
        role=origin.role,
        file=origin.file,
        line=line,
        text=text.strip(),
        spec=ranges.in_order(requirement.specifier),
        range=None,
        phase=origin.phase,
        when="; ".join(filter(None, (origin.when, condition))),
        gpus=origin.gpus,
        optional=optional,
        project=str(project),
    )
    first = _with_range(base, requirement, table)
    parts = [table.conda[key] for extra in sorted(requirement.extras) if (key := f"{project}[{extra}]") in table.conda]
    names = {look_up(table, "conda", package.partition(" ")[0]) for packages in parts for package in packages}
    return (first, *(_part(first, name, project) for name in sorted(names - {first.dependency})))


def _part(whole: Evidence, name: str, project: str) -> Evidence:
    """A part that a metapackage's extra brings, in the version that the metapackage decides."""
    return msgspec.structs.replace(
        whole, dependency=name, spec="*", range=None, note=f"version provided by {project} {whole.spec}"
    )


def _with_range(evidence: Evidence, requirement: Requirement, table: DependencyTable) -> Evidence:
    specifiers = list(requirement.specifier)
    if requirement.url is not None:
        return msgspec.structs.replace(evidence, spec=f"@ {requirement.url}"[:80], confidence="guess")
    if len(specifiers) == 1 and specifiers[0].operator == "==" and not specifiers[0].version.endswith(".*"):
        own = own_version(table, evidence.dependency, "pypi", specifiers[0].version)
        if own is not None:
            return msgspec.structs.replace(evidence, spec=f"=={own}", range=ranges.of_specifiers(f"=={own}"))
    try:
        return msgspec.structs.replace(evidence, range=ranges.of_specifiers(requirement.specifier))
    except InvalidSpecifier:
        return evidence


def _extra(requirement: Requirement) -> str:
    found = _EXTRA.search(str(requirement.marker)) if requirement.marker is not None else None
    return found[1] if found is not None else ""


def applies(requirement: Requirement, pythons: tuple[str, ...], extra: str = "") -> bool:
    """Whether a requirement may hold on Linux, for one of some Pythons (``3.11``; none: for any) and an extra."""
    if requirement.marker is None:
        return True
    marker = requirement.marker
    known = "python" not in str(marker) or pythons
    if not known:
        return True
    for python in pythons or ("3.12",):
        plain = python.removesuffix("t")
        environment = _LINUX | {"python_version": plain, "python_full_version": f"{plain}.0", "extra": extra}
        try:
            if marker.evaluate(environment):
                return True
        except (UndefinedComparison, UndefinedEnvironmentName, InvalidVersion):
            return True  # it can't be decided, so it may hold
    return False


def of_metadata(metadata: Metadata, origin: RequirementOrigin, *, table: DependencyTable) -> tuple[Evidence, ...]:
    """What a wheel requires where it is installed."""
    return tuple(each for text in metadata.requires for each in of_requirement(text, origin, table=table))


def of_requirements_file(text: str, origin: RequirementOrigin, *, table: DependencyTable) -> tuple[Evidence, ...]:
    """The lines of a requirements file that are requirements; options and other files are passed over."""
    found: list[Evidence] = []
    for number, line in enumerate(text.splitlines(), start=1):
        plain = _COMMENT.sub("", line).strip().removesuffix("\\").strip()
        if plain and not plain.startswith("-"):
            found += of_requirement(plain, origin, table=table, line=number)
    return tuple(found)


def of_pyproject(
    text: str, *, file: str, table: DependencyTable, pythons: tuple[str, ...] = ()
) -> tuple[Evidence, ...]:
    """``build-system.requires``, ``project.dependencies`` and ``project.optional-dependencies``."""
    document = tables_of(text)
    system, project = dict(_items(document.get("build-system"))), dict(_items(document.get("project")))
    lists: list[tuple[Phase, Any, str]] = [("build", system.get("requires"), "")]
    lists.append(("run", project.get("dependencies"), ""))
    lists += [("run", texts, extra) for extra, texts in _items(project.get("optional-dependencies"))]
    found: list[Evidence] = []
    for phase, texts, extra in lists:
        origin = RequirementOrigin(column="requires", role="requires", file=file, phase=phase, pythons=pythons)
        for one in texts if isinstance(texts, list) else ():
            line = _line_of(text, str(one))
            each = of_requirement(str(one), origin, table=table, line=line)
            found += [msgspec.structs.replace(evidence, optional=extra) if extra else evidence for evidence in each]
    return tuple(found)


def of_setup_py(text: str, *, file: str, table: DependencyTable, pythons: tuple[str, ...] = ()) -> tuple[Evidence, ...]:
    """Texts that setup.py puts into ``install_requires`` and ``extras_require``; nothing of it is run."""
    origin = RequirementOrigin(column="requires", role="requires", file=file, phase="run", pythons=pythons)
    found: list[Evidence] = []
    for name, value in assigned(parse_python(text)):
        if name == "install_requires":
            for one, node in texts_in(value):
                found += of_requirement(one, origin, table=table, line=node.lineno)
        elif name == "extras_require" and isinstance(value, ast.Dict):
            for key, texts in zip(value.keys, value.values, strict=True):
                extra = key.value if isinstance(key, ast.Constant) and isinstance(key.value, str) else "?"
                for one, node in texts_in(texts):
                    each = of_requirement(one, origin, table=table, line=node.lineno)
                    found += [msgspec.structs.replace(evidence, optional=extra) for evidence in each]
    return tuple(found)


def of_build_matrix(
    text: str, *, file: str, table: DependencyTable, pythons: tuple[str, ...] = ()
) -> tuple[Evidence, ...]:
    """Tables of a script that makes a build matrix: CUDA version -> requirements, CUDA version -> whole CUDA version.

    PyTorch's ``generate_binary_build_matrix.py``: what stands in ``PYTORCH_EXTRA_INSTALL_REQUIREMENTS``, separated by
    ``|``, gets into the METADATA of that CUDA's wheels.
    """
    found: list[Evidence] = []
    for name, value in assigned(parse_python(text)):
        if not isinstance(value, ast.Dict):
            continue
        for key, part in zip(value.keys, value.values, strict=True):
            if not (isinstance(key, ast.Constant) and isinstance(key.value, str)):
                continue
            gpus = (cuda_label(key.value),) if _CUDA.fullmatch(key.value) else (key.value,)
            if _REQUIREMENT_TABLE.search(name):
                origin = RequirementOrigin(
                    column="ci", role="requires", file=file, phase="run", gpus=gpus, pythons=pythons, when=key.value
                )
                for whole, node in texts_in(part):
                    for one in filter(None, (piece.strip() for piece in whole.split("|"))):
                        found += of_requirement(one, origin, table=table, line=_line_in(text, node, one))
            elif name == "CUDA_ARCHES_FULL_VERSION" and isinstance(part, ast.Constant):
                found += of_cuda(str(part.value), file=file, line=part.lineno, gpus=gpus, table=table)
    return tuple(found)


def of_cuda(
    version: str, *, file: str, line: int, gpus: tuple[str, ...], table: DependencyTable
) -> tuple[Evidence, ...]:
    """A CUDA toolkit that upstream builds with."""
    own = own_version(table, "cuda", "variable", version)
    if own is None:
        return ()
    return (
        Evidence(
            dependency="cuda",
            column="ci",
            role="pin",
            file=file,
            line=line,
            text=version,
            spec=version,
            range=ranges.of_own(own),
            phase="build",
            gpus=gpus,
        ),
    )


def _line_in(text: str, node: ast.Constant, part: str) -> int:
    """The line of a part of a text that is written over several lines."""
    lines = text.splitlines()
    end = node.end_lineno or node.lineno
    return next(
        (n for n in range(node.lineno, end + 1) if part.split(";", maxsplit=1)[0].strip() in lines[n - 1]), node.lineno
    )


def _items(value: object) -> Iterable[tuple[str, Any]]:
    return value.items() if isinstance(value, dict) else ()


def _line_of(text: str, part: str) -> int | None:
    at = text.find(part)
    return None if at < 0 else text.count("\n", 0, at) + 1
