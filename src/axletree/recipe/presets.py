"""Presets: the matrix of somebody else, and what it comes to in configurations, variants and packages.

A preset changes nothing of what a recipe builds. It says what a feedstock or an upstream builds, so that a recipe can
be compared with it; all its counts are computed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import msgspec
from msgspec import Meta

from axletree.recipe.axes import ANY, Variant, expand, matches, project, select, variant_id
from axletree.recipe.base import AxisName, Condition, Matrix, Name, Table

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


class Part(Table, frozen=True, kw_only=True):
    """Matching variants, grouped by the axes on which they agree."""

    axes: Annotated[
        tuple[AxisName, ...], Meta(description="Variants that agree on these axes are merged into one.")
    ] = ()
    when: Annotated[Condition, Meta(description="Only variants that match: axis -> value or list of values.")] = {}
    exclude: Annotated[tuple[Condition, ...], Meta(description="Variants to leave out.")] = ()


class PresetPackage(Part, frozen=True, kw_only=True):
    """A package of a preset; several of one name are for different variants."""

    name: Annotated[Name, Meta(description="Name of the package.")]


class Preset(Table, frozen=True, kw_only=True):
    """The build matrix of another project: its axes, exclusions, jobs and what each job builds."""

    summary: Annotated[str, Meta(description="Owner and date of the matrix.")]
    axes: Annotated[
        dict[AxisName, Annotated[tuple[str, ...], Meta(min_length=1)]], Meta(description="Axis -> its values.")
    ]
    matrix: Annotated[Matrix, Meta(description="How axis values combine.")] = Matrix()
    configurations: Annotated[
        tuple[Part, ...],
        Meta(description="How variants are divided into jobs; one job for each variant by default."),
    ] = ()
    packages: Annotated[tuple[PresetPackage, ...], Meta(description="What the jobs build.")] = ()


class ConfigurationRow(msgspec.Struct, frozen=True, kw_only=True):
    """One job of a preset."""

    id: str
    values: dict[str, str]
    variants: tuple[str, ...]
    """Ids of the variants that it builds."""
    packages: int
    """Number of packages that it produces."""


class PackageRow(msgspec.Struct, frozen=True, kw_only=True):
    """One package of a preset."""

    name: str
    count: int
    """Number of package files: one for each combination of its axes' values."""
    axes: tuple[str, ...]
    """The axes that they differ by."""


class PresetTotals(msgspec.Struct, frozen=True, kw_only=True):
    """What is counted for a preset."""

    configurations: int
    """Jobs; variants built by the same job have these values in common."""
    variants: int
    """Combinations of one value from each axis, except excluded ones."""
    packages: int
    """Package files: one for each package name and combination of its axes' values."""


class PresetReport(msgspec.Struct, frozen=True, kw_only=True):
    """The totals of a preset."""

    name: str
    summary: str
    axes: dict[str, tuple[str, ...]]
    totals: PresetTotals
    variants: tuple[Variant, ...]
    configurations: tuple[ConfigurationRow, ...]
    packages: tuple[PackageRow, ...]


def count_preset(name: str, preset: Preset, patterns: Sequence[str] = (), skip: Sequence[str] = ()) -> PresetReport:
    """Expand a valid preset, and count.

    Args:
        name: of the preset.
        preset: as the recipe or its data have it.
        patterns: which variants, as for a build; none means all.
        skip: which variants not.

    Raises:
        UsageError: a pattern matches no variant, or nothing is left.
    """
    variants = select(expand(preset), patterns, skip)
    jobs: dict[str, list[Variant]] = {}
    values: dict[str, dict[str, str]] = {}
    for variant in variants:
        of_job = project(variant.values, configuration_of(preset, variant).axes)
        job = variant_id(of_job, preset.axes) or ANY
        jobs.setdefault(job, []).append(variant)
        values[job] = of_job
    configurations = tuple(
        ConfigurationRow(
            id=job,
            values=values[job],
            variants=tuple(variant.id for variant in mine),
            packages=sum(len(_made(part, mine)) for part in preset.packages),
        )
        for job, mine in jobs.items()
    )
    packages = tuple(_package_rows(preset, variants))
    return PresetReport(
        name=name,
        summary=preset.summary,
        axes=preset.axes,
        totals=PresetTotals(
            configurations=len(configurations),
            variants=len(variants),
            packages=sum(row.count for row in packages),
        ),
        variants=variants,
        configurations=configurations,
        packages=packages,
    )


def configuration_of(preset: Preset, variant: Variant) -> Part:
    """The entry of ``configurations`` that a variant belongs to."""
    mine = (part for part in preset.configurations if holds(part, variant))
    return next(mine, Part(axes=tuple(preset.axes)))


def holds(part: Part, variant: Variant) -> bool:
    """Whether a part is of a variant."""
    return matches(part.when, variant.values) and not any(matches(each, variant.values) for each in part.exclude)


def _made(part: Part, variants: Iterable[Variant]) -> set[tuple[str, ...]]:
    """The combinations of values that a part has among some variants."""
    return {tuple(project(variant.values, part.axes).values()) for variant in variants if holds(part, variant)}


def _package_rows(preset: Preset, variants: Sequence[Variant]) -> Iterable[PackageRow]:
    for name in dict.fromkeys(part.name for part in preset.packages):
        made = [(part, len(_made(part, variants))) for part in preset.packages if part.name == name]
        seen = {axis for part, count in made if count for axis in part.axes}
        yield PackageRow(
            name=name,
            count=sum(count for _, count in made),
            axes=tuple(axis for axis in preset.axes if axis in seen),
        )
