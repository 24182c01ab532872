"""``axletree cmake-cache``: what a CMake tree is configured with, changed without configuring it from nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, get_args

import click

from axletree.app.cmake_cache import CacheReport, work_on_cache
from axletree.buildsystem.cmake.cache import EntryType, render_diff
from axletree.cli.notes import say_aside
from axletree.cli.options import EXISTING, FILE
from axletree.cli.reporting import ReportCommand, Reported
from axletree.core.errors import UsageError
from axletree.view.tables import printable

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


_TYPES: dict[str, EntryType] = {kind: kind for kind in get_args(EntryType)}


@click.command(cls=ReportCommand, report=CacheReport)
@click.argument("place", type=EXISTING, metavar="CMAKECACHE|FOLDER")
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option(
    "--set", "assignments", multiple=True, metavar="NAME[:TYPE]=VALUE", help="Change or add an entry. Repeatable."
)
@click.option("--unset", multiple=True, metavar="NAME", help="Remove an entry. Repeatable.")
@click.option("--python", type=FILE, help="Switch the build folder to this Python interpreter.")
@click.option(
    "--expect",
    multiple=True,
    metavar="NAME=VALUE",
    help="Fail unless the entry has this value; use `*` to accept any value that enables it. Repeatable.",
)
@click.option(
    "--log",
    type=FILE,
    help="Output of CMake's last configure run; --expect then also checks the feature summary in it.",
)
@click.option("--dry-run", is_flag=True, help="Show the changes without writing them.")
def command(
    place: Path,
    names: tuple[str, ...],
    assignments: tuple[str, ...],
    unset: tuple[str, ...],
    python: Path | None,
    expect: tuple[str, ...],
    log: Path | None,
    *,
    dry_run: bool,
) -> Reported:
    """Show, edit and check the cache of a configured CMake tree.

    Without options, lists the entries whose names match the NAME patterns, or all entries except CMake's internal ones.
    The next build reconfigures automatically and compiles what the edit affects. The exit code is 1 if an expected
    value differs, or if no entry has a given name.
    """
    changes: dict[str, str | tuple[EntryType, str] | None] = {}
    for text in assignments:
        name, value = _assignment(text)
        changes[name] = value
    changes |= dict.fromkeys(unset)
    expected = dict(_pair(text, "--expect") for text in expect)
    report = work_on_cache(place, changes, names=names, python=python, expected=expected, log=log, dry_run=dry_run)
    listing = not (changes or expected or python)
    exit_code = 1 if report.mismatches or (listing and report.unknown) else 0
    return Reported(report, lambda: _lines(report, listing=listing), exit_code)


def _pair(text: str, option: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not (name and equals):
        raise UsageError(f"{option} {text!r} is not of the form NAME=VALUE", hint="such as CMAKE_BUILD_TYPE=Release")
    return name, value


def _assignment(text: str) -> tuple[str, str | tuple[EntryType, str]]:
    name, value = _pair(text, "--set")
    name, colon, kind = name.partition(":")
    if not colon:
        return name, value
    if kind not in _TYPES:
        raise UsageError(f"--set {text!r}: unknown type {kind!r}", hint=f"types: {', '.join(sorted(_TYPES))}")
    return name, (_TYPES[kind], value)


def _lines(report: CacheReport, *, listing: bool) -> Iterator[str]:
    if listing:
        for entry in report.entries:
            yield printable(f"{entry.name}:{entry.type}={entry.value}")
        for name in report.unknown:
            say_aside(f"{report.file} has no entry called {name}")
        return
    if report.changes:
        yield from (printable(line) for line in render_diff(report.changes).splitlines())
        count = f"{len(report.changes)} changed"
        if report.written:
            yield printable(f"{count}, written to {report.file}; backup: {report.backup}")
        else:
            yield printable(f"{count}, not written to {report.file}")
    elif not report.expected:
        yield "nothing to change: the cache already has these values"
    if report.expected and not report.mismatches:
        yield f"{report.expected} as expected" + (
            "" if report.logged else ", checked only against the cache because --log was not given"
        )
    for mismatch in report.mismatches:
        yield printable(str(mismatch))
        yield from (printable(f"  {line}") for line in mismatch.why)
        yield printable(f"  {mismatch.hint}")
