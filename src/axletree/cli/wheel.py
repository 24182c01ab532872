"""``axletree wheel``: from a project to tested wheels, with a recipe on the way."""

from __future__ import annotations

from pathlib import Path

import click

from axletree.app.build import BuildReport
from axletree.app.lock import lock_recipe
from axletree.app.start import draft, write_recipe
from axletree.cli import build
from axletree.cli.init import start_options, wanted_of
from axletree.cli.notes import say_aside
from axletree.cli.opening import lock_context, settings
from axletree.cli.reporting import ReportCommand, Reported


@click.command(cls=ReportCommand, report=BuildReport)
@start_options
@click.option(
    "--out", type=click.Path(path_type=Path), show_default="`dist`, or the setting `out`", help="Output folder."
)
@click.pass_context
def command(
    ctx: click.Context,
    *,
    target: str,
    torch: str | None,
    gpu: str | None,
    pythons: str | None,
    portable: bool,
    offline: bool,
    find_links: tuple[str, ...],
    index_url: str | None,
    out: Path | None,
) -> Reported:
    """Build wheels of a project: init, lock and build in one step.

    The recipe is kept in the output folder, so that `axletree build` can continue with it. TARGET is the same as for
    `axletree init`; exit codes and the output of --json are the same as for `axletree build`.
    """
    given = settings(out=out, offline=offline, find_links=find_links, index_url=index_url)
    folder = Path(given.out)

    def work() -> Reported:
        surroundings = lock_context(given)
        started = draft(
            wanted_of(target, torch, gpu, pythons, portable=portable),
            surroundings,
            place=lambda name: folder / f"{name}.toml",
            note=say_aside,
        )
        write_recipe(started, Path(started.recipe), again=True)
        say_aside(f"recipe: {started.recipe}")
        for sentence in started.project.notices:
            say_aside(f"note: {sentence}")
        lock_recipe(started.recipe, surroundings, note=say_aside)
        reported: Reported = ctx.invoke(
            build.command,
            recipe=started.recipe,
            out=folder,
            offline=offline,
            find_links=find_links,
            index_url=index_url,
        )
        return reported

    return build.reporting(work, folder)
