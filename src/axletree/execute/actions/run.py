"""Run a recipe's own commands: what they leave in ``$AXLETREE_OUT`` is the result."""

from __future__ import annotations

from contextlib import ExitStack
from types import MappingProxyType
from typing import TYPE_CHECKING

from axletree.core.errors import StageError
from axletree.execute.context import Outcome
from axletree.execute.environments import stage_environments
from axletree.execute.process import check_program
from axletree.execute.variables import child_environment, note_environment
from axletree.execute.workspace import open_workplace, workplace_variables

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from axletree.execute.context import ActionContext
    from axletree.plan.actions.project import CommandParameters


def run(context: ActionContext[CommandParameters]) -> Outcome:
    """Run the commands under ``bash -euo pipefail`` in the source's folder.

    They see ``$AXLETREE_OUT`` (empty folder to fill), ``$AXLETREE_SOURCE``, ``$AXLETREE_IN_<STAGE>`` for each input,
    ``$AXLETREE_JOBS`` and, if asked for, ``$AXLETREE_WORKSPACE``.

    Raises:
        StageError: a command fails, or nothing was made.
    """
    return Outcome(tree=context.store.ingest(run_commands(context, compiles=True), adopt=True))


def run_commands(
    context: ActionContext[CommandParameters],
    *,
    compiles: bool,
    more: Mapping[str, str] = MappingProxyType({}),
    less: Iterable[str] = (),
) -> Path:
    """Run the commands, and return the folder that they filled.

    Args:
        context: The stage's surroundings.
        compiles: As of :func:`child_environment`.
        more: Variables that are written down nowhere.
        less: Names of variables that the commands do not get.

    Raises:
        StageError: a command fails, or nothing was made.
    """
    out = context.work / "out"
    out.mkdir()
    venv, host = stage_environments(context)
    with ExitStack() as stack:
        place = stack.enter_context(open_workplace(context))
        env = stack.enter_context(
            child_environment(
                context, venv=venv, host=host, compiles=compiles, variables=context.parameters.env, root=place.root
            )
        )
        cwd = place.source / context.parameters.directory if place.source is not None else context.work
        env |= {"AXLETREE_OUT": str(out), **workplace_variables(context, place)}
        env = {name: value for name, value in env.items() if name not in less}
        note_environment(context, env)
        script = "\n".join(context.parameters.commands)
        check_program(
            ["/bin/bash", "-euo", "pipefail", "-c", script],
            cwd=cwd,
            env={**more, **env},
            log=context.log,
            progress=context.progress,
            what=f"stage {context.request.stage}",
        )
    if not any(out.iterdir()):
        raise StageError("the commands left $AXLETREE_OUT empty", hint="copy or install the result into that folder")
    return out
