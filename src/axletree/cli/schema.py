"""``axletree schema``: print a JSON schema."""

from __future__ import annotations

import click
import msgspec

from axletree.package.sdk.schema import sdk_manifest_schema
from axletree.recipe.schema import data_schema, event_schema, recipe_schema

_SCHEMAS = {"recipe": recipe_schema, "data": data_schema, "events": event_schema, "sdk-manifest": sdk_manifest_schema}


@click.command()
@click.argument("what", type=click.Choice(list(_SCHEMAS)), default="recipe")
def command(what: str) -> None:
    """Print the JSON schema of recipes, their data files, SDK manifests or the event stream.

    An editor with the schema of recipes completes keys and marks mistakes while you type.
    """
    click.echo(msgspec.json.format(msgspec.json.encode(_SCHEMAS[what]()), indent=2))
