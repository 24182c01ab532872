"""``axletree wheel``: from a project to tested wheels, with a recipe on the way."""

from __future__ import annotations

from pathlib import Path

import click

from axletree.app.lock import lock_recipe
from axletree.app.publish import OUT
from axletree.app.start import draft, write_recipe
from axletree.cli import build
from axletree.cli.init import is_offline, start_options, surroundings_here, wanted_of
from axletree.cli.notes import say_aside
from axletree.host.indexes import Layer


@click.command()
@start_options
@click.option("--out", type=click.Path(path_type=Path), default=OUT, show_default=True, help="Output folder.")
@click.option("--json", "as_json", is_flag=True, help="Print the build's events, one JSON object a line.")
@click.pass_context
def command(
    ctx: click.Context,
    *,
    target: str,
    torch: str | None,
    gpu: str | None,
    pythons: str | None,
    offline: bool,
    find_links: tuple[str, ...],
    index_url: str | None,
    out: Path,
    as_json: bool,
) -> None:
    """Make wheels of a project: init, lock and build in one go.

    The recipe stays in the output folder; with it, `axletree build` goes on where this stops. TARGET is what
    `axletree init` takes, exit codes are those of `axletree build`.
    """
    given = Layer(index_url=index_url, find_links=find_links)
    surroundings = surroundings_here()
    started = draft(
        wanted_of(target, torch, gpu, pythons),
        surroundings,
        place=lambda name: out / f"{name}.toml",
        given=given,
        offline=is_offline(flag=offline),
        note=say_aside,
    )
    write_recipe(started, Path(started.recipe), again=True)
    say_aside(f"recipe: {started.recipe}")
    for sentence in started.unknown:
        say_aside(f"not known: {sentence}")
    lock_recipe(started.recipe, surroundings, given=given, note=say_aside)
    ctx.invoke(
        build.command,
        recipe=started.recipe,
        out=out,
        offline=offline,
        find_links=find_links,
        index_url=index_url,
        as_json=as_json,
    )
