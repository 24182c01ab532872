"""``axletree settings``: what is set, and where."""

from __future__ import annotations

import shutil

import click
import msgspec

from axletree.cli.opening import loaded
from axletree.host.facts.privacy import without_credentials
from axletree.host.settings import user_file
from axletree.view.settings import settings_document, settings_text


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def command(*, as_json: bool) -> None:
    """Show the settings, each with the file, variable or default that its value comes from."""
    document = settings_document(loaded(), user_file=str(user_file()), redact=without_credentials)
    if as_json:
        click.echo(msgspec.json.encode(document))
        return
    click.echo(settings_text(document, width=shutil.get_terminal_size((100, 24)).columns))
