"""``axletree run-stage``: the unit of work of every engine."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import click
import msgspec

from axletree.app.run_stage import StageRun, print_event, run_requested
from axletree.app.shell import find_request
from axletree.cli.opening import open_store, settings
from axletree.cli.reporting import ReportCommand, Reported, wants_json
from axletree.core.events import Event, StageFinished
from axletree.core.trees import is_digest
from axletree.core.values import Key
from axletree.host.contained import Surroundings
from axletree.recipe.settings import Settings
from axletree.view.jsonl import encode


@click.command(cls=ReportCommand, report=StageRun)
@click.argument("key", metavar="KEY|STAGE")
@click.option("--settings-from-stdin", "handed", is_flag=True, hidden=True)
@click.option("--contained", hidden=True)
def command(*, key: str, handed: bool, contained: str | None) -> Reported:
    """Run a single stage again, as an earlier build recorded it in the store.

    KEY selects a request; STAGE, a stage id or RECIPE:ID, selects the stage's latest request. With --json, prints one
    event per line, and the report on the last line.
    """
    as_json = wants_json()

    def emit(event: Event) -> None:
        if as_json:
            print_event(encode(event).encode() + b"\n")
        elif isinstance(event, StageFinished):
            click.echo(f"{event.stage}: {event.status}{f': {event.message}' if event.message else ''}")

    outside = None if contained is None else msgspec.json.decode(contained, type=Surroundings)
    chosen = _handed() if handed else settings()
    store = open_store(chosen)
    request = store.get_request(Key(key)) if is_digest(key) else find_request(store, key)
    environ = dict(os.environ)
    code = run_requested(request.key, store, emit=emit, settings=chosen, environ=environ, contained=outside)
    return Reported(StageRun(stage=request.stage, key=request.key, exit_code=code), lambda: (), code)


def _handed() -> Settings:
    """The settings of the build that this stage belongs to; its programs get no input."""
    chosen = msgspec.json.decode(sys.stdin.buffer.read(), type=Settings)
    with Path(os.devnull).open("rb") as nothing:
        os.dup2(nothing.fileno(), sys.stdin.fileno())
    return chosen
