"""``axletree cmake-cache``: what a CMake tree is configured with, changed without configuring it from nothing."""

from __future__ import annotations

import fnmatch
import json
from pathlib import Path
from typing import TYPE_CHECKING, get_args

import click
import msgspec

from axletree.app.cmake_cache import work_on_cache
from axletree.buildsystem.cmake.cache import EntryType, render_diff
from axletree.core.errors import UsageError
from axletree.view.tables import printable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from axletree.app.cmake_cache import CacheReport
    from axletree.buildsystem.cmake.cache import Entry

_TYPES: dict[str, EntryType] = {kind: kind for kind in get_args(EntryType)}


@click.command()
@click.argument("place", type=click.Path(path_type=Path, exists=True), metavar="CMAKECACHE|FOLDER")
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option(
    "--set", "assignments", multiple=True, metavar="NAME[:TYPE]=VALUE", help="Change or add an entry. Repeatable."
)
@click.option("--unset", multiple=True, metavar="NAME", help="Remove an entry. Repeatable.")
@click.option(
    "--python",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="Switch the build folder to another interpreter.",
)
@click.option(
    "--expect", multiple=True, metavar="NAME=VALUE", help="Require this value; `*` for any enabled value. Repeatable."
)
@click.option(
    "--log", type=click.Path(path_type=Path, exists=True, dir_okay=False), help="Output of the last configure run."
)
@click.option("--dry-run", is_flag=True, help="Show the changes without writing them.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
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
    as_json: bool,
) -> int:
    """Show, edit and check the cache of a configured CMake tree.

    Without options, lists the entries whose names match the patterns NAME, or all but CMake's internal ones. The next
    build configures again by itself and compiles what the edit affects. The exit code is 1 if an expected value
    differs, or if no entry has a given name.
    """
    changes: dict[str, str | tuple[EntryType, str] | None] = {}
    for text in assignments:
        name, value = _assignment(text)
        changes[name] = value
    changes |= dict.fromkeys(unset)
    expected = dict(_pair(text, "--expect") for text in expect)
    report = work_on_cache(place, changes, python=python, expected=expected, log=log, dry_run=dry_run)
    listing = not (changes or expected or python)
    unknown = [name for name in names if listing and not any(_shown(report, (name,)))]
    text = _json(report, names) if as_json else "\n".join(_lines(report, names, listing=listing))
    # Names and values are bytes of any encoding; what is not UTF-8 is shown as a backslash and its number.
    if text:
        click.echo(text.encode("utf-8", "backslashreplace").decode())
    for name in unknown:
        click.echo(printable(f"{report.file} has no entry called {name}"), err=True)
    return 1 if report.mismatches or unknown else 0


def _pair(text: str, option: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not (name and equals):
        raise UsageError(f"{option} {text!r} is not an assignment", hint="write NAME=VALUE")
    return name, value


def _assignment(text: str) -> tuple[str, str | tuple[EntryType, str]]:
    name, value = _pair(text, "--set")
    name, colon, kind = name.partition(":")
    if not colon:
        return name, value
    if kind not in _TYPES:
        raise UsageError(f"--set {text!r}: unknown type {kind!r}", hint=f"types: {', '.join(sorted(_TYPES))}")
    return name, (_TYPES[kind], value)


def _shown(report: CacheReport, names: tuple[str, ...]) -> Iterator[Entry]:
    for entry in sorted(report.cache.entries.values(), key=lambda each: each.name):
        if any(fnmatch.fnmatchcase(entry.name, name) for name in names) or (
            not names and entry.type not in {"INTERNAL", "STATIC"}
        ):
            yield entry


def _lines(report: CacheReport, names: tuple[str, ...], *, listing: bool) -> Iterator[str]:
    if listing:
        for entry in _shown(report, names):
            yield printable(f"{entry.name}:{entry.type}={entry.value}")
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
            "" if report.logged else ", checked only with the cache: no --log was given"
        )
    for mismatch in report.mismatches:
        yield printable(str(mismatch))
        yield from (printable(f"  {line}") for line in mismatch.why)
        yield printable(f"  {mismatch.hint}")


def _json(report: CacheReport, names: tuple[str, ...]) -> str:
    entries = [
        {"name": each.name, "type": each.type, "value": each.value, "line": each.line, "help": each.help}
        for each in _shown(report, names)
    ]
    content = {
        "schema": 1,
        "file": report.file,
        "written": report.written,
        "backup": report.backup,
        "changes": report.changes,
        "mismatches": report.mismatches,
        "entries": entries,
    }
    return json.dumps(msgspec.to_builtins(content), indent=1)
