"""The ledger of an output folder: what became of each variant, and whether that still holds.

An entry is bound to the keys of the stages that end a variant, as they are predicted from the recipe, its locks, the
source and the tools alone. So a variant whose recipe or source changed is not done any more, whatever is left in the
store; and one whose results were cleaned out of the store is still done: what it made lies in the output folder.
"""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Literal

import msgspec

from axletree.core.values import Key, StageId

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from axletree.core.events import StageFinished
    from axletree.plan.graph import Plan

LEDGER_SCHEMA: Literal[1] = 1

State = Literal["done", "stale", "failed", "interrupted", "running", "not reached", "skipped", "never built"]
"""``stale``: it was done, but the recipe, its source or the tools are others now. ``interrupted``: the run that built
it is gone. ``not reached``: a run ended before its turn came. ``skipped``: left out by name."""
REMAINING: frozenset[State] = frozenset({"stale", "failed", "interrupted", "not reached", "never built"})
"""What there is to do about. A running one is somebody's; a skipped one was nobody's wish."""


class BuildProcess(msgspec.Struct, frozen=True, kw_only=True):
    """The process that builds a variant, with enough to tell whether it is alive."""

    host: str
    pid: int
    born: float
    """Start time of the process, because process ids are reused."""


class BuildOutcome(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The result of a variant's latest finished build."""

    status: Literal["done", "failed", "not reached", "skipped"]
    at: float
    """Seconds since the epoch."""
    took: float = 0.0
    """Seconds from the start of the run to its end for this variant."""
    keys: dict[StageId, Key] = {}
    """Stages that end the variant -> predicted key."""
    no_share: tuple[str, ...] = ()
    """Axes that nothing was shared across."""
    values: dict[str, str] = {}
    """Axis -> value of the variant that was built: one of another recipe, or of an older text, may have its id."""
    unproved: tuple[StageId, ...] = ()
    """Stages that ran in files that are not known to be those of their image."""
    stage: StageId | None = None
    """The stage that failed."""
    cause: str | None = None
    """The error, in one line."""
    log: str | None = None
    """Its log, relative to the output folder."""


class Attempt(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A build that has started and not recorded its end."""

    run: BuildProcess
    at: float
    keys: dict[StageId, Key]
    no_share: tuple[str, ...] = ()
    values: dict[str, str] = {}
    """Axis -> value of the variant."""
    built: bool = False
    """Whether all its stages are done, and only the end of the run, which publishes, is missing."""


class LedgerEntry(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A variant."""

    outcome: BuildOutcome | None = None
    attempt: Attempt | None = None


class Ledger(msgspec.Struct, frozen=True, kw_only=True):
    """What ``ledger.json`` holds. Fields may be added within a schema version, never renamed."""

    recipes: dict[str, dict[str, LedgerEntry]] = {}
    """``NAME VERSION`` of a recipe, with the options that change what is built of it -> variant -> entry."""
    schema: Literal[1] = LEDGER_SCHEMA


class Standing(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The current state of a variant."""

    variant: str
    state: State
    entry: LedgerEntry
    changes: tuple[str, ...] = ()
    """Options that made it another build than the recipe's own: `--set` and its value, `--format`, `--package`."""


def cause_of(event: StageFinished) -> str:
    """Why a stage failed, in one line: the line of its log that says so, else what its audit found, else the error."""
    if event.error_line:
        return event.error_line.strip()
    found = next((each for each in event.findings if each.severity == "error" and not each.waived), None)
    if found is not None:
        return f"{found.where}: {found.message}"
    return (event.message or "failed").partition("\n")[0]


def recipe_key(name: str, version: str, changes: Sequence[str] = ()) -> str:
    """What a ledger calls a recipe: what some options change is another one."""
    return " ".join([name, version, *([shlex.join(changes)] if changes else [])])


def changes_of(key: str, name: str) -> tuple[str, ...]:
    """The options in what a ledger calls a recipe; none where it is the recipe itself, or not of that name."""
    head, _, rest = key.partition(" ")
    return tuple(shlex.split(rest.partition(" ")[2])) if head == name else ()


class Former(msgspec.Struct, frozen=True, kw_only=True):
    """An entry of a variant that the recipe does not have: another recipe's of the same name, or an earlier one's."""

    variant: str
    values: dict[str, str]
    """Axis -> value that it was built as; empty where an earlier version of Axletree wrote the entry."""
    entry: LedgerEntry


def final_stages(plan: Plan) -> dict[str, tuple[StageId, ...]]:
    """Variant -> the stages that end it: those that no other stage needs."""
    users = plan.dependants()
    ends: dict[str, list[StageId]] = {variant: [] for variant in plan.variants}
    for stage in plan.stages.values():
        if not users[stage.id]:
            for variant in stage.variants:
                ends[variant].append(stage.id)
    return {variant: tuple(stages) for variant, stages in ends.items()}


def final_keys(plan: Plan, keys: Mapping[StageId, Key]) -> dict[str, dict[StageId, Key]]:
    """Variant -> the stages that end it, with their keys."""
    return {variant: {stage: keys[stage] for stage in stages} for variant, stages in final_stages(plan).items()}


def values_of(entry: LedgerEntry) -> dict[str, str]:
    """The variant that an entry is about, axis -> value; empty where it does not say."""
    latest = entry.attempt or entry.outcome
    return {} if latest is None else latest.values


def split_entries(
    entries: Mapping[str, LedgerEntry], variants: Mapping[str, Mapping[str, str]]
) -> tuple[dict[str, LedgerEntry], tuple[Former, ...]]:
    """The entries of a recipe's variants, and those of others.

    Args:
        entries: id of a variant -> what the ledger says.
        variants: id of each variant of the recipe -> its axis values.
    """
    own: dict[str, LedgerEntry] = {}
    others: list[Former] = []
    for variant, entry in entries.items():
        values = values_of(entry)
        if variant in variants and values in ({}, dict(variants[variant])):
            own[variant] = entry
        else:
            others.append(Former(variant=variant, values=values, entry=entry))
    return own, tuple(others)


def standing(
    variants: Iterable[str],
    entries: Mapping[str, LedgerEntry],
    keys: Mapping[str, Mapping[StageId, Key]],
    *,
    alive: Mapping[str, bool],
    changes: tuple[str, ...] = (),
) -> tuple[Standing, ...]:
    """How variants stand.

    Args:
        variants: ids, in the order of the recipe.
        entries: variant -> what the ledger says.
        keys: variant -> the keys of its final stages now, planned with the sharing that its entry was built with.
        alive: variant -> whether the process of its attempt still runs.
        changes: options that make it another build than the recipe's own.
    """
    return tuple(
        Standing(
            variant=variant,
            state=_state(
                entries.get(variant, LedgerEntry()), now=keys.get(variant, {}), alive=alive.get(variant, False)
            ),
            entry=entries.get(variant, LedgerEntry()),
            changes=changes,
        )
        for variant in variants
    )


def _state(entry: LedgerEntry, *, now: Mapping[StageId, Key], alive: bool) -> State:
    outcome = entry.outcome
    done = outcome is not None and outcome.status == "done"
    holds = done and outcome is not None and outcome.keys == now
    if entry.attempt is not None:
        if alive:
            return "running"
        if not holds:
            return "interrupted"
    if holds:
        return "done"
    if outcome is None:
        return "never built"
    return "stale" if outcome.status == "done" else outcome.status


def began(entries: Mapping[str, LedgerEntry], attempts: Mapping[str, Attempt]) -> dict[str, LedgerEntry]:
    """Entries with builds that begin now. What was, stays until they end."""
    return {
        **entries,
        **{
            variant: msgspec.structs.replace(entries.get(variant, LedgerEntry()), attempt=attempt)
            for variant, attempt in attempts.items()
        },
    }


def ended(
    entries: Mapping[str, LedgerEntry], outcomes: Mapping[str, BuildOutcome], *, run: BuildProcess
) -> dict[str, LedgerEntry]:
    """Entries after builds of a run that ended. An attempt that another run began meanwhile stays."""
    found = dict(entries)
    for variant, outcome in outcomes.items():
        attempt = found.get(variant, LedgerEntry()).attempt
        others = attempt if attempt is not None and attempt.run != run else None
        found[variant] = LedgerEntry(outcome=_kept(found.get(variant, LedgerEntry()).outcome, outcome), attempt=others)
    return found


def _kept(before: BuildOutcome | None, now: BuildOutcome) -> BuildOutcome:
    """A variant that a run did not come to is what it was, if it was anything."""
    return before if before is not None and now.status in {"not reached", "skipped"} else now


def with_built(
    entries: Mapping[str, LedgerEntry], variants: Iterable[str], *, run: BuildProcess
) -> dict[str, LedgerEntry]:
    """Entries after all stages of some variants are done."""
    found = dict(entries)
    for variant in variants:
        entry = found.get(variant, LedgerEntry())
        if entry.attempt is not None and entry.attempt.run == run:
            attempt = msgspec.structs.replace(entry.attempt, built=True)
            found[variant] = msgspec.structs.replace(entry, attempt=attempt)
    return found
