"""``axletree dev``: an editable source tree of a variant."""

from __future__ import annotations

import os
import shlex
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from axletree.app.dev import Developed, dev
from axletree.cli.notes import say_aside
from axletree.cli.opening import open_store, settings
from axletree.cli.options import PATH
from axletree.cli.recipe_options import set_option
from axletree.cli.reporting import ReportCommand, Reported, wants_json
from axletree.core.units import format_duration, plural
from axletree.view.plain import PlainView, progress_text
from axletree.view.tables import printable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from axletree.core.events import Event, ProgressUnit

_PARTS = 10
"""Lines for the steps of a build, at most."""


@click.command(cls=ReportCommand, report=Developed)
@click.argument("recipe")
@set_option
@click.option(
    "-v",
    "--variant",
    metavar="PATTERN",
    help="Variant to use, such as 'py311-cpu'; not needed if the recipe has only one.",
)
@click.option("--source", type=PATH, help="Source tree to make editable; the recipe's source folder by default.")
@click.option(
    "--venv", type=PATH, help="Folder to create the virtual environment in; a folder inside the tree by default."
)
@click.option("--stage", metavar="NAME", help="Stage to build in the tree, if the recipe has several.")
def command(
    *,
    recipe: str,
    sets: tuple[str, ...],
    variant: str | None,
    source: Path | None,
    venv: Path | None,
    stage: str | None,
) -> Reported:
    """Install a source tree in editable mode, so that Python imports what you edit and rebuild."""
    return bring_up(partial(dev, recipe, sets=sets, variant=variant, stage=stage, source=source, venv=venv))


def bring_up(work: Callable[..., Developed]) -> Reported:
    """Work on a tree, and say how that goes and what came of it."""
    view = PlainView(say_aside)
    chosen = settings()
    store = open_store(chosen)

    def emit(event: Event) -> None:
        if not wants_json():
            view.handle(event, time.time())

    done = work(store=store, settings=chosen, environ=os.environ, emit=emit, progress=Steps(quiet=wants_json()))
    return Reported(done, lambda: _lines(done))


class Steps:
    """Prints phases as they begin, and a line for each tenth of the steps."""

    def __init__(self, *, quiet: bool) -> None:
        self._quiet = quiet
        self._last: object = None

    def __call__(
        self, message: str, *, done: int | None = None, total: int | None = None, unit: ProgressUnit = "steps"
    ) -> None:
        step = message if done is None or not total else done * _PARTS // total
        if self._quiet or step == self._last or not message or done == 0:
            return
        self._last = step
        # A list of files is indented, which a line of progress is not.
        text = message if done is None else progress_text(message, done, total, unit)
        say_aside(text.partition("\n")[0])


def _lines(done: Developed) -> Iterator[str]:
    if done.state == "current":
        what = f"all {done.steps:,} steps are" if done.steps > 1 else "it is"
        yield f"nothing to do: {what} up to date ({done.variant})"
        return
    counted = f"{done.ran:,} of {plural(done.steps, 'step')}" if done.steps else "done"
    yield f"{counted} in {format_duration(done.seconds)} ({done.variant}, {done.way})"
    if done.venv is not None:
        programs = _from_here(Path(done.venv) / "bin")
        if (programs / "activate").exists():
            yield printable(f"activate: source {shlex.quote(f'{programs}/activate')}")
        else:
            yield printable(f"programs: {programs}")
        if done.modules:
            yield printable(f"import:   {shlex.quote(f'{programs}/python')} -c 'import {done.modules[0]}'")
    for note in done.notes:
        yield printable(f"note: {note}")


def _from_here(path: Path) -> Path:
    """A path as one would type it."""
    return path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path
