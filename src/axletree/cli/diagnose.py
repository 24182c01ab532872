"""``axletree diagnose``: the root cause in a log."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from axletree.app.diagnose import diagnose_logs
from axletree.app.facts import read_facts
from axletree.cli.notes import at_work
from axletree.cli.options import FILE
from axletree.cli.reporting import ReportCommand, Reported, terminal_width
from axletree.report.diagnosis import DiagnosedLogs
from axletree.view.diagnosis import diagnosis_text


@click.command(cls=ReportCommand, report=DiagnosedLogs)
@click.argument(
    "logs", metavar="FILE...", nargs=-1, required=True, type=click.Path(path_type=Path, dir_okay=False, allow_dash=True)
)
@click.option(
    "--facts",
    type=FILE,
    metavar="FILE",
    help=(
        "Use the facts of the host that wrote the logs to explain the failure; create FILE there with "
        "`axletree facts --json`."
    ),
)
def command(logs: tuple[Path, ...], *, facts: Path | None) -> Reported:
    """Find the root cause of failures in logs, and suggest a fix.

    Reads logs of ninja, make, CMake, pip, uv, compilers, linkers, Python and CI systems, of any length. Use - to read
    standard input. The exit code is 1 if the logs show a failure.
    """
    host = None if facts is None else read_facts(facts)
    report = diagnose_logs(logs, stdin=sys.stdin.buffer, facts=host, at_work=at_work)
    width = terminal_width()
    return Reported(report, lambda: diagnosis_text(report.logs, width=width, style=click.style), int(report.failed))
