"""``compile``: what a project that CMake builds installs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from axletree.plan.actions.project import ProjectParameters
from axletree.plan.actions.spec import ActionSpec, Facts

if TYPE_CHECKING:
    from axletree.recipe.target import TargetStage

Driver = Literal["cmake", "setup.py", "scikit-build-core"]


class CompileParameters(ProjectParameters, frozen=True, kw_only=True):
    """How the project is configured, and what of it is built and kept."""

    driver: Driver | None = None
    """Without one, the source tells."""
    targets: tuple[str, ...] = ()
    options: dict[str, str] = {}
    """CMake variables."""
    prefix: str = ""
    """Folder of the result in which the project is installed."""
    files: tuple[str, ...] = ()
    """Globs of the installed files that are the result; all where there are none."""


class CompileFacts(Facts, frozen=True, kw_only=True):
    """How it was built."""

    driver: Driver


def parameters(stage: TargetStage) -> CompileParameters:
    """What a stage of a recipe asks for."""
    return CompileParameters(
        directory=stage.directory,
        env=stage.env,
        commands=stage.commands,
        expect=stage.expect,
        driver=None if stage.driver == "auto" else stage.driver,
        targets=stage.targets,
        options=stage.options,
        prefix=stage.prefix,
        files=stage.files,
    )


def cmake_options(parameters: ProjectParameters) -> dict[str, str]:
    """The CMake variables that an action passes itself; a PEP 517 build leaves them to the backend."""
    return parameters.options if isinstance(parameters, CompileParameters) else {}


SPEC = ActionSpec(
    of_stage=parameters,
    module="axletree.execute.actions.compile",
    revision=1,
    parameters=CompileParameters,
    facts=CompileFacts,
    compiles=True,
)
