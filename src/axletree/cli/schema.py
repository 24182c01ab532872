"""``axletree schema``: print a JSON schema."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click
import msgspec

from axletree.cli.reporting import report_types
from axletree.core.errors import UsageError
from axletree.package.sdk.schema import sdk_manifest_schema
from axletree.recipe.faults import suggestion
from axletree.recipe.schema import data_schema, event_schema, recipe_schema
from axletree.report.schema import report_schema, reports_schema

if TYPE_CHECKING:
    from collections.abc import Callable

_SCHEMAS: dict[str, Callable[[], dict[str, Any]]] = {
    "recipe": recipe_schema,
    "data": data_schema,
    "events": event_schema,
    "sdk-manifest": sdk_manifest_schema,
}
_REPORTS = "reports"


@click.command()
@click.argument("what", default="recipe", metavar=f"[{'|'.join([*_SCHEMAS, _REPORTS])}|COMMAND]")
@click.pass_context
def command(ctx: click.Context, what: str) -> None:
    """Print the JSON schema of recipes, data files, SDK manifests, events or reports.

    With the recipe schema, an editor completes keys and marks mistakes while you type. A report is what a
    command prints with --json; specify a command, such as "env verify", to print only the schema of its report.
    """
    schema = _SCHEMAS[what]() if what in _SCHEMAS else _of_reports(ctx, what)
    click.echo(msgspec.json.format(msgspec.json.encode(schema), indent=2))


def _of_reports(ctx: click.Context, what: str) -> dict[str, Any]:
    group = ctx.find_root().command
    reports = report_types(group) if isinstance(group, click.Group) else {}
    if what == _REPORTS:
        return reports_schema(reports)
    if what not in reports:
        raise UsageError(
            f"no schema exists for {what!r}",
            hint=suggestion(what, [*_SCHEMAS, _REPORTS, *reports], "available schemas"),
        )
    return report_schema(what, reports[what])
