"""Build a wheel from the source through PEP 517."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING

from axletree.core.errors import StageError
from axletree.execute.backend import build_wheel
from axletree.execute.context import Outcome
from axletree.execute.drivers.job import CACHE, check_expectations, run_commands
from axletree.execute.environ import child_environment, note_environment
from axletree.execute.environments import ensure_environment
from axletree.execute.workspace import open_workplace, workplace_variables

if TYPE_CHECKING:
    from pathlib import Path

    from axletree.execute.context import Context


def run(context: Context) -> Outcome:
    """Build the wheel; a source that is a wheel already is passed on as it is.

    Raises:
        StageError: a command or the backend fails, or the environment lacks what it requires.
    """
    ready = [entry for entry in context.tree("source").entries if entry.path.endswith(".whl") and "/" not in entry.path]
    if ready and len(ready) == len(context.tree("source").entries):
        return Outcome(tree=context.request.inputs["source"], facts={"wheel": ready[0].path})
    venv = ensure_environment(context, context.request.inputs["environment"])
    out = context.work / "wheel"
    with ExitStack() as stack:
        place = stack.enter_context(open_workplace(context))
        env = stack.enter_context(child_environment(context, venv=venv, compiles=True, root=place.root))
        env |= workplace_variables(context, place)
        note_environment(context, env)
        assert place.source is not None  # noqa: S101 (the plan gives a build its source)
        source = place.source / context.parameters["directory"]
        run_commands(context, source, env)
        lines: list[str] = []
        config = context.parameters["config"]
        wheel = build_wheel(context, source=source, out=out, env=env, config=config, watch=lines.append)
        _check(context, source, lines)
    return Outcome(tree=context.store.ingest(out, adopt=True), facts={"wheel": wheel})


def _check(context: Context, source: Path, lines: list[str]) -> None:
    """Compare what CMake enabled in the build with what the recipe expects of it."""
    expected = context.parameters.get("expect")
    if not expected:
        return
    caches = sorted(source.rglob(CACHE), key=lambda path: len(path.parts))
    if not caches:
        raise StageError(f"the build left no {CACHE} below {source.name}", hint="only a CMake build can have `expect`")
    check_expectations(expected, caches[0], lines)
