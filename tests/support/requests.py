"""Stages by hand: a made-up action with its types, requests for it and for real ones, and running them here."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import msgspec

from axletree.core.events import Event, MemorySampled, StageFinished
from axletree.core.records import ActionCode, Grant, Ingredients, LocalFacts, StageRecord, StageRequest
from axletree.core.values import Digest, Key, StageId, key_of
from axletree.execute.context import ActionContext, Outcome
from axletree.execute.stage import run_stage
from axletree.plan.actions.spec import ActionSpec, Facts, Parameters
from axletree.plan.actions.table import ACTIONS
from axletree.recipe.settings import from_variables, merge
from axletree.registry import load_action

if TYPE_CHECKING:
    from collections.abc import Mapping

    from axletree.plan.keys import Lookup
    from axletree.store.store import Store


class MadeUpParameters(Parameters, frozen=True, kw_only=True):
    """What can be asked of the made-up action."""

    name: str = ""
    flag: str = ""
    audit: bool = False


class MadeUpFacts(Facts, frozen=True, kw_only=True):
    """What it may tell."""

    made: int | None = None


MADE_UP = ActionSpec(module="none", revision=1, parameters=MadeUpParameters, facts=MadeUpFacts)
"""Its declaration. Tests bring the function."""

MadeUpContext = ActionContext[MadeUpParameters]
Action = Callable[[ActionContext[Any]], Outcome]


def ingredients_of(
    parameters: Parameters | None = None, *, action: str = "made-up", spec: ActionSpec = MADE_UP, **others: Any
) -> Ingredients:
    """The ingredients of a stage, as planning makes them; ``others`` are more of their fields."""
    asked = MadeUpParameters() if parameters is None else parameters
    return Ingredients(
        action=ActionCode(name=action, revision=spec.revision),
        parameters=msgspec.json.decode(msgspec.json.encode(asked)),
        **others,
    )


def request_of(
    stage: str = "lib[cpu]",
    parameters: Parameters | None = None,
    *,
    action: str = "made-up",
    spec: ActionSpec = MADE_UP,
    inputs: Mapping[str, Digest] | None = None,
    local: LocalFacts | None = None,
    grant: Grant | None = None,
    **others: Any,
) -> StageRequest:
    """A request for a stage; ``others`` are more of its ingredients."""
    trees = dict(inputs or {})
    named = {name: f"tree:{tree}" for name, tree in trees.items()}
    ingredients = ingredients_of(parameters, action=action, spec=spec, inputs=named, **others)
    return StageRequest(
        stage=StageId(stage),
        action=action,
        key=key_of(ingredients),
        ingredients=ingredients,
        inputs=trees,
        local=local or LocalFacts(),
        grant=grant or Grant(),
    )


def run_request(
    store: Store,
    request: StageRequest,
    action: Action,
    *,
    spec: ActionSpec = MADE_UP,
    environ: Mapping[str, str] | None = None,
    emit: Callable[[Event], None] | None = None,
) -> tuple[bool, list[Event]]:
    """Run a stage in this process: whether it is done, and its events without the samples of memory."""
    events: list[Event] = []

    def tell(event: Event) -> None:
        events.append(event)
        if emit is not None:
            emit(event)

    settings = merge([from_variables(environ or {})]).settings
    done = run_stage(store, request, spec, action, isolation={}, emit=tell, settings=settings, environ=environ or {})
    return done, [event for event in events if not isinstance(event, MemorySampled)]


def run_action(
    store: Store,
    action: str,
    parameters: Parameters,
    inputs: Mapping[str, Digest],
    *,
    stage: str = "stage",
    local: LocalFacts | None = None,
    **others: Any,
) -> StageRecord | StageFinished:
    """Run an action that ships: its record, or how it failed; ``others`` are more of its ingredients."""
    spec = ACTIONS[action]
    request = request_of(stage, parameters, action=action, spec=spec, inputs=inputs, local=local, **others)
    done, events = run_request(store, request, load_action(action), spec=spec, environ=os.environ)
    if done:
        record = store.get_record(request.key, spec.facts)
        assert record is not None
        return record
    failed = events[-1]
    assert isinstance(failed, StageFinished)
    return failed


def lookup_in(store: Mapping[Key, StageRecord]) -> Lookup:
    """Looks results up in a dictionary."""
    return lambda key, _facts: store.get(key)


NOTHING = lookup_in({})
