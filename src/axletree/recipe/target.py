"""A target: the recipe at one variant, with no template left.

Each part carries the values of exactly the axes that it declares (``axes``): what it cannot see is not there. Two
variants that agree on those values therefore get equal parts, and equal parts are one stage.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Literal

import msgspec
from msgspec.structs import replace
from packaging.version import Version

from axletree.core.units import parse_size
from axletree.recipe.axes import axes_of_package, axes_of_test, conditions_of, has_package, matches, project, variant_id
from axletree.recipe.conda import TargetConda, build_tokens, resolve_conda
from axletree.recipe.environments import TargetEnvironment, builders_of, environment_at
from axletree.recipe.filling import Filler
from axletree.recipe.images import chosen_image
from axletree.recipe.importing import is_present
from axletree.recipe.overriding import overridden
from axletree.recipe.relocation import RelocateTable, filled_rules
from axletree.recipe.target_source import AxisValues, TargetSource, has_source, target_source
from axletree.recipe.waivers import Waiver

if TYPE_CHECKING:
    from collections.abc import Collection

    from axletree.recipe.axes import Variant
    from axletree.recipe.model import Package, Recipe, Stage, Test
    from axletree.recipe.resources import Resources


class TargetResources(msgspec.Struct, frozen=True, kw_only=True):
    """What a stage needs; memory and disk in bytes, ``None`` where the recipe does not say."""

    cores: int = 1
    memory: int | None = None
    memory_per_job: int | None = None
    disk: int | None = None


class TargetStage(msgspec.Struct, frozen=True, kw_only=True):
    """A stage of the recipe at this variant."""

    name: str
    action: Literal["build", "compile", "run", "download", "relocate", "hipify"]
    axes: AxisValues
    environment: str | None
    host: str | None = None
    """Conda environment that it links against."""
    inputs: tuple[str, ...]
    """Stages, those of imported recipes as ``magma/compile``."""
    source: bool
    sources: tuple[str, ...] = ()
    """More sources that it gets in folders of their own."""
    source_from: str | None = None
    """Stage whose tree is its source; ``None`` where that is the recipe's."""
    image: str | None = None
    """Image that its commands see; ``None`` for the host's files."""
    directory: str
    commands: tuple[str, ...]
    sha256: str | None = None
    """Digest of what is downloaded, if it is known."""
    config: dict[str, str]
    driver: Literal["auto", "cmake", "setup.py", "scikit-build-core"] = "auto"
    targets: tuple[str, ...] = ()
    options: dict[str, str] = {}
    expect: dict[str, str] = {}
    prefix: str = ""
    files: tuple[str, ...] = ()
    continues: str | None = None
    env: dict[str, str]
    pass_env: tuple[str, ...]
    tools: tuple[str, ...]
    workspace: bool
    parallel: Literal["auto", "jobs", "tokens", "setuptools"]
    resources: TargetResources
    relocate: RelocateTable | None = None


class TargetPackage(msgspec.Struct, frozen=True, kw_only=True):
    """A package at this variant."""

    name: str
    stage: str | None
    """Stage whose tree is packed; ``None`` for a metapackage."""
    formats: tuple[Literal["wheel", "conda", "zip"], ...]
    version: str
    """Full version with its local label, normalised (PEP 440)."""
    summary: str
    license: str | None
    axes: AxisValues
    chosen_by: AxisValues
    """The axes that its condition or its stage's names: other variants may not have it."""
    files: tuple[str, ...]
    exclude: tuple[str, ...]
    prefix: str
    build_tag: int | None
    requires: tuple[str, ...]
    requires_python: str | None
    index: str
    """Index root inside the output folder, ``torch-2.13/cpu``; ``.`` for the folder itself."""
    glibc: str | None
    provided_by: dict[str, tuple[str, ...]]
    conda: TargetConda | None
    """``None`` where it is no conda package."""
    ignore_run_exports: tuple[str, ...] = ()
    """Packages of conda environments, or dependencies, whose run exports it does not get."""
    relabel: bool = False
    """Whether the recipe's word counts where what was built says otherwise."""
    bundle: bool = False
    """Whether its wheel takes in the libraries of this machine that it needs and nobody else brings."""
    waive: tuple[Waiver, ...] = ()
    """Findings of its audits that are accepted."""


class TargetTest(msgspec.Struct, frozen=True, kw_only=True):
    """A test at this variant."""

    name: str
    packages: tuple[str, ...]
    axes: AxisValues
    environment: str
    installers: tuple[Literal["pip", "uv", "conda"], ...]
    image: str | None = None
    imports: tuple[str, ...]
    files: tuple[str, ...]
    commands: tuple[str, ...]
    resources: TargetResources


class Target(msgspec.Struct, frozen=True, kw_only=True):
    """The recipe at one variant."""

    recipe: str
    version: str
    variant: str
    """The variant's id, ``py311-cpu-torch2.13.0``."""
    axes: AxisValues
    source: TargetSource
    environments: tuple[TargetEnvironment, ...]
    stages: tuple[TargetStage, ...]
    packages: tuple[TargetPackage, ...]
    tests: tuple[TargetTest, ...]


def resolve(recipe: Recipe, variant: Variant, *, version: str | None = None) -> Target:
    """Fill a valid recipe with the values of one variant, with its overrides applied in order.

    ``version`` is what packages are called, where that is not the recipe's: the source stays that of the recipe.

    Raises:
        RecipeError: a text reads what its owner does not declare; a recipe from ``parse_recipe`` has none such.
    """
    values = variant.values
    source = target_source(recipe, values)
    recipe = recipe if version is None else replace(recipe, version=version)
    now = overridden(recipe, values)
    stages = {name: part for name, part in now.stages.items() if matches(part.when, values)}
    packages = {name: part for name, part in now.packages.items() if has_package(recipe, part, values)}
    return Target(
        recipe=recipe.name,
        version=recipe.version,
        variant=variant.id,
        axes=dict(values),
        source=source,
        environments=tuple(
            environment_at(recipe, name, part, values, builders=builders_of(name, stages.values()))
            for name, part in now.environments.items()
        ),
        stages=tuple(_stage(recipe, name, part, values, stages) for name, part in stages.items()),
        packages=tuple(_package(recipe, name, part, values) for name, part in packages.items()),
        tests=tuple(
            _test(recipe, name, part, values, packages)
            for name, part in now.tests.items()
            if not packages.keys().isdisjoint(part.packages)
        ),
    )


def input_variable(stage: str, kind: Literal["IN", "SOURCE"] = "IN") -> str:
    """Environment variable that names the folder of an input, or of one more source, to a stage's commands."""
    return f"AXLETREE_{kind}_{re.sub(r'[^A-Z0-9]', '_', stage.upper())}"


def _stage(recipe: Recipe, name: str, stage: Stage, values: AxisValues, present: Collection[str]) -> TargetStage:
    """A stage; of the stages that it names, those that the variant has."""
    text = Filler(recipe, values, stage.axes)
    return TargetStage(
        name=name,
        action=stage.action,
        axes=text.axes,
        environment=stage.environment,
        host=stage.host,
        inputs=tuple(each for each in stage.inputs if is_present(recipe, each, values)),
        source=stage.source and stage.action != "relocate",
        sources=tuple(each for each in stage.sources if has_source(recipe, each, values)),
        source_from=stage.source_from if stage.source_from in present else None,
        image=chosen_image(stage.image and text.one(stage.image)),
        directory=text.one(stage.directory),
        commands=text.each(stage.commands),
        sha256=stage.sha256,
        config=text.table(stage.config),
        driver=stage.driver,
        targets=text.each(stage.targets),
        options=text.table(stage.options),
        expect=text.table(stage.expect),
        prefix=text.one(stage.prefix),
        files=text.each(stage.files),
        continues=stage.continues if stage.continues in present else None,
        env=text.table(stage.env),
        pass_env=stage.pass_env,
        tools=stage.tools,
        workspace=stage.action == "compile" if stage.workspace is None else stage.workspace,
        parallel=stage.parallel,
        resources=_resources(stage.resources),
        relocate=None if stage.relocate is None else filled_rules(stage.relocate, text),
    )


def _package(recipe: Recipe, name: str, package: Package, values: AxisValues) -> TargetPackage:
    text = Filler(recipe, values, axes_of_package(recipe, package))
    local = "" if package.local is None else f"+{text.one(package.local)}"
    return TargetPackage(
        name=name,
        stage=package.from_,
        formats=package.formats,
        version=str(Version(recipe.version + local)),
        summary=recipe.summary if package.summary is None else text.one(package.summary),
        license=recipe.license,
        axes=text.axes,
        chosen_by=project(values, conditions_of(recipe, package)),
        files=text.each(package.files),
        exclude=text.each(package.exclude),
        prefix=text.one(package.prefix),
        build_tag=package.build_tag,
        requires=text.each(package.requires),
        requires_python=None if package.requires_python is None else text.one(package.requires_python),
        index=text.one(package.index),
        glibc=package.glibc,
        provided_by=package.provided_by,
        conda=_conda(recipe, package, text) if "conda" in package.formats else None,
        ignore_run_exports=package.conda.ignore_run_exports,
        relabel=package.relabel,
        bundle=package.bundle,
        waive=tuple(each for each in package.waive if matches(each.when, values)),
    )


def _conda(recipe: Recipe, package: Package, text: Filler) -> TargetConda:
    ids = {axis: variant_id({axis: value}, recipe.axes) for axis, value in text.axes.items()}
    version = Version(recipe.version).public
    return resolve_conda(package.conda, text.with_given, version=version, axes=text.axes, tokens=build_tokens(ids))


def _test(recipe: Recipe, name: str, test: Test, values: AxisValues, packages: Collection[str]) -> TargetTest:
    text = Filler(recipe, values, axes_of_test(recipe, test))
    return TargetTest(
        name=name,
        packages=tuple(package for package in test.packages if package in packages),
        axes=text.axes,
        environment=test.environment,
        installers=test.installers,
        image=chosen_image(test.image and text.one(test.image)),
        imports=text.each(test.imports),
        files=text.each(test.files),
        commands=text.each(test.commands),
        resources=_resources(test.resources),
    )


def _resources(resources: Resources) -> TargetResources:
    texts = {"memory": resources.memory, "memory_per_job": resources.memory_per_job, "disk": resources.disk}
    sizes = {name: parse_size(text) for name, text in texts.items() if text is not None}
    return TargetResources(cores=resources.cores, **sizes)
