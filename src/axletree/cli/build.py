"""``axletree build``: the main job."""

from __future__ import annotations

import os
import sys
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, get_args

import click
import msgspec

from axletree.app.build import BuildReport, build
from axletree.app.ledger import LEDGER, chosen, standings
from axletree.app.lock_changes import PartlyLockedError, diff_lines
from axletree.app.planning import PlanRequest
from axletree.app.publish import OUT
from axletree.app.releases import patterns_for_gpu
from axletree.cli.ledger import build_command
from axletree.cli.notes import at_work, hush, is_quiet, print_line, say_aside
from axletree.cli.opening import lock_context, open_store, settings
from axletree.cli.recipe_options import (
    find_links_option,
    gpu_option,
    index_url_option,
    part_options,
    part_words,
    set_option,
    skip_option,
    source_option,
    split_sources,
    variant_option,
)
from axletree.cli.reporting import ReportCommand, Reported, wants_json
from axletree.core.errors import AxletreeError, HostError, LockError, Problem
from axletree.core.units import plural
from axletree.host.indexes import redact
from axletree.host.machine import memory
from axletree.recipe.axes import exactly
from axletree.recipe.settings import Runner
from axletree.view.choose import EventView, choose_view
from axletree.view.ledger import remaining_lines
from axletree.view.plain import PlainView, running_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from axletree.app.build import Built
    from axletree.app.lock_changes import LockedFile
    from axletree.plan.ledger import Standing
    from axletree.recipe.settings import Settings
    from axletree.view.state import RunView

_CANCELLED = 130


@click.command(
    cls=ReportCommand,
    report=BuildReport,
    help="Build, audit, index, install and test a recipe's variants.\n\nWith --json, prints one event per line, "
    "and the report on the last line.",
)
@click.argument("recipe")
@set_option
@click.option(
    "--out", type=click.Path(path_type=Path), show_default="dist, or the `out` setting", help="Output folder."
)
@variant_option
@skip_option
@gpu_option
@part_options
@click.option(
    "--no-share",
    multiple=True,
    metavar="AXIS",
    help="Build a separate copy of each stage for every value of this axis, instead of sharing it. Repeatable.",
)
@source_option
@click.option(
    "--release",
    metavar="RELEASE",
    help=(
        "Version to give the packages: nightly=YYYYMMDD, rc=N, post=N, git=SHA, tag=vX.Y.Z, or a version such as 2.1.0."
    ),
)
@click.option(
    "--keep-going", is_flag=True, help="After a failure, continue with stages that do not depend on the failed stage."
)
@click.option(
    "--remaining",
    is_flag=True,
    help="Build only variants that the ledger in the output folder does not list as done.",
)
@click.option("--only-failed", is_flag=True, help="Build only variants whose latest build failed.")
@click.option(
    "-j", "--jobs", type=click.IntRange(min=1), metavar="N", help="Use at most N cores; overrides the `jobs` setting."
)
@click.option(
    "--replace",
    is_flag=True,
    help="Overwrite packages in the output folder that have the same name but different content.",
)
@click.option(
    "--locked",
    is_flag=True,
    help="Fail if a lock is missing or outdated instead of updating it; the default if the CI variable is set.",
)
@click.option(
    "--runner",
    type=click.Choice(get_args(Runner)),
    help="How stages with an image enter it; overrides the `runner` setting.",
)
@click.option("--pass-gpu", is_flag=True, help="Let tests in images use the GPUs of this machine.")
@click.option("--offline", is_flag=True, help="Do not use the network; fail if a file is missing.")
@find_links_option
@index_url_option
def command(
    *,
    recipe: str,
    sets: tuple[str, ...],
    out: Path | None,
    patterns: tuple[str, ...],
    skip: tuple[str, ...],
    gpu: str | None,
    formats: tuple[str, ...],
    packages: tuple[str, ...],
    no_share: tuple[str, ...],
    sources: tuple[str, ...],
    release: str | None,
    keep_going: bool,
    remaining: bool,
    only_failed: bool,
    jobs: int | None,
    replace: bool,
    locked: bool,
    runner: Runner | None,
    pass_gpu: bool,
    offline: bool,
    find_links: tuple[str, ...],
    index_url: str | None,
) -> Reported:
    """Build a recipe's variants; exit with 0 on success, 130 if cancelled, or 1, 2 or 3 for the worst failure."""
    source, import_sources = split_sources(sources)
    request = PlanRequest(
        recipe=recipe,
        out=out or OUT,
        sets=sets,
        formats=formats,
        packages=packages,
        patterns=patterns,
        skip=skip,
        no_share=no_share,
        source=source,
        import_sources=import_sources,
        release=release,
        replace=replace,
    )
    flags = {"--replace": replace, "--locked": locked, "--offline": offline, "--pass-gpu": pass_gpu}
    flags["--keep-going"] = keep_going
    values = {"--gpu": gpu, "-j": jobs, "--runner": runner, "--index-url": index_url}
    again = _again(request, out, values, find_links, flags)
    indexes = {"offline": offline, "find_links": find_links, "index_url": index_url}
    given = partial(settings, out=out, jobs=jobs, runner=runner, pass_gpu=pass_gpu, **indexes)

    def work() -> Reported:
        state = "remains" if remaining else "failed" if only_failed else None
        return _build(request, given(), gpu=gpu, state=state, keep_going=keep_going, again=again)

    def lock() -> tuple[LockedFile, ...]:
        from axletree.app.lock import lock_recipe  # noqa: PLC0415 (start-up time: most builds lock nothing)

        return lock_recipe(recipe, lock_context(given()), sets=sets, patterns=patterns, skip=skip, note=say_aside)

    return reporting(lambda: _with_locks(work, None if locked or in_ci(os.environ) else lock), out or OUT)


def _build(
    request: PlanRequest, given: Settings, *, gpu: str | None, state: str | None, keep_going: bool, again: str
) -> Reported:
    """Build what is asked for; with a ``state`` only variants that remain, or that failed."""
    store, request = open_store(given), msgspec.structs.replace(request, out=Path(given.out), gpus=given.gpus_in_images)
    if gpu is not None:
        request = _for_gpu(request, gpu)
    if state is not None:
        found = standings(request, store, environ=os.environ).variants
        ids = chosen(found, only_failed=state == "failed")
        if not ids:
            return _nothing(found, request.out, state=state)
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
    return _ended(built, request.out, again=again)


def reporting(work: Callable[[], Reported], out: Path) -> Reported:
    """Do a build's work; what breaks it off is in its report, too, so that a stream always has its last line."""
    try:
        return work()
    except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001 (raised again, once the report is printed)
        return _broken_off(error, out)


def in_ci(environ: Mapping[str, str]) -> bool:
    """Whether this is a job of a CI system, which sets ``CI``: there, locks are those that were committed."""
    return environ.get("CI", "").strip().lower() not in {"", "0", "false", "no"}


def _with_locks(work: Callable[[], Reported], lock: Callable[[], tuple[LockedFile, ...]] | None) -> Reported:
    """Build; missing and outdated locks are updated first, which is told. Without ``lock`` they are errors."""
    try:
        return work()
    except LockError:
        if lock is None:
            raise
    try:
        files = lock()
    except PartlyLockedError as error:
        _tell(error.locked.files)
        raise
    _tell(files)
    reported = work()
    written = tuple(file for file in files if file.outcome == "written")
    assert isinstance(reported.result, BuildReport)  # noqa: S101 (work builds)
    return msgspec.structs.replace(reported, result=msgspec.structs.replace(reported.result, locked=written))


def _tell(files: Iterable[LockedFile]) -> None:
    for line in diff_lines(files):
        say_aside(line)


def _for_gpu(request: PlanRequest, gpu: str) -> PlanRequest:
    picked = patterns_for_gpu(request.recipe, gpu, request.patterns, request.skip, request.sets)
    return msgspec.structs.replace(request, patterns=picked)


def _again(
    request: PlanRequest,
    out: Path | None,
    options: Mapping[str, object | None],
    find_links: Iterable[str],
    flags: Mapping[str, bool],
) -> str:
    """The command that builds what remains; ``options`` are those that the request does not have as they were given.

    Addresses with a login are left out: the command is in logs, too.
    """
    options = {**options, "--source": request.source, "--release": request.release}
    pairs = [(option, str(value)) for option, value in options.items() if value is not None]
    pairs += [("--source", f"{name}={folder}") for name, folder in request.import_sources.items()]
    pairs += [("--find-links", place) for place in find_links]
    given = [word for option, value in pairs if redact(value) == value for word in (option, value)]
    return build_command(
        request.recipe,
        out,
        sets=request.sets,
        patterns=request.patterns,
        skip=request.skip,
        no_share=request.no_share,
        options=(
            *part_words(request.formats, request.packages),
            *given,
            *(flag for flag, is_given in flags.items() if is_given),
            "--remaining",
        ),
    )


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
