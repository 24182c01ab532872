"""The ledger: when a variant is done, when it no longer is, and what two runs at once make of it."""

from __future__ import annotations

import pytest
from msgspec import to_builtins
from msgspec.structs import replace

from axletree.core.errors import Problem
from axletree.core.events import StageFinished
from axletree.core.findings import Finding
from axletree.core.records import StageRecord
from axletree.core.values import Key, StageId, digest_of
from axletree.plan.actions.listing import ListedFile, ListingFacts, ListingParameters
from axletree.plan.actions.table import ACTIONS
from axletree.plan.ledger import (
    Attempt,
    BuildOutcome,
    BuildProcess,
    LedgerEntry,
    State,
    began,
    cause_of,
    ended,
    final_stages,
    split_entries,
    standing,
    with_built,
)
from axletree.plan.refusals import refusals
from axletree.view.ledger import ledger_text, remaining_lines
from support.requests import ingredients_of
from support.targets import MANY, plan_of

RUN = BuildProcess(host="here", pid=10, born=1.0)
OTHER = replace(RUN, pid=11)
NOW = {StageId("index:.[cpu]"): Key("a" * 64)}
THEN = {StageId("index:.[cpu]"): Key("b" * 64)}
DONE = BuildOutcome(status="done", at=100.0, took=60.0, keys=NOW, log="logs/cpu.log")
FAILED = BuildOutcome(
    status="failed", at=100.0, took=5.0, keys=NOW, stage=StageId("lib[cpu]"), cause="x.c:1: error: no"
)
ATTEMPT = Attempt(run=RUN, at=200.0, keys=NOW)


def state(entry: LedgerEntry, *, alive: bool = False) -> State:
    (found,) = standing(["cpu"], {"cpu": entry}, {"cpu": NOW}, alive={"cpu": alive})
    return found.state


@pytest.mark.parametrize(
    ("entry", "alive", "expected"),
    [
        (LedgerEntry(), False, "never built"),
        (LedgerEntry(outcome=DONE), False, "done"),
        (LedgerEntry(outcome=replace(DONE, keys=THEN)), False, "stale"),
        (LedgerEntry(outcome=FAILED), False, "failed"),
        (LedgerEntry(outcome=replace(FAILED, keys=THEN)), False, "failed"),
        (LedgerEntry(attempt=ATTEMPT), True, "running"),
        (LedgerEntry(attempt=ATTEMPT), False, "interrupted"),
        (LedgerEntry(outcome=FAILED, attempt=ATTEMPT), False, "interrupted"),
        (LedgerEntry(outcome=DONE, attempt=ATTEMPT), False, "done"),
        (LedgerEntry(outcome=replace(DONE, keys=THEN), attempt=ATTEMPT), False, "interrupted"),
        (LedgerEntry(outcome=BuildOutcome(status="not reached", at=1.0)), False, "not reached"),
        (LedgerEntry(outcome=BuildOutcome(status="skipped", at=1.0)), False, "skipped"),
    ],
)
def test_how_a_variant_stands(entry: LedgerEntry, *, alive: bool, expected: State) -> None:
    assert state(entry, alive=alive) == expected


def test_what_was_done_stays_done_while_it_is_built_again() -> None:
    entries = began({"cpu": LedgerEntry(outcome=DONE)}, {"cpu": ATTEMPT})
    assert entries["cpu"] == LedgerEntry(outcome=DONE, attempt=ATTEMPT)
    assert state(entries["cpu"]) == "done"


def test_a_run_that_did_not_come_to_a_variant_takes_nothing_from_it() -> None:
    missed = BuildOutcome(status="not reached", at=300.0)
    entries = ended({"cpu": LedgerEntry(outcome=FAILED, attempt=ATTEMPT)}, {"cpu": missed}, run=RUN)
    assert entries["cpu"] == LedgerEntry(outcome=FAILED)
    assert ended({}, {"cpu": missed}, run=RUN)["cpu"] == LedgerEntry(outcome=missed)


def test_a_run_ends_its_own_attempt_only() -> None:
    entries = ended({"cpu": LedgerEntry(attempt=replace(ATTEMPT, run=OTHER))}, {"cpu": DONE}, run=RUN)
    assert entries["cpu"] == LedgerEntry(outcome=DONE, attempt=replace(ATTEMPT, run=OTHER))
    assert with_built(entries, ["cpu"], run=RUN) == entries
    built = with_built(entries, ["cpu"], run=OTHER)["cpu"].attempt
    assert built is not None
    assert built.built


def test_the_stages_that_end_a_variant_are_those_that_nobody_needs() -> None:
    plan = plan_of(MANY)
    ends = final_stages(plan)
    assert tuple(ends) == plan.variants
    users = plan.dependants()
    for variant, stages in ends.items():
        assert stages
        assert all(not users[stage] and variant in plan.stages[stage].variants for stage in stages)
        assert plan.upstream(stages) == {stage.id for stage in plan.stages.values() if variant in stage.variants}


def test_what_remains_is_said_with_its_cause_and_the_command() -> None:
    standings = standing(
        ["cpu", "cu130", "rocm7.1"],
        {"cpu": LedgerEntry(outcome=DONE), "cu130": LedgerEntry(outcome=FAILED)},
        {"cpu": NOW},
        alive={},
    )
    assert [each.state for each in standings] == ["done", "failed", "never built"]
    lines = remaining_lines(standings, command="axletree build r --remaining")
    assert lines[1] == "2 of 3 variants remain:"
    assert "x.c:1: error: no" in lines[2]
    assert lines[-1] == "continue with: axletree build r --remaining"
    assert remaining_lines(standings[:1], command="x") == []
    text = ledger_text(standings, width=100, command="axletree build r --remaining")
    assert "1970-01-01 00:01" in text
    assert "3 variants: 1 done, 1 failed, 1 never built" in text


def test_the_cause_of_a_failure_is_what_names_it() -> None:
    failed = StageFinished(
        time=1.0, stage=StageId("lib"), status="failed", message="lib failed with exit code 1\n  hint"
    )
    assert cause_of(failed) == "lib failed with exit code 1"
    assert cause_of(replace(failed, cause=("a", "b"))) == "lib failed with exit code 1"
    line = " x.c:1: error: no"
    assert cause_of(replace(failed, cause=("a", line), error_line=line)) == line.strip()
    info = Finding(rule="r", severity="info", where="a.whl", message="is large")
    waived = Finding(rule="r", severity="error", where="a.whl", message="is odd", waived="known")
    error = Finding(rule="r", severity="error", where="a.whl: x.so", message="needs libz.so.1")
    assert cause_of(replace(failed, findings=(info, waived, error))) == "a.whl: x.so: needs libz.so.1"


def test_each_variant_says_why_its_own_packages_were_not_published() -> None:
    """The packages of a run are published together or not at all, so others are to blame for what is in order."""
    plan = plan_of(MANY)
    own = {stage.variants[0]: stage for stage in plan.stages.values() if len(stage.variants) == 1}
    listings = [(stage, listed(f"small-{variant}.whl")) for variant, stage in own.items()]
    first, second, third, *_ = plan.variants
    both = [Problem(file=f"cpu/small-{each}.whl", message="is already there") for each in (first, second)]
    said = refusals(both, listings, plan.variants)
    assert said[first] == f"not published: cpu/small-{first}.whl: is already there"
    assert said[second] == f"not published: cpu/small-{second}.whl: is already there"
    assert said[third] == f"not published because packages of {first}, {second} were rejected"
    full = refusals([Problem(message="the disk is full")], listings, plan.variants)
    assert set(full.values()) == {"not published: the disk is full"}


def listed(filename: str) -> StageRecord:
    file = ListedFile(filename=filename, sha256=digest_of(filename.encode()), size=1)
    return StageRecord(
        stage=StageId("index:cpu"),
        key=Key("0" * 64),
        tree=digest_of(b"tree"),
        ingredients=ingredients_of(ListingParameters(root="cpu"), action="index", spec=ACTIONS["index"]),
        facts=to_builtins(ListingFacts(kind="index", root="cpu", files=(file,))),
    )


HERE = {"cpu": {"gpu": "cpu"}, "py311-cpu": {"python": "3.11", "gpu": "cpu"}}


@pytest.mark.parametrize(
    ("entry", "own"),
    [
        (LedgerEntry(outcome=replace(DONE, values={"gpu": "cpu"})), True),
        (LedgerEntry(outcome=replace(DONE, values={"device": "cpu"})), False),
        (LedgerEntry(outcome=replace(DONE, values={"gpu": "cpu", "blas": ""})), False),
        (LedgerEntry(outcome=DONE), True),  # of an earlier version, which did not say
        (LedgerEntry(attempt=replace(ATTEMPT, values={"gpu": "cpu"})), True),
        (LedgerEntry(attempt=replace(ATTEMPT, values={"device": "cpu"})), False),
        (
            LedgerEntry(outcome=replace(DONE, values={"device": "cpu"}), attempt=replace(ATTEMPT, values=HERE["cpu"])),
            True,
        ),
    ],
)
def test_an_entry_is_that_of_the_variant_that_it_says(entry: LedgerEntry, *, own: bool) -> None:
    mine, former = split_entries({"cpu": entry}, HERE)
    assert (set(mine), [each.variant for each in former]) == (({"cpu"}, []) if own else (set(), ["cpu"]))


def test_entries_of_others_are_listed_with_what_they_were_built_as() -> None:
    entry = LedgerEntry(outcome=replace(FAILED, values={"python": "3.12", "gpu": "cpu"}))
    _, former = split_entries({"py312-cpu": entry, "gone": LedgerEntry(outcome=DONE)}, HERE)
    text = ledger_text((), former, width=100, command="")
    assert "not variants of this recipe: 2 entries\n" in text
    assert "  py312-cpu (python 3.12, gpu cpu): failed\n  gone: done" in text
