"""A change of a recipe for some of its variants, as it is written."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from axletree.recipe.base import CMakeVariable, Condition, Table
from axletree.recipe.conda import CondaTable
from axletree.recipe.resources import Resources


class Override(Table, frozen=True, kw_only=True):
    """A change for the variants that match, to exactly one of `stage`, `environment` and `package`."""

    when: Annotated[
        Condition,
        Meta(
            description="Axis -> value or list of values; every variant by default. Use only axes of the table to change."
        ),
    ] = {}
    stage: Annotated[
        str | tuple[str, ...] | None,
        Meta(description="Stage to change, or a list of stages."),
    ] = None
    environment: Annotated[str | None, Meta(description="Environment to change.")] = None
    package: Annotated[str | tuple[str, ...] | None, Meta(description="Package to change, or a list of packages.")] = (
        None
    )
    env: Annotated[dict[str, str], Meta(description="For a stage: variables to add or override.")] = {}
    commands: Annotated[tuple[str, ...] | None, Meta(description="Commands that replace the stage's own.")] = None
    config: Annotated[dict[str, str], Meta(description="For a stage: config settings to add or override.")] = {}
    options: Annotated[
        dict[CMakeVariable, str], Meta(description="For a stage: CMake variables to add or override.")
    ] = {}
    expect: Annotated[dict[str, str], Meta(description="For a stage: expectations to add or override.")] = {}
    requires: Annotated[tuple[str, ...], Meta(description="For an environment or a package: requirements to add.")] = ()
    conda: Annotated[
        CondaTable | None,
        Meta(description="Settings of the conda package: lists are extended, other values are replaced."),
    ] = None
    tools: Annotated[tuple[str, ...], Meta(description="For a stage: host programs to add.")] = ()
    pass_env: Annotated[
        tuple[str, ...], Meta(description="For a stage: additional variables of your shell to pass.")
    ] = ()
    resources: Annotated[Resources | None, Meta(description="Resources that replace the stage's own.")] = None

    @property
    def stages(self) -> tuple[str, ...]:
        """Names of the stages that are changed."""
        return (self.stage,) if isinstance(self.stage, str) else self.stage or ()

    @property
    def packages(self) -> tuple[str, ...]:
        """Names of the packages that are changed."""
        return (self.package,) if isinstance(self.package, str) else self.package or ()
