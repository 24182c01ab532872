"""``axletree schema``: print a JSON schema."""

from __future__ import annotations

import click
import msgspec

from axletree.recipe.schema import event_schema, recipe_schema


@click.command()
@click.argument("what", type=click.Choice(["recipe", "events"]), default="recipe")
def command(what: str) -> None:
    """Print the JSON schema of recipes or of the event stream.

    An editor that knows the schema of recipes completes keys and marks mistakes while you type.
    """
    schema = recipe_schema() if what == "recipe" else event_schema()
    click.echo(msgspec.json.format(msgspec.json.encode(schema), indent=2))
