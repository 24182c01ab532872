"""``axletree run-stage``: the unit of work of every engine."""

from __future__ import annotations

import os

import click

from axletree.app.run_stage import StageRun, print_event, run_requested
from axletree.app.shell import find_request
from axletree.cli.reporting import ReportCommand, Reported, wants_json
from axletree.core.events import Event, StageFinished
from axletree.core.trees import is_digest
from axletree.core.values import Key
from axletree.store.layout import default_root
from axletree.store.store import Store
from axletree.view.jsonl import encode


@click.command(
    cls=ReportCommand,
    report=StageRun,
    help="Run one stage from its request in the store.\n\nDrivers give its key; its id stands for the latest. With "
    "--json its events come first, one a line, and its report is the last line.",
)
@click.argument("key", metavar="KEY|STAGE")
def command(key: str) -> Reported:
    """Run a stage; exit 0 when it is done, 1 when it failed."""
    as_json = wants_json()

    def emit(event: Event) -> None:
        if as_json:
            print_event(encode(event).encode() + b"\n")
        elif isinstance(event, StageFinished):
            click.echo(f"{event.stage}: {event.status}{f': {event.message}' if event.message else ''}")

    store = Store.open(default_root(os.environ))
    request = store.get_request(Key(key)) if is_digest(key) else find_request(store, key)
    code = run_requested(request.key, emit=emit, environ=dict(os.environ))
    return Reported(StageRun(stage=request.stage, key=request.key, exit_code=code), lambda: (), code)
