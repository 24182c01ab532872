"""What a recipe asks for at its variants: environments, packages, conda tables, and versions in its data files."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from axletree.core.units import some_of
from axletree.package.drift import ranges
from axletree.package.drift.evidence import Evidence
from axletree.package.drift.names import is_known, look_up, own_version
from axletree.package.drift.requirements import RequirementOrigin, of_requirement
from axletree.package.wheel.metadata import parse_version
from axletree.recipe.properties import properties_at

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from packaging.ranges import VersionRange

    from axletree.package.drift.evidence import Phase
    from axletree.package.drift.names import DependencyTable
    from axletree.recipe.model import Recipe
    from axletree.recipe.target import Target

_SHOWN_VALUES = 4
_LONGEST = 1000


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """What a recipe asks for."""

    evidence: tuple[Evidence, ...]
    inherits: bool
    """Whether its packages keep the metadata of upstream's own build, so that they require what upstream requires."""
    worlds: tuple[str, ...] = ()
    """Values of its axis ``gpu``."""


def of_targets(
    recipe: Recipe, targets: Sequence[Target], *, file: str, lines: Mapping[str, int], table: DependencyTable
) -> Asked:
    """What a recipe asks for at some of its variants; variants that ask for the same are put together.

    Args:
        recipe: the recipe.
        targets: the recipe at these variants.
        file: its path as the user gave it.
        lines: text of a string in it -> its first line.
        table: what dependencies are called.
    """
    seen: dict[Evidence, list[Mapping[str, str]]] = {}
    worlds: dict[Evidence, set[str]] = {}
    for target in targets:
        for evidence in _of_target(recipe, target, file, lines, table):
            key = msgspec.structs.replace(evidence, gpus=())
            seen.setdefault(key, []).append(target.axes)
            worlds.setdefault(key, set()).update(evidence.gpus)
    axes = {axis: {target.axes[axis] for target in targets} for axis in recipe.axes}
    found = []
    for evidence, where in seen.items():
        when = "; ".join(filter(None, (evidence.when, _variants(where, axes))))
        gpus = () if worlds[evidence] == axes.get("gpu") else tuple(sorted(worlds[evidence]))
        found.append(msgspec.structs.replace(evidence, when=when, gpus=gpus))
    return Asked(
        evidence=tuple(found),
        inherits=any(_inherits(target) for target in targets),
        worlds=tuple(sorted(axes.get("gpu", ()))),
    )


def _variants(where: Sequence[Mapping[str, str]], axes: Mapping[str, set[str]]) -> str:
    """The axis values that some variants have in common and others have not: ``gpu cu126, cu128``."""
    parts = []
    for axis, every in axes.items():
        values = sorted({each[axis] for each in where})
        if len(values) < len(every):
            parts.append(f"{axis} {some_of(values, _SHOWN_VALUES)}")
    return "; ".join(parts)


def _inherits(target: Target) -> bool:
    """Whether a package's files come out of a PEP 517 build, which writes upstream's metadata, if by way of others."""
    stages = {stage.name: stage for stage in target.stages}
    for package in target.packages:
        stage = stages.get(package.stage or "")
        while stage is not None and stage.action == "relocate" and stage.inputs:
            stage = stages.get(stage.inputs[0])
        if stage is not None and stage.action == "build":
            return True
    return False


def _of_target(
    recipe: Recipe, target: Target, file: str, lines: Mapping[str, int], table: DependencyTable
) -> Iterator[Evidence]:
    testing = {test.environment for test in target.tests}
    building = {stage.environment for stage in target.stages}
    own = {look_up(table, "pypi", package.name) for package in target.packages}
    for environment in target.environments:
        if environment.provider != "venv":  # match specs are no requirements, and nothing is built in it
            continue
        tests_only = environment.name in testing and environment.name not in building
        phase: Phase = "test" if tests_only else "build"
        origin = _origin(file, phase, environment.axes, f"environment {environment.name}")
        for text in environment.requires:
            yield from _unless(own, of_requirement(text, origin, table=table, line=lines.get(text)))
    for package in target.packages:
        origin = _origin(file, "run", package.axes, f"package {package.name}")
        for text in package.requires:
            yield from _unless(own, of_requirement(text, origin, table=table, line=lines.get(text)))
        if package.conda is not None:
            for text in (*package.conda.depends, *package.conda.constrains):
                found = of_conda_text(text, origin, table=table, line=lines.get(text))
                yield from _unless(own, () if found is None else (found,))
    for stage in target.stages:
        for tool in stage.tools:
            yield Evidence(
                dependency=look_up(table, "pypi", tool),
                column="recipe",
                role="asks",
                file=file,
                line=lines.get(tool),
                text=tool,
                spec="*",
                range=ranges.ANY,
                confidence="guess",
                phase="build",
                note="a host program",
            )
    yield from _of_properties(recipe, target, file, lines, table)


def _unless(own: set[str], found: Iterable[Evidence]) -> Iterator[Evidence]:
    """Leave out what the recipe itself makes."""
    return (each for each in found if each.dependency not in own)


def _origin(file: str, phase: Phase, axes: Mapping[str, str], when: str) -> RequirementOrigin:
    gpus = (axes["gpu"],) if "gpu" in axes else ()
    pythons = (axes["python"],) if "python" in axes else ()
    return RequirementOrigin(
        column="recipe", role="asks", file=file, phase=phase, gpus=gpus, pythons=pythons, when=when
    )


def of_conda_text(
    text: str, origin: RequirementOrigin, *, table: DependencyTable, line: int | None = None
) -> Evidence | None:
    """What a conda dependency says: ``nccl <2.29``, ``libblas * *mkl``; ``None`` for virtual packages."""
    name, _, rest = text[:_LONGEST].strip().partition(" ")
    if "::" in name:
        name = name.rpartition("::")[2]
    for sign in "<>=!~":
        at = name.find(sign)
        if at > 0:  # without a space: a single `=` is a prefix there
            name, rest = name[:at], name[at:] + " " + rest
    if not name or name.startswith("__") or not name[0].isalnum():
        return None
    version = rest.split()[0] if rest.split() else "*"
    dependency = look_up(table, "conda", name)
    return Evidence(
        dependency=dependency,
        column=origin.column,
        role=origin.role,
        file=origin.file,
        line=line,
        text=text.strip(),
        spec=rest.strip() or "*",
        range=_conda_range(version, dependency, table),
        phase=origin.phase,
        when=origin.when,
        gpus=origin.gpus,
    )


def _conda_range(version: str, dependency: str, table: DependencyTable) -> VersionRange | None:
    plain = version.removeprefix("==")
    own = (
        own_version(table, dependency, "conda", plain) if plain[:1].isdigit() and not set("*,|") & set(plain) else None
    )
    if own is not None:
        return ranges.of_own(own)
    try:
        return ranges.of_conda(version)
    except ValueError:
        return None


def _of_properties(
    recipe: Recipe, target: Target, file: str, lines: Mapping[str, int], table: DependencyTable
) -> Iterator[Evidence]:
    """Versions in the tables of axis values: ``nccl = "2.28.9"`` of ``cu130``, as NVIDIA's wheels have it."""
    for axis, texts in properties_at(recipe, target.axes).items():
        value = target.axes[axis]
        for name, text in texts.items():
            dependency = _of_property(name, table)
            if dependency is None or "." not in text or parse_version(text) is None:
                continue
            own = own_version(table, dependency, "variable" if dependency == "cuda" else "pypi", text) or text
            yield Evidence(
                dependency=dependency,
                column="recipe",
                role="asks",
                file=file,
                line=lines.get(value),
                text=f'{axis}.{value}: {name} = "{text}"',
                spec=own,
                range=ranges.of_own(own),
                gpus=(value,) if axis == "gpu" else (),
            )


def _of_property(name: str, table: DependencyTable) -> str | None:
    if is_known(table, "pypi", f"nvidia-{name}") or f"nvidia-{name}" in table.conda:
        return look_up(table, "pypi", f"nvidia-{name}")
    return look_up(table, "variable", name) if name in table.dependencies else None
