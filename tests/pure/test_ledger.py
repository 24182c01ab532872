"""The ledger: when a variant is done, when it no longer is, and what two runs at once make of it."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from axletree.core.values import Key, StageId
from axletree.plan.ledger import (
    Attempt,
    BuildOutcome,
    BuildProcess,
    LedgerEntry,
    State,
    began,
    ended,
    final_stages,
    standing,
    with_built,
)
from axletree.view.ledger import ledger_text, remaining_lines
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
