"""``axletree clean``: remove what a build and hipify left in a source tree."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from axletree.app.clean import CleanedTrees, clean, find_trees
from axletree.cli.reporting import ReportCommand, Reported, terminal_width, until_error
from axletree.core.errors import UsageError
from axletree.core.units import format_bytes, plural
from axletree.view.tables import printable, render_table

if TYPE_CHECKING:
    from collections.abc import Iterator

    from axletree.app.clean import CleanReport, What


@click.command(cls=ReportCommand, report=CleanedTrees)
@click.argument("place", metavar="RECIPE|DIR")
@click.option("--build", "build", is_flag=True, help="Select build products that git ignores (default).")
@click.option(
    "--hipify",
    "hipify",
    is_flag=True,
    help="Select files that hipify created or edited in place, also in submodules.",
)
@click.option(
    "--all",
    "everything",
    is_flag=True,
    help="Select both kinds, also in submodules, and revert your own changes after saving them as a patch.",
)
@click.option("--yes", is_flag=True, help="Remove the files instead of only listing them.")
def command(place: str, *, build: bool, hipify: bool, everything: bool, yes: bool) -> Reported:
    """Show or remove what builds and hipify left behind in a source tree.

    Nothing is changed without --yes. Untracked files that git does not ignore are kept, and so are virtual environments
    and editor folders.
    """
    if build + hipify + everything > 1:
        raise UsageError("--build, --hipify and --all cannot be combined", hint="use --all for both")
    what: What = "all" if everything else "hipify" if hipify else "build"
    trees, error = until_error(
        find_trees(place, here=Path()), lambda tree: clean(tree, what, environ=os.environ, really=yes)
    )
    return Reported(CleanedTrees(trees=trees), lambda: (line for tree in trees for line in _lines(tree)), error=error)


def _lines(report: CleanReport) -> Iterator[str]:
    yield printable(report.folder)
    rows = [
        (item.fate, item.path, f"{item.files:,}", format_bytes(item.size) if item.size else "", item.why)
        for item in report.items
    ]
    if rows:
        width = terminal_width()
        yield render_table(("what", "path", "files", "size", "why"), rows, width=width, right=(2, 3), indent="  ")
    removed = [item for item in report.items if item.fate == "remove"]
    restored = sum(item.fate == "restore" for item in report.items)
    kept = sum(item.fate == "keep" for item in report.items)
    files = plural(sum(item.files for item in removed), "file")
    size = format_bytes(sum(item.size for item in removed))
    verbs = ("removed", "restored") if report.done else ("would remove", "restore")
    yield f"{verbs[0]} {files} ({size}), {verbs[1]} {restored}, {'kept' if report.done else 'keep'} {kept}"
    if report.patch is not None:
        yield printable(f"reverted changes are saved in {report.patch}")
    if not report.done and (removed or restored):
        yield "nothing was changed: run again with --yes to apply these changes"
