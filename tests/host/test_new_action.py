"""A new action is a declaration, a function and a line: in the table of actions, or in an entry point."""

from __future__ import annotations

import importlib
import os
import sys
import textwrap
from typing import TYPE_CHECKING

import pytest

from axletree import registry
from axletree.core.errors import UsageError
from axletree.core.events import StageFinished
from axletree.core.values import StageId
from axletree.execute.executor import LocalExecutor
from axletree.plan.actions.spec import ActionSpec, facts_of
from axletree.plan.actions.table import ACTIONS
from axletree.plan.step import Step
from axletree.recipe.settings import Settings
from axletree.store.store import Store
from support.requests import request_of, run_request
from support.running import Here, execute_plan, plan_by_hand
from support.store import write_files

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from axletree.plan.graph import Plan

DECLARATION = '''
"""``engrave``: a text on a plate."""

from __future__ import annotations

from axletree.plan.actions.spec import ActionSpec, Facts, Parameters


class EngraveParameters(Parameters, frozen=True, kw_only=True):
    """What is engraved."""

    text: str
    times: int = 0


class EngraveFacts(Facts, frozen=True, kw_only=True):
    """How much it was."""

    letters: int


SPEC = ActionSpec(module="engrave_function", revision=1, parameters=EngraveParameters, facts=EngraveFacts)
'''
FUNCTION = '''
"""Engrave a text."""

from __future__ import annotations

from axletree.execute.context import ActionContext, Outcome
from engrave_declaration import EngraveFacts, EngraveParameters


def run(context: ActionContext[EngraveParameters]) -> Outcome:
    """Write it, as often as it is asked for."""
    assert type(context.parameters) is EngraveParameters
    folder = context.work / "out"
    folder.mkdir()
    text = context.parameters.text * (context.parameters.times or 1)
    (folder / "plate").write_text(text)
    return Outcome(tree=context.store.ingest(folder, adopt=True), facts=EngraveFacts(letters=len(text)))
'''
MODULES = ("engrave_declaration", "engrave_function")


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The two modules of the action, where they can be imported."""
    texts = zip(MODULES, (DECLARATION, FUNCTION), strict=True)
    folder = write_files(tmp_path / "place", {f"{name}.py": text.encode() for name, text in texts})
    monkeypatch.syspath_prepend(str(folder))
    yield folder
    for name in MODULES:
        sys.modules.pop(name, None)


@pytest.fixture
def spec(place: Path) -> ActionSpec:
    del place
    found: ActionSpec = importlib.import_module("engrave_declaration").SPEC
    return found


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store.open(tmp_path / "store")


def plan_with(spec: ActionSpec, text: str) -> Plan:
    made = spec.parameters(text=text)
    return plan_by_hand(
        Step(name="plate", action="engrave", axes={}, parameters=made),
        Step(name="copy", action="engrave", axes={}, parameters=made, needs={"in:plate": "plate"}),
    )


def install(place: Path, version: str) -> None:
    """A distribution that brings the action."""
    info = place / "engraver.dist-info"
    info.mkdir(exist_ok=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: engraver\nVersion: {version}\n")
    (info / "entry_points.txt").write_text("[axletree.actions]\nengrave = engrave_declaration:SPEC\n")


def test_a_line_in_the_table_is_all_that_it_takes(
    spec: ActionSpec, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(UsageError, match="there is no action 'engrave'"):
        registry.action_spec("engrave")
    monkeypatch.setitem(ACTIONS, "engrave", spec)
    assert registry.action_spec("engrave") == spec
    parameters = spec.parameters(text="axle", times=3)
    request = request_of("plate", parameters, action="engrave", spec=spec)
    done, _ = run_request(store, request, registry.load_action("engrave"), spec=spec)
    assert done
    record = store.get_record(request.key, spec.facts)
    assert record is not None
    assert record.facts == {"letters": 12}
    (entry,) = store.get_tree(record.tree).entries
    assert entry.blob is not None
    assert store.read_blob(entry.blob) == b"axleaxleaxle"
    here = Here(store, registry.load_action("engrave"), spec=spec)
    result, _ = execute_plan(plan_with(spec, "tree"), store, here, {"engrave": registry.action_spec("engrave")})
    assert result.status == "done"
    assert [request.stage for request in here.ran] == ["plate", "copy"]
    plate = result.resolved[StageId("plate")].record
    assert plate is not None
    assert facts_of(plate, spec.facts) == spec.facts(letters=4)


def executor_for(store: Store, place: Path, *, start: str = "") -> LocalExecutor:
    """Runs stages in processes of their own that find the modules, and run some code when they start."""
    (place / "sitecustomize.py").write_text(textwrap.dedent(start))
    return LocalExecutor(
        store, {"PATH": os.environ["PATH"], "HOME": str(store.root), "PYTHONPATH": str(place)}, Settings()
    )


def test_the_process_of_a_stage_finds_it_in_the_table(
    spec: ActionSpec, place: Path, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(ACTIONS, "engrave", spec)
    line = """
        from axletree.plan.actions.table import ACTIONS
        import engrave_declaration
        ACTIONS["engrave"] = engrave_declaration.SPEC
    """
    plan = plan_with(spec, "tree")
    result, _ = execute_plan(plan, store, executor_for(store, place, start=line), {"engrave": spec})
    assert [failure.message for failure in result.failures] == []
    record = result.resolved[StageId("copy")].record
    assert record is not None
    assert record.facts == {"letters": 4}
    assert "network" in record.isolation


def test_another_distribution_can_bring_it_and_its_version_is_in_the_key(
    spec: ActionSpec, place: Path, store: Store
) -> None:
    keys = []
    for version in ("1.0", "1.1"):
        install(place, version)
        found = registry.action_spec("engrave")
        assert found.distribution == f"engraver {version}"
        plan = plan_with(spec, "tree")
        result, _ = execute_plan(plan, store, executor_for(store, place), {"engrave": found})
        assert [failure.message for failure in result.failures] == []
        keys.append(result.resolved[StageId("plate")].key)
    assert len(set(keys)) == 2


def test_an_action_that_can_not_be_imported_fails_its_stage(spec: ActionSpec, place: Path, store: Store) -> None:
    install(place, "1.0")
    (place / "engrave_function.py").write_text("import a_module_that_is_not_there\n")
    specs = {"engrave": registry.action_spec("engrave")}
    result, events = execute_plan(plan_with(spec, "tree"), store, executor_for(store, place), specs)
    assert result.status == "failed"
    (failure,) = result.failures
    assert failure.message == "ModuleNotFoundError: No module named 'a_module_that_is_not_there'"
    (finished,) = (each for each in events if isinstance(each, StageFinished) and each.stage == "plate")
    assert finished.log is not None
    assert "Traceback" in store.root.joinpath(finished.log).read_text()
