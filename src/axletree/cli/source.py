"""``axletree source``: a recipe's git repositories on disk."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec

from axletree.app.source_sync import sync_sources
from axletree.core.errors import render_problem
from axletree.recipe.addresses import COMMIT
from axletree.view.tables import plural, printable, render_table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from axletree.app.source_sync import RepositoryReport


@click.group(name="source")
def command() -> None:
    """Clone and update a recipe's git repositories: sync."""


@command.command(name="sync")
@click.argument("recipe")
@click.option("--ref", metavar="REF", help="Tag, branch or commit of the main repository, instead of the recipe's.")
@click.option(
    "--into",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path(),
    help="Folder for the checkouts; the current one by default.",
)
@click.option("--only", multiple=True, metavar="NAME", help="Only this repository. Repeatable.")
@click.option("--dry-run", is_flag=True, help="Query the repositories without changing anything.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def sync(recipe: str, ref: str | None, into: Path, only: tuple[str, ...], *, dry_run: bool, as_json: bool) -> int:
    """Clone or update a recipe's repositories and their submodules at exactly the commits that it requests.

    The recipe's git source or its first checkout is the main repository; pins of the others are read from its requested
    commit. None of your work is lost: a repository with changed files, unpushed commits or files in the way is left
    unchanged and reported. The exit code is 1 if a repository was refused or failed.
    """

    def say(name: str) -> None:
        click.echo(f"{name} ...", err=True)

    reports = tuple(
        sync_sources(
            recipe,
            into=into,
            environ=os.environ,
            ref=ref,
            only=only,
            dry_run=dry_run,
            started=None if as_json else say,
        )
    )
    click.echo(_json(reports, into) if as_json else _text(reports))
    return 0 if all(report.good for report in reports) else 1


def _text(reports: Sequence[RepositoryReport]) -> str:
    rows = [
        (
            report.name,
            report.state,
            _shown_ref(report),
            _short(report.before if report.before != report.commit else None),
            _short(report.commit),
            str(report.submodules) if report.submodules else "",
            report.folder,
        )
        for report in reports
    ]
    headers = ("repository", "state", "ref", "was at", "commit", "submodules", "folder")
    lines = [render_table(headers, rows, width=shutil.get_terminal_size().columns, right=(5,))]
    for report in reports:
        lines += [printable(f"{report.name}: {note}") for note in report.notes]
    for report in reports:
        lines += [
            printable(line)
            for problem in report.problems
            for line in f"{report.name} {report.state}: {render_problem(problem)}".splitlines()
        ]
    bad = [report for report in reports if not report.good]
    if bad:
        lines.append(f"{plural(len(bad), 'repository')} not synced")
    return "\n".join(lines)


def _short(commit: str | None) -> str:
    return (commit or "")[:12]


def _shown_ref(report: RepositoryReport) -> str:
    if report.pin is not None:
        return f"pin {report.pin.rpartition('/')[2]}"
    return _short(report.ref) if COMMIT.fullmatch(report.ref or "") else report.ref or "?"


def _json(reports: Sequence[RepositoryReport], into: Path) -> str:
    content = {"schema": 1, "into": str(into), "repositories": reports}
    return json.dumps(msgspec.to_builtins(content), indent=1)  # file names that are no UTF-8 are in problems
