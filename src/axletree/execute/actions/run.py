"""Run a recipe's own commands: what they leave in ``$AXLETREE_OUT`` is the result."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING

from axletree.core.errors import StageError
from axletree.execute.context import Outcome
from axletree.execute.environ import child_environment, note_environment
from axletree.execute.environments import ensure_environment
from axletree.execute.process import check_program
from axletree.execute.workspace import open_workplace
from axletree.recipe.target import input_variable

if TYPE_CHECKING:
    from pathlib import Path

    from axletree.execute.context import Context
    from axletree.execute.workspace import Workplace


def run(context: Context) -> Outcome:
    """Run the commands under ``bash -euo pipefail`` in the source's folder.

    They see ``$AXLETREE_OUT`` (empty folder to fill), ``$AXLETREE_SOURCE``, ``$AXLETREE_IN_<STAGE>`` for each input,
    ``$AXLETREE_JOBS`` and, if asked for, ``$AXLETREE_WORKSPACE``.

    Raises:
        StageError: a command fails, or nothing was made.
    """
    out = context.work / "out"
    out.mkdir()
    environment = context.request.inputs.get("environment")
    venv = ensure_environment(context, environment) if environment is not None else None
    with ExitStack() as stack:
        place = stack.enter_context(open_workplace(context))
        env = stack.enter_context(child_environment(context, venv=venv, compiles=True, root=place.root))
        cwd = place.source / context.parameters["directory"] if place.source is not None else context.work
        env |= _variables(context, place, out)
        note_environment(context, env)
        script = "\n".join(context.parameters["commands"])
        check_program(
            ["/bin/bash", "-euo", "pipefail", "-c", script],
            cwd=cwd,
            env=env,
            log=context.log,
            progress=context.progress,
            what=f"stage {context.request.stage}",
        )
    if not any(out.iterdir()):
        raise StageError("the commands left $AXLETREE_OUT empty", hint="copy or install the result there")
    return Outcome(tree=context.store.ingest(out, adopt=True))


def _variables(context: Context, place: Workplace, out: Path) -> dict[str, str]:
    variables = {"AXLETREE_OUT": str(out), "AXLETREE_JOBS": str(context.grant.jobs)}
    if place.source is not None:
        variables["AXLETREE_SOURCE"] = str(place.source)
    if place.state is not None:
        variables["AXLETREE_WORKSPACE"] = str(place.state)
    for stage, folder in place.inputs.items():
        variables[input_variable(stage)] = str(folder)
    return variables
