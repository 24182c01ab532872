"""``axletree build``: the main job."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from axletree.app.build import Built, build
from axletree.app.ledger import LEDGER, chosen, standings
from axletree.app.planning import SOURCE_VARIABLE
from axletree.app.publish import OUT
from axletree.app.releases import RELEASE_VARIABLE, patterns_for_gpu
from axletree.cli.ledger import build_command
from axletree.cli.notes import say_aside
from axletree.host.machine import memory
from axletree.recipe.axes import exactly
from axletree.store.layout import default_root
from axletree.store.store import Store
from axletree.view.choose import EventView, choose_view
from axletree.view.ledger import remaining_lines
from axletree.view.plain import PlainView
from axletree.view.tables import plural

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from axletree.core.events import Event

_CANCELLED = 130


@click.command(help="Build, audit, index, install and test a recipe's variants.")
@click.argument("recipe")
@click.option("--out", type=click.Path(path_type=Path), default=OUT, show_default=True, help="Output folder.")
@click.option("-v", "--variant", "patterns", multiple=True, metavar="PATTERN", help="Only variants that match.")
@click.option("--skip", multiple=True, metavar="PATTERN", help="Skip variants that match.")
@click.option("--gpu", metavar="GPU", help="Only variants for this GPU: cpu, cu126, 12.6, rocm7.1, xpu.")
@click.option("--no-share", multiple=True, metavar="AXIS", help="Share nothing between values of this axis.")
@click.option("--source", type=click.Path(path_type=Path), help="Folder to build instead of the recipe's source.")
@click.option(
    "--release",
    metavar="RELEASE",
    help="Version of the packages: nightly=YYYYMMDD, rc=N, post=N, git=SHA, tag=vX.Y.Z, or a version.",
)
@click.option("--keep-going", is_flag=True, help="After a failure, continue with stages that do not depend on it.")
@click.option(
    "--remaining",
    is_flag=True,
    help="Only variants that are not done yet, according to the ledger of the output folder.",
)
@click.option("--only-failed", is_flag=True, help="Only variants whose latest build failed.")
@click.option("--offline", is_flag=True, help="Do not use the network; a missing file is an error.")
@click.option("--find-links", multiple=True, metavar="PLACE", help="Folder or page with wheels to look in first.")
@click.option("--index-url", metavar="URL", help="Package index instead of the configured one.")
@click.option("--json", "as_json", is_flag=True, help="Print the run's events, one JSON object a line.")
def command(
    *,
    recipe: str,
    out: Path,
    patterns: tuple[str, ...],
    skip: tuple[str, ...],
    gpu: str | None,
    no_share: tuple[str, ...],
    source: Path | None,
    release: str | None,
    keep_going: bool,
    remaining: bool,
    only_failed: bool,
    offline: bool,
    find_links: tuple[str, ...],
    index_url: str | None,
    as_json: bool,
) -> None:
    """Build; exit 0 if all is done, 130 if cancelled, and 1, 2 or 3 for the worst failure of a stage."""
    environ = _with_options(offline=offline, find_links=find_links, index_url=index_url, source=source, release=release)
    store = Store.open(default_root(environ))
    picked = patterns if gpu is None else patterns_for_gpu(recipe, gpu, patterns, skip)
    if remaining or only_failed:
        found = standings(recipe, store, out=out, environ=environ, patterns=picked, skip=skip, no_share=no_share)
        ids = chosen(found, only_failed=not remaining)
        if not ids:
            state = "remains" if remaining else "failed"
            click.echo(f"nothing {state}: {plural(len(found), 'variant')} in {out / LEDGER}", err=as_json)
            return
        picked = tuple(map(exactly, ids))
    view, tick = _view(as_json=as_json)

    def emit(event: Event) -> None:
        view.handle(event, time.time())

    with view:
        built = build(
            recipe,
            store,
            out=out,
            patterns=picked,
            skip=skip,
            no_share=no_share,
            keep_going=keep_going,
            environ=environ,
            emit=emit,
            tick=tick,
            note=say_aside,
        )
    again = build_command(
        recipe,
        out,
        patterns=patterns,
        skip=skip,
        no_share=no_share,
        options=_given({"--gpu": gpu, "--source": source, "--release": release}, keep_going=keep_going),
    )
    _close(built, out, as_json=as_json, again=again)


def _given(options: Mapping[str, object | None], *, keep_going: bool) -> tuple[str, ...]:
    """Options with values as they were given, for the command that builds what remains."""
    given = [text for option, value in options.items() if value is not None for text in (option, str(value))]
    return (*given, *(["--keep-going"] if keep_going else []), "--remaining")


def _with_options(
    *, offline: bool, find_links: tuple[str, ...], index_url: str | None, source: Path | None, release: str | None
) -> dict[str, str]:
    """The environment with the options in it: stages read their settings there, as they would for another engine."""
    environ = dict(os.environ)
    if offline:
        environ["AXLETREE_OFFLINE"] = "1"
    if find_links:
        environ["AXLETREE_FIND_LINKS"] = " ".join([*find_links, environ.get("AXLETREE_FIND_LINKS", "")]).strip()
    if index_url:
        environ["AXLETREE_INDEX_URL"] = index_url
    if source is not None:
        environ[SOURCE_VARIABLE] = str(source)
    if release is not None:
        environ[RELEASE_VARIABLE] = release
    return environ


def _view(*, as_json: bool) -> tuple[EventView, Callable[[], None]]:
    """The view, and what tells it that time has passed."""
    view: EventView
    kind = choose_view(os.environ, is_terminal=sys.stdout.isatty(), json=as_json)
    if kind == "live":
        return _live_view()
    if kind == "json":
        from axletree.view.jsonl import JsonView  # noqa: PLC0415

        view = JsonView(click.echo)
    else:
        view = PlainView(click.echo)
    return view, lambda: view.tick(time.time())


def _live_view() -> tuple[EventView, Callable[[], None]]:
    from rich.console import Console  # noqa: PLC0415 (only for people at a terminal: start-up time)

    from axletree.view.live import LiveView, Machine  # noqa: PLC0415

    view = LiveView(Console(highlight=False))

    def tick() -> None:
        used, total = memory()
        view.tick(time.time(), Machine(memory_used=used, memory_total=total))

    return view, tick


def _close(built: Built, out: Path, *, as_json: bool, again: str) -> None:
    """Write the report, say how it ended and what remains, and exit."""
    report = out / "report.html"
    if not (built.untouched and report.exists()):
        from axletree.app.report import write_report  # noqa: PLC0415 (a run that does nothing needs no templates)

        report = write_report(built, out, note=say_aside)
    if not as_json:
        from axletree.view.summary import summary_lines  # noqa: PLC0415

        install = [item.command for item in built.install if item.tool in {"pip", "conda"}]
        for line in summary_lines(built.view, out=str(out), install=install, report=str(report)):
            click.echo(line)
        for line in remaining_lines(built.standings, command=again):
            click.echo(line)
    sys.exit(_CANCELLED if built.result.status == "cancelled" else built.result.exit_code)
