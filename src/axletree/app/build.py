"""The main job: plan a recipe's variants, run what is missing, publish, and report."""

from __future__ import annotations

import shutil
import sysconfig
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

import msgspec

from axletree.app import planning
from axletree.app.planning import Prepared
from axletree.app.publish import check_writable, install_commands, publish
from axletree.core.events import Event, Published, RunStarted
from axletree.execute.driver import Job, Result, execute
from axletree.execute.runner import LocalRunner
from axletree.host import machine
from axletree.host.hiding import hide_start
from axletree.store.blobs import CorruptBlob
from axletree.view.report_data import InstallCommand

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from axletree.app.publish import PublishedFile
    from axletree.core.records import StageRecord
    from axletree.core.values import StageId
    from axletree.store.store import Store

_MOST_ROUNDS = 3
"""A damaged blob costs one more round each; whoever loses more has a broken disk."""


class Built(msgspec.Struct, frozen=True, kw_only=True):
    """What a build came to."""

    result: Result
    events: tuple[Event, ...]
    install: tuple[InstallCommand, ...]
    prepared: Prepared
    untouched: bool
    """Nothing ran and nothing was published: all was there."""


def build(
    recipe: str,
    store: Store,
    *,
    out: Path,
    patterns: Sequence[str] = (),
    skip: Sequence[str] = (),
    keep_going: bool = False,
    environ: Mapping[str, str],
    emit: Callable[[Event], None],
    tick: Callable[[], None] = lambda: None,
) -> Built:
    """Build, audit, index, test and publish a recipe's variants.

    ``emit`` gets each event as it happens; ``tick`` is called several times a second, for clocks on a screen.

    Raises:
        RecipeError: the recipe or a lock is wrong.
        HostError: the machine lacks something, or ``out`` cannot be written.
        PublishError: the index has another file under the name of a built one.
    """
    hide_start()
    events: list[Event] = []

    def tell(event: Event) -> None:
        events.append(event)
        emit(event)

    files: tuple[PublishedFile, ...] = ()
    rounds = 0
    with _lease(store):
        while True:
            rounds += 1
            prepared = planning.prepare(recipe, store, patterns=patterns, skip=skip, environ=environ)
            check_writable(out)
            result = _run(prepared, store, keep_going=keep_going, environ=environ, tell=tell, tick=tick)
            if result.met_corruption and rounds < _MOST_ROUNDS:
                continue
            records = publishable(prepared, result)
            try:
                files = publish(out, records, store)
            except CorruptBlob:  # it is in quarantine now, so what made it runs again
                if rounds == _MOST_ROUNDS:
                    raise
            else:
                break
    for file in files:
        tell(Published(time=time.time(), **msgspec.structs.asdict(file)))
    return Built(
        result=result,
        events=tuple(events),
        install=install_commands(out, records, _requirements(prepared)),
        prepared=prepared,
        untouched=not any(file.fresh for file in files)
        and all(resolved.record is not None for resolved in prepared.resolved.values()),
    )


@contextmanager
def _lease(store: Store) -> Iterator[None]:
    """Keep `store gc` away from whatever this run writes and uses, as long as it lives."""
    folder = store.scratch("run")
    try:
        yield
    finally:
        store.drop_scratch(folder)


def run_started(prepared: Prepared, store: Store) -> RunStarted:
    """The first event of a run."""
    return RunStarted(
        time=time.time(),
        recipe=prepared.plan.recipe,
        variants=prepared.plan.variants,
        stages=planning.planned_stages(prepared),
        downloads=planning.downloads(prepared, store),
    )


def _run(
    prepared: Prepared,
    store: Store,
    *,
    keep_going: bool,
    environ: Mapping[str, str],
    tell: Callable[[Event], None],
    tick: Callable[[], None],
) -> Result:
    ccache = find_ccache()
    job = Job(
        plan=prepared.plan,
        specs=prepared.specs,
        surroundings=prepared.surroundings,
        budget=machine.budget(store.root),
        last=prepared.last,
        local={
            stage.id: planning.local_facts(prepared, stage, ccache=ccache) for stage in prepared.plan.stages.values()
        },
        keep_going=keep_going,
    )
    runner = LocalRunner(store, environ)
    return execute(job, store, runner, started=run_started(prepared, store), emit=tell, tick=tick)


def find_ccache() -> str | None:
    """The compiler cache that comes with Axletree, or the host's."""
    return shutil.which("ccache", path=sysconfig.get_path("scripts")) or shutil.which("ccache")


def publishable(prepared: Prepared, result: Result) -> list[StageRecord]:
    """Records of the index stages whose packages passed every test that uses them; none after a cancellation."""
    if result.status == "cancelled":
        return []
    bad: set[StageId] = {stage for stage in prepared.plan.stages if stage not in result.resolved}
    found: list[StageRecord] = []
    users = prepared.plan.dependants()
    for stage in prepared.plan.stages.values():
        resolved = result.resolved.get(stage.id)
        if stage.action != "index" or resolved is None or resolved.record is None:
            continue
        if bad.isdisjoint(users[stage.id]):
            found.append(resolved.record)
    return found


def _requirements(prepared: Prepared) -> dict[str, list[str]]:
    wanted: dict[str, dict[str, None]] = {}
    for target in prepared.targets:
        for package in target.packages:
            wanted.setdefault(package.index, {})[f"{package.name}=={package.version}"] = None
    return {root: list(requirements) for root, requirements in wanted.items()}
