"""``axletree build``: the main job."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec

from axletree.app.build import BuildReport, build
from axletree.app.ledger import LEDGER, chosen, standings
from axletree.app.planning import PlanRequest
from axletree.app.publish import OUT
from axletree.app.releases import patterns_for_gpu
from axletree.cli.ledger import build_command
from axletree.cli.notes import at_work, hush, is_quiet, print_line, say_aside
from axletree.cli.opening import open_store, settings
from axletree.cli.reporting import ReportCommand, Reported, wants_json
from axletree.core.errors import AxletreeError, HostError, Problem
from axletree.core.units import plural
from axletree.host.machine import memory
from axletree.recipe.axes import exactly
from axletree.view.choose import EventView, choose_view
from axletree.view.ledger import remaining_lines
from axletree.view.plain import PlainView, running_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from axletree.app.build import Built
    from axletree.plan.ledger import Standing
    from axletree.view.state import RunView

_CANCELLED = 130


@click.command(
    cls=ReportCommand,
    report=BuildReport,
    help="Build, audit, index, install and test a recipe's variants.\n\nWith --json its events come first, one a line, "
    "and its report is the last line.",
)
@click.argument("recipe")
@click.option(
    "--out", type=click.Path(path_type=Path), show_default="dist, or the `out` setting", help="Output folder."
)
@click.option("-v", "--variant", "patterns", multiple=True, metavar="PATTERN", help="Only variants that match PATTERN.")
@click.option("--skip", multiple=True, metavar="PATTERN", help="Skip variants that match PATTERN.")
@click.option("--gpu", metavar="GPU", help="Only variants for this GPU: cpu, cu126, 12.6, rocm7.1, xpu.")
@click.option("--no-share", multiple=True, metavar="AXIS", help="Do not share stages between values of this axis.")
@click.option(
    "--source", type=click.Path(path_type=Path), help="Source folder to build instead of the recipe's source."
)
@click.option(
    "--release",
    metavar="RELEASE",
    help="Version of the packages: nightly=YYYYMMDD, rc=N, post=N, git=SHA, tag=vX.Y.Z, or a version.",
)
@click.option(
    "--keep-going", is_flag=True, help="After a failure, continue with stages that do not depend on the failed stage."
)
@click.option(
    "--remaining",
    is_flag=True,
    help="Only variants that are not done yet, according to the output folder's ledger.",
)
@click.option("--only-failed", is_flag=True, help="Only variants whose latest build failed.")
@click.option("--offline", is_flag=True, help="Do not use the network; a missing file is an error.")
@click.option(
    "--find-links", multiple=True, metavar="PLACE", help="Folder or page with wheels, searched before the index."
)
@click.option("--index-url", metavar="URL", help="Package index to use instead of the configured one.")
def command(
    *,
    recipe: str,
    out: Path | None,
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
) -> Reported:
    """Build; exit 0 if everything was built, 130 if cancelled, and 1, 2 or 3 depending on the worst stage failure."""
    place = out or OUT
    again = build_command(
        recipe,
        out,
        patterns=patterns,
        skip=skip,
        no_share=no_share,
        options=_given({"--gpu": gpu, "--source": source, "--release": release}, keep_going=keep_going),
    )
    try:
        given = settings(out=out, offline=offline, find_links=find_links, index_url=index_url)
        place, store = Path(given.out), open_store(given)
        picked = patterns if gpu is None else patterns_for_gpu(recipe, gpu, patterns, skip)
        request = PlanRequest(
            recipe=recipe, out=place, patterns=picked, skip=skip, no_share=no_share, source=source, release=release
        )
        if remaining or only_failed:
            found = standings(request, store, environ=os.environ)
            ids = chosen(found, only_failed=not remaining)
            if not ids:
                return _nothing(found, place, state="remains" if remaining else "failed")
            request = msgspec.structs.replace(request, patterns=tuple(map(exactly, ids)))
        view, tick = _view()
        with view:
            built = build(
                request,
                store,
                keep_going=keep_going,
                settings=given,
                environ=os.environ,
                emit=lambda event: view.handle(event, time.time()),
                tick=tick,
                note=say_aside,
            )
        return _ended(built, place, again=again)
    except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001 (raised again, once the stream has its last line)
        return _broken_off(error, place)


def _given(options: Mapping[str, object | None], *, keep_going: bool) -> tuple[str, ...]:
    """Options with values as they were given, for the command that builds what remains."""
    given = [text for option, value in options.items() if value is not None for text in (option, str(value))]
    return (*given, *(["--keep-going"] if keep_going else []), "--remaining")


def _view() -> tuple[EventView, Callable[[], None]]:
    """The view, and what tells it that time has passed."""
    view: EventView
    color = click.get_current_context().color
    kind = choose_view(os.environ, is_terminal=sys.stdout.isatty(), json=wants_json(), color=color)
    if kind == "live" and not is_quiet():
        return _live_view()
    if kind == "json":
        from axletree.view.jsonl import JsonView  # noqa: PLC0415

        return JsonView(print_line), lambda: None
    view = PlainView((lambda _: None) if is_quiet() else print_line, click.style)
    return view, lambda: at_work(running_text(view.state))


def _live_view() -> tuple[EventView, Callable[[], None]]:
    from rich.console import Console  # noqa: PLC0415 (only for people at a terminal: start-up time)

    from axletree.view.live import LiveView, Machine  # noqa: PLC0415

    hush()
    view = LiveView(Console(highlight=False, no_color=False))

    def tick() -> None:
        used, total = memory()
        view.tick(time.time(), Machine(memory_used=used, memory_total=total))

    return view, tick


def _nothing(found: Sequence[Standing], out: Path, *, state: str) -> Reported:
    report = BuildReport(status="done", exit_code=0, out=out, variants=tuple(found))
    return Reported(report, lambda: f"nothing {state}: {plural(len(found), 'variant')} in {out / LEDGER}")


def _broken_off(error: BaseException, out: Path) -> Reported:
    """What a program that reads the stream is told; people read the message of the error."""
    match error:
        case KeyboardInterrupt():
            report = BuildReport(status="cancelled", exit_code=_CANCELLED, out=out)
        case AxletreeError():
            report = BuildReport(status="failed", exit_code=error.exit_code, out=out, problems=error.problems)
        case OSError():
            file = os.fsdecode(error.filename) if isinstance(error.filename, str | bytes) else None
            problem = Problem(file=file, message=error.strerror or str(error))
            report = BuildReport(status="failed", exit_code=HostError.exit_code, out=out, problems=(problem,))
        case _:
            problem = Problem(message=f"{type(error).__name__}: {error}")
            report = BuildReport(status="failed", exit_code=1, out=out, problems=(problem,))
    return Reported(report, lambda: (), report.exit_code, error=error)


def _ended(built: Built, out: Path, *, again: str) -> Reported:
    """Write the page for people, and report how it ended and what remains."""
    page = out / "report.html"
    if not (built.untouched and page.exists()):
        from axletree.app.report import write_report  # noqa: PLC0415 (a run that does nothing needs no templates)

        page = write_report(built, out, note=say_aside)
    status = built.result.status
    report = BuildReport(
        status=status,
        exit_code=_CANCELLED if status == "cancelled" else built.result.exit_code,
        out=out,
        variants=built.standings,
        install=built.install,
        page=page,
    )
    return Reported(report, lambda: _lines(report, built.view, again=again), report.exit_code)


def _lines(report: BuildReport, view: RunView, *, again: str) -> Iterator[str]:
    from axletree.view.summary import summary_lines  # noqa: PLC0415 (start-up time)

    install = [item.command for item in report.install if item.tool in {"pip", "conda"}]
    page = str(report.page)
    yield from summary_lines(view, out=str(report.out), install=install, report=page, style=click.style)
    yield from remaining_lines(report.variants, command=again)
