"""The main job: plan a recipe's variants, run what is missing, publish, and report."""

from __future__ import annotations

import shutil
import sysconfig
import time
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import msgspec

from axletree.app import planning
from axletree.app.collisions import refuse_collisions
from axletree.app.forewarnings import plan_findings
from axletree.app.installing import install_commands, wanted
from axletree.app.ledger import Keeper, skipped
from axletree.app.local_facts import local_facts
from axletree.app.lock_changes import LockedFile
from axletree.app.planning import PlanRequest, Prepared
from axletree.app.publish import PublishedFile, check_writable, publish
from axletree.app.version_note import version_note
from axletree.core.errors import AxletreeError, HostError, Problem
from axletree.core.events import Event, Published, RunStarted
from axletree.core.units import format_bytes
from axletree.execute.driver import BuildRun, Result, execute
from axletree.execute.executor import LocalExecutor
from axletree.host import machine
from axletree.host.hiding import hide_start
from axletree.plan.ledger import Standing
from axletree.plan.packaging import LISTINGS, root_of
from axletree.plan.refusals import refusals
from axletree.recipe.shell_variables import ignored_variables
from axletree.store.blobs import CorruptBlob
from axletree.store.layout import STORE_VARIABLE
from axletree.view.report_data import InstallCommand
from axletree.view.state import Folding, RunView

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from axletree.core.records import StageRecord
    from axletree.execute.containers import ReadyEngine
    from axletree.execute.executor import Executor
    from axletree.host.folder_lock import Note
    from axletree.plan.admission import Budget
    from axletree.plan.graph import PlannedStage
    from axletree.recipe.settings import Settings
    from axletree.store.store import Store

_MOST_ROUNDS = 3
"""A damaged blob costs one more round each; whoever loses more has a broken disk."""


class Built(msgspec.Struct, frozen=True, kw_only=True):
    """What a build came to."""

    result: Result
    view: RunView
    """The state after the last event."""
    install: tuple[InstallCommand, ...]
    prepared: Prepared
    standings: tuple[Standing, ...]
    """How the run's variants stand in the ledger of the output folder."""
    untouched: bool
    """Nothing ran and nothing was published: all was there."""


class BuildReport(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a build: report of ``build``, after its events."""

    status: Literal["done", "failed", "cancelled"]
    exit_code: int
    out: Path
    """The output folder."""
    variants: tuple[Standing, ...] = ()
    """State of the run's variants in the ledger of the output folder; empty if the build stopped early."""
    locked: tuple[LockedFile, ...] = ()
    """Locks that were missing or out of date, and were updated first."""
    install: tuple[InstallCommand, ...] = ()
    """Commands that install the packages."""
    page: Path | None = None
    """The HTML report."""
    problems: tuple[Problem, ...] = ()
    """Errors that stopped the build; failures of stages are in their events."""


def build(
    request: PlanRequest,
    store: Store,
    *,
    keep_going: bool = False,
    settings: Settings,
    environ: Mapping[str, str],
    emit: Callable[[Event], None],
    tick: Callable[[], None] = lambda: None,
    note: Note = lambda _: None,
) -> Built:
    """Build, audit, index, test and publish a recipe's variants.

    ``emit`` gets each event; ``tick`` is called several times a second, for clocks; ``note`` is told who is waited for.

    Raises:
        RecipeError: the recipe or a lock is wrong.
        HostError: the machine lacks something, disk space included, or the output folder cannot be written.
        PublishError: the index has another file under the name of a built one, or two variants have.
    """
    hide_start()
    folding = Folding()

    def tell(event: Event) -> None:
        folding.take(event)
        emit(event)

    run = partial(run_plan, keep_going=keep_going, settings=settings, environ=environ, tick=tick)
    files, rounds = tuple[PublishedFile, ...](), 0
    with store.lease("run"):
        while True:
            rounds += 1
            prepared = planning.prepare(request, store, environ=environ)
            if rounds == 1:
                _name_ignored(prepared, request, settings, environ, note)
            prepared, engine = _with_images(prepared, store, settings, environ, note)
            budget = _room(prepared, store, request.out, jobs=settings.jobs)
            keeper = Keeper(prepared, store, request.out, note=note)
            result = run(prepared, store, budget, tell=keeper.before(tell), engine=engine)
            if result.met_corruption and rounds < _MOST_ROUNDS:
                continue
            listings = publishable(prepared, result)
            try:
                files = _publish(keeper, listings, result, final=rounds == _MOST_ROUNDS, tell=tell)
            except CorruptBlob:  # it is in quarantine now, so what made it runs again
                if rounds == _MOST_ROUNDS:
                    raise
            else:
                break
    published = {stage.id: record for stage, record in listings}
    keeper.finish(result, skipped=skipped(prepared.loaded.recipe, request.skip))
    return Built(
        result=result,
        view=folding.view,
        install=install_commands(request.out, wanted(prepared.plan, published)),
        prepared=prepared,
        standings=keeper.standings(),
        untouched=_untouched(prepared, files),
    )


def _name_ignored(
    prepared: Prepared, request: PlanRequest, settings: Settings, environ: Mapping[str, str], note: Note
) -> None:
    """Say which variables of the shell do nothing here, and what does; and that git knows a later version."""
    said = {
        "--jobs": settings.jobs,
        "--gpu": request.patterns,
        "--variant": request.patterns,
        "--set": request.sets,
        "--format": request.formats,
        "--release": request.release,
    }
    for line in ignored_variables(
        prepared.loaded.recipe, environ, said=[option for option, value in said.items() if value]
    ):
        note(f"note: {line}")
    for line in version_note(prepared, request, environ):
        note(f"note: {line}")


def _untouched(prepared: Prepared, files: Sequence[PublishedFile]) -> bool:
    done = all(resolved.record is not None for resolved in prepared.resolved.values())
    return done and not any(file.fresh for file in files)


def _room(prepared: Prepared, store: Store, out: Path, *, jobs: int | None) -> Budget:
    """What there is of the machine, once it is known that the stages fit on it and the results into ``out``."""
    budget = machine.budget(store.root, jobs=jobs)
    _refuse_too_large(prepared, free=budget.disk)
    check_writable(out)
    return budget


def _publish(
    keeper: Keeper,
    listings: Sequence[tuple[PlannedStage, StageRecord]],
    result: Result,
    *,
    final: bool,
    tell: Callable[[Event], None],
) -> tuple[PublishedFile, ...]:
    """Publish, tell what was published, and close the run; not where a damaged blob gives it one more round."""
    began = time.monotonic()

    def close(status: Literal["done", "failed", "cancelled"]) -> None:
        wall = result.finish.wall + time.monotonic() - began
        tell(msgspec.structs.replace(result.finish, time=time.time(), status=status, wall=wall))

    try:
        refuse_collisions(listings)
        records = [record for _, record in listings]
        files = publish(keeper.out, records, keeper.store, replace=keeper.prepared.replace, note=keeper.note)
    except BaseException as error:
        if final or not isinstance(error, CorruptBlob):
            close("cancelled" if isinstance(error, KeyboardInterrupt) else "failed")
            if isinstance(error, AxletreeError):
                with suppress(AxletreeError):  # what keeps the ledger from being written is told already
                    refused = refusals(error.problems, listings, keeper.prepared.plan.variants)
                    keeper.finish(result, refused=refused)
        raise
    for file in files:
        tell(Published(time=time.time(), **msgspec.structs.asdict(file)))
    close(result.status)
    return files


def run_started(prepared: Prepared, store: Store) -> RunStarted:
    """The first event of a run."""
    return RunStarted(
        time=time.time(),
        recipe=prepared.plan.recipe,
        variants=prepared.plan.variants,
        stages=planning.planned_stages(prepared),
        downloads=planning.downloads(prepared, store),
        findings=plan_findings(prepared),
    )


def run_plan(
    prepared: Prepared,
    store: Store,
    budget: Budget,
    *,
    keep_going: bool,
    settings: Settings,
    environ: Mapping[str, str],
    tell: Callable[[Event], None],
    tick: Callable[[], None],
    engine: ReadyEngine | None = None,
) -> Result:
    """Run the stages of a plan that the store lacks; ``tell`` gets the events, ``tick`` is called now and then.

    Stages with an image run in the ``engine``, if there is one.
    """
    ccache = find_ccache()
    job = BuildRun(
        plan=prepared.plan,
        specs=prepared.specs,
        surroundings=prepared.surroundings,
        budget=budget,
        last=prepared.last,
        local={stage.id: local_facts(prepared, stage, ccache=ccache) for stage in prepared.plan.stages.values()},
        keep_going=keep_going,
    )
    executor: Executor = LocalExecutor(store, environ, settings)
    if engine is not None:
        from axletree.app.engines import executor_with  # noqa: PLC0415 (start-up time: most builds use no engine)

        executor = executor_with(engine, store, environ, settings, others=executor)
    return execute(job, store, executor, started=run_started(prepared, store), emit=tell, tick=tick)


def _with_images(
    prepared: Prepared, store: Store, settings: Settings, environ: Mapping[str, str], note: Callable[[str], object]
) -> tuple[Prepared, ReadyEngine | None]:
    """Make what stages with an image need, and the engine in which they run if the runner is one."""
    if all(stage.step.image is None for stage in prepared.plan.stages.values()):
        return prepared, None
    from axletree.app.engines import make_engine_ready, wanted_engine  # noqa: PLC0415 (start-up time: few use images)
    from axletree.app.stage_images import make_ready  # noqa: PLC0415

    wanted = wanted_engine(prepared, settings, environ=environ)
    prepared = make_ready(prepared, store, settings=settings, environ=environ, note=note)
    engine = None if wanted is None else make_engine_ready(wanted, prepared, store, environ=environ, note=note)
    return prepared, engine


def _refuse_too_large(prepared: Prepared, *, free: int) -> None:
    """Better now than after an hour of compiling. What an environment takes is our own guess, so that is tried."""
    perhaps = planning.perhaps(prepared)
    problems = [
        Problem(
            message=(
                f"stage {stage.id} needs {format_bytes(wanted)} of disk space, but only {format_bytes(free)} is free"
            ),
            hint=(
                f"set {STORE_VARIABLE} to a folder on a larger disk, run `axletree store gc`, or lower `disk` in the "
                "stage's resources"
            ),
        )
        for stage in prepared.plan.stages.values()
        if stage.action != "environment"
        and (wanted := stage.step.resources.disk or 0) > free
        and prepared.resolved[stage.id].record is None
        and stage.id not in perhaps
    ]
    if problems:
        raise HostError(*problems)


def find_ccache() -> str | None:
    """The compiler cache that comes with Axletree, or the host's."""
    return shutil.which("ccache", path=sysconfig.get_path("scripts")) or shutil.which("ccache")


def publishable(prepared: Prepared, result: Result) -> list[tuple[PlannedStage, StageRecord]]:
    """What lists packages, with its record, where they passed every test that uses them; none after a cancellation.

    What a variant puts into one root (wheels, conda packages, archives) goes there together or not at all.
    """
    if result.status == "cancelled":
        return []
    users = prepared.plan.dependants()
    listings = [stage for stage in prepared.plan.stages.values() if stage.action in LISTINGS]

    def good(stage: PlannedStage) -> bool:
        resolved = result.resolved.get(stage.id)
        whole = all(user in result.resolved for user in users[stage.id])
        return whole and resolved is not None and resolved.record is not None

    bad = {(variant, root_of(stage)) for stage in listings if not good(stage) for variant in stage.variants}
    found: list[tuple[PlannedStage, StageRecord]] = []
    for stage in listings:
        if any((variant, root_of(stage)) not in bad for variant in stage.variants):
            record = result.resolved[stage.id].record
            assert record is not None  # noqa: S101 (it is good for some variant, so it is there)
            found.append((stage, record))
    return found
