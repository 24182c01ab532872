"""The one way in which commands print what they found: as text, or with ``--json`` as one line of JSON."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeVar

import click
import msgspec

from axletree.core.errors import AxletreeError
from axletree.report.envelope import encode_report

Input = TypeVar("Input")
Outcome = TypeVar("Outcome")

_WANTED = "axletree.json"


class Reported(msgspec.Struct, frozen=True):
    """What a command returns."""

    result: msgspec.Struct
    """The report: of the type that the command declares."""
    text: Callable[[], str | bytes | Iterable[str]]
    """Makes the text, or its lines, out of the report; called only where text is wanted. Bytes are written as they
    are."""
    exit_code: int = 0
    error: BaseException | None = None
    """What cut the work short: raised once the report of what was done before is printed."""


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
            if isinstance(text, bytes):
                click.echo(text, nl=False)
            else:
                for line in [text] if isinstance(text, str) else text:  # names need be no UTF-8: odd bytes as numbers
                    click.echo(line.encode("utf-8", "backslashreplace").decode())
        if reported.error is not None:
            raise reported.error
        return reported.exit_code


def wants_json() -> bool:
    """Whether the running command was called with ``--json``; for those that say something while they work."""
    return bool(click.get_current_context().meta.get(_WANTED))


def terminal_width(default: int = 80, *, most: int = sys.maxsize) -> int:
    """Columns of the terminal, at most so many; where there is no terminal, the default."""
    import shutil  # noqa: PLC0415 (start-up time: only who prints a table needs it)

    return min(shutil.get_terminal_size((default, 24)).columns, most)


def until_error(
    inputs: Iterable[Input], work: Callable[[Input], Outcome]
) -> tuple[tuple[Outcome, ...], AxletreeError | None]:
    """Work on one input after the other up to the first that fails: what is done by then is reported all the same."""
    done: list[Outcome] = []
    for each in inputs:
        try:
            done.append(work(each))
        except AxletreeError as error:
            return tuple(done), error
    return tuple(done), None


def all_commands(group: click.Group, words: Sequence[str] = ()) -> Iterator[tuple[str, click.Command]]:
    """Every command below a group, with the name that :func:`command_name` has for it; groups are left out."""
    ctx = click.Context(group)
    for name in group.list_commands(ctx):
        command = group.get_command(ctx, name)
        path = (*words, name)
        if isinstance(command, click.Group):
            yield from all_commands(command, path)
        elif command is not None:
            yield " ".join(path), command


def report_types(group: click.Group) -> dict[str, type[msgspec.Struct]]:
    """Command -> type of its report, of all commands below a group that have one."""
    return {name: each.report for name, each in all_commands(group) if isinstance(each, ReportCommand)}


def command_name(ctx: click.Context) -> str:
    """How the command is called, such as ``env verify``."""
    return ctx.command_path.partition(" ")[2]


def _note(ctx: click.Context, _parameter: click.Parameter, value: bool) -> None:  # noqa: FBT001 (click's signature)
    ctx.meta[_WANTED] = value
