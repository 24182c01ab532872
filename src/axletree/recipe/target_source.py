"""The source of a target, more sources beside it, and patches: no placeholder is left."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import msgspec

from axletree.recipe.axes import matches, project
from axletree.recipe.filling import Filler

if TYPE_CHECKING:
    from collections.abc import Mapping

    from axletree.recipe.model import Recipe
    from axletree.recipe.source_tables import ExtraSource, Source

SourceKind = Literal["pypi", "url", "git", "path", "wheel"]
AxisValues = dict[str, str]
"""Axis -> value, only the axes that the owner declares."""


class TargetPatch(msgspec.Struct, frozen=True, kw_only=True):
    """A patch that applies at this variant."""

    file: str
    """Relative to the recipe."""
    strip: int = 1


class TargetExtra(msgspec.Struct, frozen=True, kw_only=True):
    """One more source of a recipe."""

    name: str
    kind: SourceKind
    location: str
    """As of the source."""
    version: str
    """Of an sdist; empty for all others."""
    sha256: str | None = None
    ref: str | None = None
    submodules: bool = False
    exclude: tuple[str, ...] = ()
    into: str | None = None
    """Path in the source, or ``None``."""
    unpack: bool | None = None
    """``None`` goes by the file's name."""
    strip: int = 1


class TargetSource(msgspec.Struct, frozen=True, kw_only=True):
    """The source at this variant."""

    kind: SourceKind
    location: str
    """Project name, address or path, as the kind asks."""
    version: str
    sha256: str | None = None
    ref: str | None = None
    submodules: bool = False
    exclude: tuple[str, ...] = ()
    patches: tuple[TargetPatch, ...] = ()
    extras: tuple[TargetExtra, ...] = ()
    """More sources of the recipe that this variant has."""
    axes: AxisValues = {}
    """Only the axes that the conditions of its patches name, and of sources that are put into it."""


def target_source(recipe: Recipe, values: Mapping[str, str]) -> TargetSource:
    """The source of a recipe at one variant."""
    source, text = recipe.source, Filler(recipe, values, ())
    kind, location = _kind_of(source)
    conditions = [patch.when for patch in recipe.patches]
    conditions += [extra.when for extra in recipe.sources.values() if extra.into is not None]
    return TargetSource(
        kind=kind,
        location=location if kind == "pypi" else text.one(location),
        version=recipe.version,
        sha256=source.sha256,
        ref=text.one(source.ref) if source.ref is not None else None,
        submodules=source.submodules,
        exclude=source.exclude,
        patches=tuple(
            TargetPatch(file=text.one(patch.file), strip=patch.strip)
            for patch in recipe.patches
            if matches(patch.when, values)
        ),
        extras=tuple(
            _extra(name, table, text) for name, table in recipe.sources.items() if has_source(recipe, name, values)
        ),
        axes=project(values, {axis for condition in conditions for axis in condition}),
    )


def extras_of(recipe: Recipe) -> tuple[TargetExtra, ...]:
    """All sources beside a recipe's own, whichever variants have them: what its lock pins."""
    text = Filler(recipe, {}, ())
    return tuple(_extra(name, table, text) for name, table in recipe.sources.items())


def has_source(recipe: Recipe, name: str, values: Mapping[str, str]) -> bool:
    """Whether a variant has one more source."""
    return name in recipe.sources and matches(recipe.sources[name].when, values)


def _extra(name: str, table: ExtraSource, text: Filler) -> TargetExtra:
    kind, location = _kind_of(table)
    return TargetExtra(
        name=name,
        kind=kind,
        location=location if kind == "pypi" else text.one(location),
        version="" if table.version is None else text.one(table.version),
        sha256=table.sha256,
        ref=None if table.ref is None else text.one(table.ref),
        submodules=table.submodules,
        exclude=table.exclude,
        into=None if table.into is None else text.one(table.into),
        unpack=table.unpack,
        strip=table.strip,
    )


def _kind_of(source: Source | ExtraSource) -> tuple[SourceKind, str]:
    """The kind of a valid source, and where it is."""
    given: tuple[tuple[SourceKind, str | None], ...] = (
        ("pypi", source.pypi),
        ("url", source.url),
        ("git", source.git),
        ("path", source.path),
        ("wheel", getattr(source, "wheel", None)),
    )
    return next((kind, location) for kind, location in given if location is not None)
