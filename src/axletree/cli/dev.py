"""``axletree dev``: an editable source tree of a variant, and its rebuilds."""

from __future__ import annotations

import os
import shlex
import time
from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec

from axletree.app.dev import dev, rebuild
from axletree.core.errors import UsageError
from axletree.store.layout import default_root
from axletree.store.store import Store
from axletree.view.plain import PlainView
from axletree.view.tables import format_duration, plural, printable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from axletree.app.dev import Developed
    from axletree.core.events import Event

_PARTS = 10
"""Lines for the steps of a build, at most."""


@click.command(help="Make a source tree editable, and rebuild what changed: dev RECIPE, dev rebuild [DIR].")
@click.argument("recipe", metavar="RECIPE|rebuild")
@click.argument("folder", metavar="[DIR]", required=False, type=click.Path(path_type=Path, file_okay=False))
@click.option("-v", "--variant", metavar="PATTERN", help="The variant; not needed if the recipe has only one.")
@click.option(
    "--source", type=click.Path(path_type=Path), help="The source tree; the recipe's source folder by default."
)
@click.option("--venv", type=click.Path(path_type=Path), help="Folder of the environment; inside the tree by default.")
@click.option("--stage", metavar="NAME", help="Stage to build in the tree, if the recipe has several.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(
    *,
    recipe: str,
    folder: Path | None,
    variant: str | None,
    source: Path | None,
    venv: Path | None,
    stage: str | None,
    as_json: bool,
) -> None:
    """Make or rebuild; exit 0 when the tree is up to date, else as what failed."""
    view = PlainView(lambda line: click.echo(line, err=True))
    store = Store.open(default_root(os.environ))

    def emit(event: Event) -> None:
        if not as_json:
            view.handle(event, time.time())

    progress = _Steps(quiet=as_json)
    if recipe == "rebuild":
        given = {"--variant": variant, "--source": source, "--venv": venv, "--stage": stage}
        if wrong := [name for name, value in given.items() if value is not None]:
            raise UsageError(
                f"rebuild does not take {wrong[0]}", hint="run `axletree dev RECIPE` to set up a tree again"
            )
        done = rebuild(folder or Path(), store=store, environ=os.environ, emit=emit, progress=progress)
    else:
        if folder is not None:
            raise UsageError(f"unexpected argument {folder}", hint=f"give the tree with --source: --source {folder}")
        done = dev(
            recipe,
            variant=variant,
            stage=stage,
            source=source,
            venv=venv,
            store=store,
            environ=os.environ,
            emit=emit,
            progress=progress,
        )
    click.echo(_json(done) if as_json else "\n".join(_lines(done)))


class _Steps:
    """Prints phases as they begin, and a line for each tenth of the steps."""

    def __init__(self, *, quiet: bool) -> None:
        self._quiet = quiet
        self._last: object = None

    def __call__(self, message: str, *, done: int | None = None, total: int | None = None) -> None:
        step = message if done is None or not total else done * _PARTS // total
        if self._quiet or step == self._last or not message or done == 0:
            return
        self._last = step
        text = message if done is None else f"[{done}/{total}] {message}"
        click.echo(printable(text.partition("\n")[0]), err=True)


def _lines(done: Developed) -> Iterator[str]:
    if done.state == "current":
        what = f"all {done.steps:,} steps are" if done.steps > 1 else "it is"
        yield f"nothing to do: {what} up to date ({done.variant})"
        return
    counted = f"{done.ran:,} of {plural(done.steps, 'step')}" if done.steps else "done"
    yield f"{counted} in {format_duration(done.seconds)} ({done.variant}, {done.way})"
    if done.venv is not None:
        programs = _from_here(Path(done.venv) / "bin")
        yield printable(f"activate: source {shlex.quote(f'{programs}/activate')}")
        if done.modules:
            yield printable(f"import:   {shlex.quote(f'{programs}/python')} -c 'import {done.modules[0]}'")
    for note in done.notes:
        yield printable(f"note: {note}")


def _from_here(path: Path) -> Path:
    """A path as one would type it."""
    return path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path


def _json(done: Developed) -> str:
    return msgspec.json.format(msgspec.json.encode({"schema": 1, **msgspec.structs.asdict(done)}), indent=1).decode()
