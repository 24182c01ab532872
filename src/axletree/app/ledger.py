"""Keep the ledger of an output folder while a build runs, and read it: ``ledger.json`` and a log for each variant."""

from __future__ import annotations

import shlex
import shutil
import time
from contextlib import suppress
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

import msgspec

from axletree.app import planning
from axletree.app.recipes import load_recipe
from axletree.check.rules.image_proof import UNPROVED
from axletree.core.errors import AxletreeError, HostError, IntegrityError, Problem
from axletree.core.events import StageFinished
from axletree.core.values import canonical_json, digest_of
from axletree.execute.stage import log_file
from axletree.host.files import appearing, replace_file
from axletree.host.folder_lock import folder_locks
from axletree.host.processes import is_alive, myself
from axletree.plan.keys import resolve_plan
from axletree.plan.ledger import (
    REMAINING,
    Attempt,
    BuildOutcome,
    BuildProcess,
    Former,
    Ledger,
    LedgerEntry,
    Standing,
    began,
    cause_of,
    changes_of,
    ended,
    final_keys,
    recipe_key,
    split_entries,
    standing,
    with_built,
)
from axletree.recipe.axes import exactly, expand, select

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from axletree.app.planning import PlanRequest, Prepared
    from axletree.app.recipes import LoadedRecipe
    from axletree.core.events import Event
    from axletree.core.values import Key, StageId
    from axletree.execute.driver import Result
    from axletree.host.folder_lock import Note
    from axletree.recipe.model import Recipe
    from axletree.store.store import Store

LEDGER = "ledger.json"
LOGS = "logs"
"""Folder of the logs in the output folder: they outlive the store's."""
_GOOD = frozenset({"done", "cached"})


def _is_unproved(event: StageFinished) -> bool:
    return any(finding.rule == UNPROVED for finding in event.findings)


class Keeper:
    """Writes what becomes of the variants of one run."""

    def __init__(self, prepared: Prepared, store: Store, out: Path, *, note: Note) -> None:
        """Say that the run's variants are being built; ``note`` is told whom this waits for, when it has to.

        Raises:
            IntegrityError: the folder's ledger can't be read.
            HostError: it can't be written.
        """
        self.prepared = prepared
        self.store = store
        self.out = out
        self.note = note
        self.began_at = time.time()
        self.keys = predicted_keys(prepared)
        self._run = _this_run()
        self._ended: dict[StageId, StageFinished] = {}
        self.values = variant_values(prepared.loaded.recipe)
        attempt = Attempt(run=self._run, at=self.began_at, keys={}, no_share=prepared.no_share)
        attempts = {
            variant: msgspec.structs.replace(attempt, keys=self.keys[variant], values=self.values[variant])
            for variant in prepared.plan.variants
        }
        self._change(lambda entries: began(entries, attempts))

    def take(self, event: Event) -> None:
        """Take an event of the run: a variant whose stages are all done, or that failed, is written down at once."""
        if not isinstance(event, StageFinished):
            return
        self._ended[event.stage] = event
        with suppress(AxletreeError):  # a full disk must not end what compiles; the end of the run tells
            self._note(event)

    def _note(self, event: StageFinished) -> None:
        variants = self.prepared.plan.stages[event.stage].variants
        if event.status == "failed":
            self._close({variant: self._failed(variant, event) for variant in variants})
        elif event.status == "done":
            built = [variant for variant in variants if self._all_good(variant)]
            if built:
                self._change(lambda entries: with_built(entries, built, run=self._run))

    def before(self, tell: Callable[[Event], None]) -> Callable[[Event], None]:
        """Somebody who is told the run's events, after they are written down."""

        def both(event: Event) -> None:
            self.take(event)
            tell(event)

        return both

    def finish(self, result: Result, *, skipped: Iterable[str] = (), refused: Mapping[str, str] | None = None) -> None:
        """Say how the run ended for each variant, and which were left out by name.

        After a cancellation they stay as begun: nothing was published. ``refused`` says for each variant why nothing
        was, though all stages of some are done.
        """
        if result.status == "cancelled":
            return
        failures = {failure.stage: failure for failure in result.failures}
        left_out = BuildOutcome(status="skipped", at=self.began_at, no_share=self.prepared.no_share)
        outcomes = {each: msgspec.structs.replace(left_out, values=self.values[each]) for each in skipped}
        before = self._own_entries()
        for variant in self.prepared.plan.variants:
            failure = next((failures[stage] for stage in self._stages(variant) if stage in failures), None)
            if failure is not None:
                outcomes[variant] = self._failed(variant, failure)
            elif self._all_good(variant):
                done = self._done(variant, before.get(variant, LedgerEntry()).outcome)
                # One of which nothing ran was published before, and still is.
                said = None if refused is None or done.at < self.began_at else refused[variant]
                outcomes[variant] = done if said is None else msgspec.structs.replace(done, status="failed", cause=said)
            else:
                outcomes[variant] = BuildOutcome(
                    status="not reached",
                    at=time.time(),
                    keys=self.keys[variant],
                    no_share=self.prepared.no_share,
                    values=self.values[variant],
                )
        self._close(outcomes)

    def standings(self) -> tuple[Standing, ...]:
        """How the run's variants stand now that it is over."""
        entries = self._own_entries()
        changes = self.prepared.changes
        return standing(self.prepared.plan.variants, entries, self.keys, alive=_alive(entries), changes=changes)

    def _own_entries(self) -> dict[str, LedgerEntry]:
        entries = read_ledger(self.out).recipes.get(_name(self.prepared.loaded, self.prepared.changes), {})
        return split_entries(entries, self.values)[0]

    def _stages(self, variant: str) -> list[StageId]:
        return [stage.id for stage in self.prepared.plan.stages.values() if variant in stage.variants]

    def _all_good(self, variant: str) -> bool:
        return all(
            (event := self._ended.get(stage)) is not None and event.status in _GOOD for stage in self._stages(variant)
        )

    def _done(self, variant: str, before: BuildOutcome | None) -> BuildOutcome:
        """A variant of which nothing ran was done before: when, and how long it took, stay true."""
        ran = [self._ended[stage] for stage in self._stages(variant) if self._ended[stage].status == "done"]
        keys = self.keys[variant]
        if not ran and before is not None and before.status == "done" and before.keys == keys:
            return before
        at = max((event.time for event in ran), default=self.began_at)
        return BuildOutcome(
            status="done",
            at=at,
            took=at - self.began_at,
            keys=keys,
            no_share=self.prepared.no_share,
            values=self.values[variant],
            unproved=tuple(stage for stage in self._stages(variant) if _is_unproved(self._ended[stage])),
            log=self._write_log(variant),
        )

    def _failed(self, variant: str, event: StageFinished) -> BuildOutcome:
        return BuildOutcome(
            status="failed",
            at=event.time,
            took=event.time - self.began_at,
            keys=self.keys[variant],
            no_share=self.prepared.no_share,
            values=self.values[variant],
            stage=event.stage,
            cause=cause_of(event),
            log=self._write_log(variant),
        )

    def _write_log(self, variant: str) -> str:
        """Put the logs of a variant's stages together, those of other runs as far as the store still has them."""
        changes = self.prepared.changes
        mark = f".with-{digest_of(shlex.join(changes).encode())[:8]}" if changes else ""
        path = self.out / LOGS / f"{variant.replace('/', '_')}{mark}.log"
        with appearing(path) as temporary, temporary.open("wb") as whole:
            for stage in self._stages(variant):
                event = self._ended.get(stage)
                if event is None or event.key is None:
                    continue
                whole.write(f"==== {stage}: {event.status}\n".encode())
                with suppress(FileNotFoundError), log_file(self.store, event.key).open("rb") as log:
                    shutil.copyfileobj(log, whole)
        return path.relative_to(self.out).as_posix()

    def _close(self, outcomes: Mapping[str, BuildOutcome]) -> None:
        self._change(lambda entries: ended(entries, outcomes, run=self._run))

    def _change(self, change: Callable[[Mapping[str, LedgerEntry]], dict[str, LedgerEntry]]) -> None:
        name = _name(self.prepared.loaded, self.prepared.changes)
        path = self.out / LEDGER
        try:
            with folder_locks([self.out], self.note):
                ledger = read_ledger(self.out)
                entries = ledger.recipes.get(name, {})
                changed = change(entries)
                if changed != entries:
                    recipes = {**ledger.recipes, name: changed}
                    replace_file(path, canonical_json(msgspec.structs.replace(ledger, recipes=recipes)) + b"\n")
        except OSError as error:
            raise _unwritable(path, error) from error


def read_ledger(out: Path) -> Ledger:
    """The ledger of an output folder; an empty one where there is none yet.

    Raises:
        IntegrityError: it is damaged, or of a version that this Axletree can't read.
        HostError: it can't be read.
    """
    path = out / LEDGER
    try:
        return msgspec.json.decode(path.read_bytes(), type=Ledger)
    except FileNotFoundError:
        return Ledger()
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise IntegrityError(
            Problem(file=str(path), message=f"this version of Axletree cannot read the ledger: {error}"),
            hint="move it elsewhere: the next build starts a new ledger",
        ) from error
    except OSError as error:
        raise HostError(Problem(file=str(path), message=f"the ledger cannot be read: {error.strerror}")) from error


class Standings(msgspec.Struct, frozen=True, kw_only=True):
    """The state of a recipe's variants: report of ``ledger``."""

    variants: tuple[Standing, ...]
    former: tuple[Former, ...] = ()
    """Entries of variants that the recipe does not have."""


def standings(request: PlanRequest, store: Store, *, environ: Mapping[str, str], as_built: bool = False) -> Standings:
    """How a recipe's variants stand in an output folder.

    Args:
        request: which variants, and the output folder.
        store: where earlier results are.
        environ: the user's variables.
        as_built: whether each variant shares what it shared when it was built, whatever the request says; and whether
            variants that were built with ``--set`` or in part are told behind the recipe's own.

    Raises:
        IntegrityError: the ledger can't be read.
        RecipeError: the recipe or a lock is wrong.
        HostError: this machine lacks what a plan needs.
    """
    loaded = load_recipe(request.recipe, request.sets)
    ledger = read_ledger(request.out)
    own = _standings(loaded, request, ledger, store, environ, as_built=as_built)
    if planning.changes(loaded, request) or not as_built:
        return own
    changed = _changed(loaded, request, ledger, store, environ)
    return msgspec.structs.replace(own, variants=(*own.variants, *changed))


def _standings(
    loaded: LoadedRecipe,
    request: PlanRequest,
    ledger: Ledger,
    store: Store,
    environ: Mapping[str, str],
    *,
    as_built: bool,
) -> Standings:
    changes = planning.changes(loaded, request)
    entries, former = split_entries(ledger.recipes.get(_name(loaded, changes), {}), variant_values(loaded.recipe))
    variants = [variant.id for variant in select(expand(loaded.recipe), request.patterns, request.skip)]
    groups: dict[tuple[str, ...], list[str]] = {}
    for variant in variants:
        outcome = entries.get(variant, LedgerEntry()).outcome
        if outcome is not None and outcome.status == "done":
            groups.setdefault(outcome.no_share if as_built else request.no_share, []).append(variant)
    keys: dict[str, dict[StageId, Key]] = {}
    for axes, members in groups.items():
        if set(axes) <= set(loaded.recipe.axes):  # else the recipe is another one now, and so are the keys
            few = msgspec.structs.replace(request, patterns=tuple(map(exactly, members)), skip=(), no_share=axes)
            keys |= predicted_keys(planning.prepare(few, store, environ=environ))
    found = standing(variants, entries, keys, alive=_alive(entries), changes=changes)
    return Standings(variants=found, former=former)


def _changed(
    loaded: LoadedRecipe, request: PlanRequest, ledger: Ledger, store: Store, environ: Mapping[str, str]
) -> Iterator[Standing]:
    """Variants that were built as something else than the recipe's own: each kind for itself."""
    for name in ledger.recipes:
        changes = changes_of(name, loaded.recipe.name)
        if not changes:
            continue
        asked = _asked(request, changes)
        try:
            changed = load_recipe(request.recipe, asked.sets)
            if _name(changed, changes) != name:  # of another version of the recipe
                continue
            found = _standings(changed, asked, ledger, store, environ, as_built=True).variants
        except AxletreeError:  # the recipe or its locks are others now, so nothing of it holds
            found = standing(ledger.recipes[name], ledger.recipes[name], {}, alive={}, changes=changes)
        yield from (each for each in found if each.state != "never built")


def _asked(request: PlanRequest, changes: Sequence[str]) -> PlanRequest:
    """The request that has some options."""
    given = list(zip(changes[::2], changes[1::2], strict=True))

    def values(option: str) -> tuple[str, ...]:
        return tuple(value for name, value in given if name == option)

    return msgspec.structs.replace(
        request, sets=values("--set"), formats=values("--format"), packages=values("--package")
    )


def variant_values(recipe: Recipe) -> dict[str, dict[str, str]]:
    """Id of each variant of a recipe -> its axis values."""
    return {variant.id: dict(variant.values) for variant in expand(recipe)}


def chosen(standings: Iterable[Standing], *, only_failed: bool) -> tuple[str, ...]:
    """Variants that remain to be built, or those that failed only."""
    wanted = {"failed"} if only_failed else REMAINING
    return tuple(each.variant for each in standings if each.state in wanted)


def skipped(recipe: Recipe, skip: Sequence[str]) -> tuple[str, ...]:
    """Variants that were left out by name."""
    return tuple(variant.id for variant in expand(recipe) if any(fnmatchcase(variant.id, pattern) for pattern in skip))


def predicted_keys(prepared: Prepared) -> dict[str, dict[StageId, Key]]:
    """Variant -> the stages that end it, with their keys as they follow from the plan alone."""
    resolved = resolve_plan(prepared.plan, prepared.specs.__getitem__, prepared.surroundings, lambda _key, _facts: None)
    return final_keys(prepared.plan, {stage: found.key for stage, found in resolved.items()})


def _unwritable(path: Path, error: OSError) -> HostError:
    problem = Problem(file=str(path), message=f"the ledger cannot be written: {error.strerror}")
    return HostError(problem, hint="free some space there, or choose a different --out folder")


def _name(loaded: LoadedRecipe, changes: Sequence[str]) -> str:
    return recipe_key(loaded.recipe.name, loaded.recipe.version, changes)


def _this_run() -> BuildProcess:
    host, pid, born = myself()
    return BuildProcess(host=host, pid=pid, born=born)


def _alive(entries: Mapping[str, LedgerEntry]) -> dict[str, bool]:
    """Which attempts still run, this process's own left out: whoever asks is through with its own."""
    here = _this_run()
    return {
        variant: entry.attempt.run != here and is_alive(*msgspec.structs.astuple(entry.attempt.run))
        for variant, entry in entries.items()
        if entry.attempt is not None
    }
