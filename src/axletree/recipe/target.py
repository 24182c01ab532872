"""A target: the recipe at one variant, with no template left.

Each part carries the values of exactly the axes that it declares (``axes``): what it cannot see is not there. Two
variants that agree on those values therefore get equal parts, and equal parts are one stage.
"""

from __future__ import annotations

from typing import Literal

import msgspec

AxisValues = dict[str, str]
"""Axis -> value, only the axes that the owner declares."""


class TargetResources(msgspec.Struct, frozen=True, kw_only=True):
    """What a stage needs; memory and disk in bytes, ``None`` where the recipe does not say."""

    cores: int = 1
    memory: int | None = None
    memory_per_job: int | None = None
    disk: int | None = None


class TargetPatch(msgspec.Struct, frozen=True, kw_only=True):
    """A patch that applies at this variant."""

    file: str
    """Relative to the recipe."""
    strip: int = 1


class TargetSource(msgspec.Struct, frozen=True, kw_only=True):
    """The source at this variant."""

    kind: Literal["pypi", "url", "git", "path", "wheel"]
    location: str
    """Project name, address or path, as the kind asks."""
    version: str
    sha256: str | None = None
    ref: str | None = None
    submodules: bool = False
    exclude: tuple[str, ...] = ()
    patches: tuple[TargetPatch, ...] = ()
    axes: AxisValues = {}
    """Only the axes that the conditions of its patches name."""


class TargetEnvironment(msgspec.Struct, frozen=True, kw_only=True):
    """An environment at this variant."""

    name: str
    python: str
    """``3.11``, or ``3.13t`` for the free-threaded build."""
    requires: tuple[str, ...]
    axes: AxisValues
    lock: str
    """File name of its lock in the recipe's companion folder: ``pylock.build-py311-cpu.toml`` (PEP 751)."""


class TargetStage(msgspec.Struct, frozen=True, kw_only=True):
    """A stage of the recipe at this variant."""

    name: str
    action: Literal["build", "run"]
    axes: AxisValues
    environment: str | None
    inputs: tuple[str, ...]
    source: bool
    directory: str
    commands: tuple[str, ...]
    config: dict[str, str]
    env: dict[str, str]
    pass_env: tuple[str, ...]
    tools: tuple[str, ...]
    workspace: bool
    parallel: Literal["auto", "jobs", "tokens"]
    resources: TargetResources


class TargetPackage(msgspec.Struct, frozen=True, kw_only=True):
    """A package at this variant."""

    name: str
    stage: str
    """Stage whose tree is packed."""
    version: str
    """Full version with its local label, normalised (PEP 440)."""
    summary: str
    license: str | None
    axes: AxisValues
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


class TargetTest(msgspec.Struct, frozen=True, kw_only=True):
    """A test at this variant."""

    name: str
    packages: tuple[str, ...]
    axes: AxisValues
    environment: str
    installers: tuple[Literal["pip", "uv"], ...]
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
