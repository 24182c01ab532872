"""``axletree run-stage``: the unit of work of every engine."""

from __future__ import annotations

import os
import sys

import click

from axletree.app.run_stage import print_event, run_requested
from axletree.app.shell import find_request
from axletree.core.events import Event, StageFinished
from axletree.core.trees import is_digest
from axletree.core.values import Key
from axletree.store.layout import default_root
from axletree.store.store import Store
from axletree.view.jsonl import encode


@click.command(
    help="Run one stage from its request in the store.\n\nThe key selects a request; a stage id selects its latest one."
)
@click.argument("key", metavar="KEY|STAGE")
@click.option("--json", "as_json", is_flag=True, help="Print the stage's events, one JSON object a line.")
def command(key: str, as_json: bool) -> None:  # noqa: FBT001 (click passes flags by name)
    """Run a stage; exit 0 when it is done, 1 when it failed."""

    def emit(event: Event) -> None:
        if as_json:
            print_event(encode(event).encode() + b"\n")
        elif isinstance(event, StageFinished):
            click.echo(f"{event.stage}: {event.status}{f': {event.message}' if event.message else ''}")

    wanted = Key(key) if is_digest(key) else find_request(Store.open(default_root(os.environ)), key).key
    sys.exit(run_requested(wanted, emit=emit, environ=dict(os.environ)))
