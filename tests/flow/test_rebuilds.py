"""What runs again after a change, and what does not: a table of changes with exactly the stages that they cost.

For each row the plan is asked first. ``planned`` are the stages that have a reason of their own; whatever is behind
them is a "perhaps", and everything else must be in the store. Where a result can turn out as it was, the build is run
as well, and ``ran`` are exactly the stages that it ran: behind an equal result nothing runs.
"""

from __future__ import annotations

import os
import shutil
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from support.changes import CHANGES, NOTHING, Row
from support.tiny import Tiny, behind, copied, expand, prepared_tiny

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("tiny")]


@pytest.fixture(scope="session")
def base(tmp_path_factory: pytest.TempPathFactory) -> Tiny:
    return prepared_tiny(tmp_path_factory)


@pytest.fixture
def tiny(base: Tiny, tmp_path: Path) -> Tiny:
    return copied(base, tmp_path)


@pytest.mark.parametrize("row", [*NOTHING, *CHANGES], ids=lambda row: row.name)
def test_a_change_costs_exactly(row: Row, tiny: Tiny) -> None:
    changed = row.change(tiny) or tiny
    planned = expand(row.planned)
    plan = changed.plan()
    assert {name for name, stage in plan.items() if stage["status"] == "run"} == planned
    assert {name for name, stage in plan.items() if stage["status"] == "perhaps"} == behind(planned, plan)
    if row.planned:
        first = row.planned.split()[0].replace("*", "A")
        assert row.says in "; ".join(plan[first]["why"])
    if row.ran is None:
        return
    run = changed.built()
    assert run.stages("done") == expand(row.ran)
    assert run.stages("cached") == plan.keys() - expand(row.ran)
    assert run.counts["ran"] == len(expand(row.ran))
    assert {stage["status"] for stage in changed.plan().values()} == {"cached"}


def test_stages_without_a_reason_of_their_own_say_what_they_wait_for(tiny: Tiny) -> None:
    tiny.edit("src/bind.cpp", "The answer.", "Another answer.")
    plan = tiny.plan()
    assert plan["patch"]["why"] == ["if the result of fetch changes"]
    assert plan["index:.[A]"]["status"] == "perhaps"


def test_going_back_finds_the_old_results(tiny: Tiny) -> None:
    tiny.edit("src/bind.cpp", "<Python.h>\n", "<Python.h>  // first\n")
    tiny.built()
    tiny.edit("src/bind.cpp", "<Python.h>  // first\n", "<Python.h>\n")
    assert {stage["status"] for stage in tiny.plan().values()} == {"cached"}


def test_a_requirement_without_a_new_lock_is_an_error(tiny: Tiny) -> None:
    tiny.change('requires = ["demo>=1"]', 'requires = ["demo>=1", "other"]')
    for command in (["plan"], ["build", "--locked"]):
        done = tiny.call(*command, str(tiny.recipe))
        assert done.returncode == 2
        assert "requirement other added" in done.stderr
        assert "axletree lock" in done.stderr


def test_how_it_is_shown_and_how_much_may_run_changes_nothing(tiny: Tiny) -> None:
    one_core = ("taskset", "--cpu-list", str(min(os.sched_getaffinity(0))))
    calls = [tiny, tiny.with_environ(NO_COLOR="", COLUMNS="40", TERM="dumb", FORCE_COLOR="1")]
    if shutil.which("taskset"):
        calls.append(replace(tiny, prefix=one_core))
    for each in calls:
        run = each.built("--keep-going")
        assert run.counts["ran"] == 0
        assert run.counts["cached"] == len(run.trees)
    plain = tiny.call("build", str(tiny.recipe), "--out", str(tiny.out))
    assert plain.returncode == 0
    assert "nothing" in plain.stdout or "0 to run" in plain.stdout
