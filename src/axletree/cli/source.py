"""``axletree source``: a recipe's git repositories on disk."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from axletree.app.source_sync import SyncedSources, sync_sources
from axletree.cli.notes import say_aside
from axletree.cli.options import FOLDER_PATH
from axletree.cli.recipe_options import set_option
from axletree.cli.reporting import ReportCommand, Reported, terminal_width, wants_json
from axletree.core.errors import render_problem
from axletree.core.units import plural
from axletree.recipe.addresses import COMMIT
from axletree.view.tables import printable, render_table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from axletree.app.source_sync import RepositoryReport


@click.group(name="source")
def command() -> None:
    """Clone or update a recipe's git repositories."""


@command.command(name="sync", cls=ReportCommand, report=SyncedSources)
@click.argument("recipe")
@set_option
@click.option("--ref", metavar="REF", help="Tag, branch or commit of the main repository, instead of the recipe's.")
@click.option(
    "--into", type=FOLDER_PATH, default=Path(), help="Folder for the checkouts; the current folder by default."
)
@click.option("--only", multiple=True, metavar="NAME", help="Sync only this repository. Repeatable.")
@click.option("--dry-run", is_flag=True, help="Show what would be cloned or updated, without changing anything.")
def sync(
    recipe: str, sets: tuple[str, ...], ref: str | None, into: Path, only: tuple[str, ...], *, dry_run: bool
) -> Reported:
    """Clone or update a recipe's repositories and their submodules at exactly the commits that the recipe names.

    The recipe's git source or its first checkout is the main repository; pins of the others are read from its requested
    commit. None of your work is lost: a repository with changed files, unpushed commits or files that would be
    overwritten is left unchanged and reported. The exit code is 1 if a repository was refused or failed.
    """
    reports = tuple(
        sync_sources(
            recipe,
            into=into,
            environ=os.environ,
            ref=ref,
            only=only,
            sets=sets,
            dry_run=dry_run,
            started=None if wants_json() else lambda name: say_aside(f"{name} ..."),
        )
    )
    exit_code = 0 if all(report.good for report in reports) else 1
    return Reported(SyncedSources(into=into, repositories=reports), lambda: _text(reports), exit_code)


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
    lines = [render_table(headers, rows, width=terminal_width(), right=(5,))]
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
