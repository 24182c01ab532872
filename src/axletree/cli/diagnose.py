"""``axletree diagnose``: the root cause in a log."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import click
import msgspec

from axletree.app.diagnose import diagnose_logs
from axletree.app.facts import read_facts
from axletree.view.diagnosis import diagnosis_document, diagnosis_text, has_error


@click.command()
@click.argument(
    "logs", metavar="FILE...", nargs=-1, required=True, type=click.Path(path_type=Path, dir_okay=False, allow_dash=True)
)
@click.option(
    "--facts",
    type=click.Path(path_type=Path, exists=True, dir_okay=False, allow_dash=False),
    metavar="FILE",
    help="Explain the failure with facts of the logs' host, as written there by `axletree facts`.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object with all findings, the root cause first.")
def command(logs: tuple[Path, ...], *, facts: Path | None, as_json: bool) -> int:
    """Find the root cause in logs, and say what to do.

    Reads logs of ninja, make, CMake, pip, uv, compilers, linkers, Python and CI systems, of any length; - reads
    standard input. The exit code is 1 if something failed.
    """
    host = None if facts is None else read_facts(facts)
    reports = diagnose_logs(logs, stdin=sys.stdin.buffer, facts=host)
    if as_json:
        click.echo(msgspec.json.format(msgspec.json.encode(diagnosis_document(reports)), indent=1))
    else:
        click.echo(diagnosis_text(reports, width=shutil.get_terminal_size().columns))
    return int(has_error(reports))
