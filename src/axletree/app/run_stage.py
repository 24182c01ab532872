"""Run one stage from its request: what every engine calls, on this machine or another."""

from __future__ import annotations

import sys
import tempfile
import threading
from typing import TYPE_CHECKING, Any

import msgspec

from axletree import registry
from axletree.core.events import Event, StageFinished
from axletree.core.values import Key, StageId
from axletree.disk import write_all
from axletree.execute.stage import run_stage
from axletree.host.contained import run_contained
from axletree.host.room import STORE, in_room, outside_json, prepare_image
from axletree.host.sandbox import Isolation, run_isolated
from axletree.store.images import ROOT
from axletree.store.store import Store

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from axletree.execute.context import ActionContext, Outcome
    from axletree.host.contained import Surroundings
    from axletree.recipe.settings import Settings

_PRINTING = threading.Lock()
_EVENTS: msgspec.json.Decoder[Event] = msgspec.json.Decoder(Event)


class StageRun(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a stage: report of ``run-stage``."""

    stage: StageId
    key: Key
    exit_code: int
    """0 if done, 1 if failed; 128 + n if signal n ended it."""


def run_requested(
    key: Key,
    store: Store,
    *,
    emit: Callable[[Event], None],
    settings: Settings,
    environ: Mapping[str, str],
    contained: Surroundings | None = None,
) -> int:
    """Run the stage of a request in the store, in a kill domain of its own; ``contained``: that is this container.

    Returns:
        0 done, 1 failed; 128 + n when signal n ended it.

    Raises:
        UsageError: the store has no such request.
    """
    request = store.get_request(key)
    spec = registry.action_spec(request.action)

    def body(isolation: Isolation) -> int:
        granted = msgspec.structs.asdict(isolation)
        if spec.network:
            del granted["network"]
        lacks = tuple(name for name, is_granted in granted.items() if not is_granted)

        def tell(event: Event) -> None:
            if isinstance(event, StageFinished) and event.status != "cached":
                event = msgspec.structs.replace(event, lacks=lacks)
            emit(_EVENTS.decode(outside_json(msgspec.json.encode(event))) if in_room() else event)

        def action(context: ActionContext[Any]) -> Outcome:
            if request.ingredients.image is not None and not request.local.here:
                if contained is None:
                    prepare_image(STORE / "images" / request.ingredients.image.id / ROOT, gpus=request.local.gpus)
                tempfile.tempdir = str(context.work)  # the image's programs do not see this machine's /tmp
            # Imported only if it must run, and where a module that can't be imported fails the stage with its log.
            return registry.load_action(request.action)(context)

        seen = Store(STORE) if in_room() else store
        done = run_stage(seen, request, spec, action, isolation=granted, emit=tell, settings=settings, environ=environ)
        return 0 if done else 1

    if contained is not None:
        return run_contained(body, contained, network=spec.network)
    parent = environ.get("AXLETREE_PARENT")
    return run_isolated(body, network=spec.network, store=store.root, parent=int(parent) if parent else None)


def print_event(line: bytes) -> None:
    """Write one line whole: events come from several threads, and a pipe may take a part of a line only."""
    with _PRINTING:
        sys.stdout.flush()
        write_all(sys.stdout.fileno(), line)
