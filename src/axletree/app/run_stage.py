"""Run one stage from its request: what every engine calls, on this machine or another."""

from __future__ import annotations

import os
import sys
import threading
from typing import TYPE_CHECKING, Any

import msgspec

from axletree import registry
from axletree.core.events import StageFinished
from axletree.core.values import Key, StageId
from axletree.execute.stage import run_stage
from axletree.host.sandbox import Isolation, run_isolated

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from axletree.core.events import Event
    from axletree.execute.context import ActionContext, Outcome
    from axletree.recipe.settings import Settings
    from axletree.store.store import Store

_PRINTING = threading.Lock()


class StageRun(msgspec.Struct, frozen=True, kw_only=True):
    """How a stage ended: report of ``run-stage``."""

    stage: StageId
    key: Key
    exit_code: int
    """0 done, 1 failed; 128 + n when signal n ended it."""


def run_requested(
    key: Key, store: Store, *, emit: Callable[[Event], None], settings: Settings, environ: Mapping[str, str]
) -> int:
    """Run the stage of a request in the store, in a kill domain of its own.

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
            emit(event)

        def action(context: ActionContext[Any]) -> Outcome:
            # Imported only if it must run, and where a module that can't be imported fails the stage with its log.
            return registry.load_action(request.action)(context)

        done = run_stage(store, request, spec, action, isolation=granted, emit=tell, settings=settings, environ=environ)
        return 0 if done else 1

    parent = environ.get("AXLETREE_PARENT")
    return run_isolated(body, network=spec.network, parent=int(parent) if parent else None)


def print_event(line: bytes) -> None:
    """Write one line whole: events come from several threads, and a pipe may take a part of a line only."""
    with _PRINTING:
        sys.stdout.flush()
        while line:
            line = line[os.write(sys.stdout.fileno(), line) :]
