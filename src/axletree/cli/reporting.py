"""The one way in which commands print what they found: as text, or with ``--json`` as one line of JSON."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import click
import msgspec

from axletree.report.envelope import encode_report

_WANTED = "axletree.json"


class Reported(msgspec.Struct, frozen=True):
    """What a command returns."""

    result: msgspec.Struct
    """The report: of the type that the command declares."""
    text: Callable[[], str | Iterable[str]]
    """Makes the text, or its lines, out of the report; called only where text is wanted."""
    exit_code: int = 0


class ReportCommand(click.Command):
    """A command that returns :class:`Reported`; it has the option ``--json``, and prints either form.

    Args:
        report: Type of the command's report. ``axletree schema`` and the reference publish it.
    """

    def __init__(self, *args: Any, report: type[msgspec.Struct], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.report = report
        self.params.append(
            click.Option(
                ["--json"],
                is_flag=True,
                expose_value=False,
                callback=_note,
                help="Print the report as JSON, on one line.",
            )
        )

    def invoke(self, ctx: click.Context) -> object:
        """Run the command, print what it reports, and return its exit code."""
        reported = super().invoke(ctx)
        if not isinstance(reported, Reported):
            return reported
        if not isinstance(reported.result, self.report):
            raise TypeError(f"{ctx.command_path} reported {type(reported.result)}, not {self.report}")
        if wants_json():
            click.echo(encode_report(command_name(ctx), reported.result))
        else:
            text = reported.text()
            for line in [text] if isinstance(text, str) else text:
                click.echo(line)
        return reported.exit_code


def wants_json() -> bool:
    """Whether the running command was called with ``--json``; for those that say something while they work."""
    return bool(click.get_current_context().meta.get(_WANTED))


def command_name(ctx: click.Context) -> str:
    """How the command is called, such as ``env verify``."""
    return ctx.command_path.partition(" ")[2]


def _note(ctx: click.Context, _parameter: click.Parameter, value: bool) -> None:  # noqa: FBT001 (click's signature)
    ctx.meta[_WANTED] = value
