"""What the actions share that run programs in a source: ``run``, ``build``, ``compile`` and ``hipify``."""

from __future__ import annotations

from axletree.plan.actions.spec import Parameters


class WorkParameters(Parameters, frozen=True, kw_only=True):
    """Of an action that runs programs in a folder of the source."""

    directory: str
    """Folder of the source in which it works, ``.`` for the source itself."""
    env: dict[str, str] = {}
    """Variables that the recipe sets."""


class CommandParameters(WorkParameters, frozen=True, kw_only=True):
    """Of an action that runs the recipe's commands, alone or before it builds."""

    commands: tuple[str, ...] = ()


class ProjectParameters(CommandParameters, frozen=True, kw_only=True):
    """Of an action that builds a project."""

    expect: dict[str, str] = {}
    """CMake variable -> what it must be once CMake has looked for everything."""
