"""``axletree edit-elf``: other names in a library or a program."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from axletree.app.edit_elf import RenamedElf, rename_in_elf
from axletree.binary.elf.edit import ElfChange
from axletree.cli.options import FILE
from axletree.cli.reporting import ReportCommand, Reported
from axletree.core.errors import Problem, UsageError
from axletree.view.tables import printable

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from axletree.app.edit_elf import ElfNames


@click.command(cls=ReportCommand, report=RenamedElf)
@click.argument("file", type=FILE)
@click.option(
    "--rpath",
    metavar="ENTRY:...",
    help="Set the search path as DT_RPATH, which applies to the file and to the libraries it loads.",
)
@click.option(
    "--runpath",
    metavar="ENTRY:...",
    help="Set the search path as DT_RUNPATH, which applies only to the file's direct dependencies.",
)
@click.option("--no-rpath", is_flag=True, help="Remove the search path.")
@click.option("--soname", metavar="NAME", help="Set the SONAME, the name by which other files load this library.")
@click.option(
    "--replace-needed", multiple=True, metavar="OLD=NEW", help="Replace the needed library OLD with NEW. Repeatable."
)
@click.option("--add-needed", multiple=True, metavar="NAME", help="Add NAME to the needed libraries. Repeatable.")
@click.option(
    "--remove-needed", multiple=True, metavar="NAME", help="Remove NAME from the needed libraries. Repeatable."
)
@click.option("--interpreter", metavar="PATH", help="Set the loader that starts the program (PT_INTERP).")
def command(
    file: Path,
    rpath: str | None,
    runpath: str | None,
    soname: str | None,
    replace_needed: tuple[str, ...],
    add_needed: tuple[str, ...],
    remove_needed: tuple[str, ...],
    interpreter: str | None,
    *,
    no_rpath: bool,
) -> Reported:
    """Change the search path, SONAME, needed libraries and interpreter of an ELF file.

    Changes the file in place if the new names fit; otherwise, adds a segment. Before writing, checks that the result
    has the requested values and is otherwise unchanged. Prints the changes.
    """
    entries = "" if no_rpath else rpath if rpath is not None else runpath
    change = ElfChange(
        rpath=tuple(entries.split(":") if entries else ()) if entries is not None else None,
        kind="runpath" if runpath is not None else "rpath",
        soname=soname,
        replace_needed=dict(_pair(text) for text in replace_needed),
        add_needed=add_needed,
        remove_needed=remove_needed,
        interpreter=interpreter,
    )
    problems = list(_conflicts(change, (rpath, runpath, "" if no_rpath else None), replace_needed))
    if problems:
        raise UsageError(*problems)
    done = rename_in_elf(file, change)
    return Reported(done, lambda: _lines(done))


def _pair(text: str) -> tuple[str, str]:
    old, equals, new = text.partition("=")
    if not (old and equals and new):
        raise UsageError(f"--replace-needed {text!r} is not a pair of names", hint="write OLD=NEW")
    return old, new


def _conflicts(change: ElfChange, paths: Sequence[str | None], pairs: Sequence[str]) -> Iterator[Problem]:
    """What can't be asked for together."""
    if change == ElfChange():
        options = "--soname, --replace-needed, --add-needed, --remove-needed or --interpreter"
        yield Problem(message="nothing to change", hint=f"specify --rpath, --runpath, --no-rpath, {options}")
    if sum(path is not None for path in paths) > 1:
        yield Problem(message="specify only one of --rpath, --runpath and --no-rpath")
    if "" in paths[:2]:
        yield Problem(message="the search path is empty", hint="use --no-rpath to remove it")
    if len(change.replace_needed) < len(set(pairs)):
        yield Problem(message="--replace-needed gives two new names to the same library")
    others = {*change.replace_needed, *change.replace_needed.values(), *change.add_needed}
    for name in sorted(others & {*change.remove_needed}):
        yield Problem(message=f"{name} cannot be removed and also be added or replaced")


def _lines(done: RenamedElf) -> Iterator[str]:
    yield printable(str(done.file))
    if not done.written:
        yield "  nothing to change: the file already has these values"
        return
    before, after = done.before, done.after
    if _path(before) != _path(after):
        yield printable(f"  search path: {_path(before)} -> {_path(after)}")
    if before.soname != after.soname:
        yield printable(f"  SONAME: {before.soname or 'none'} -> {after.soname}")
    if before.interpreter != after.interpreter:
        yield printable(f"  interpreter: {before.interpreter} -> {after.interpreter}")
    for change, names in (
        ("removed", _left(before.needed, after.needed)),
        ("added", _left(after.needed, before.needed)),
    ):
        if names:
            yield printable(f"  {change} needed libraries: {', '.join(names)}")
    old, new = before.versions_of, after.versions_of
    if old != new:
        yield printable(
            f"  symbol versions required from: {', '.join(_left(old, new))} -> {', '.join(_left(new, old))}"
        )


def _left(names: Iterable[str], others: Iterable[str]) -> tuple[str, ...]:
    """What the others don't have."""
    return tuple(name for name in names if name not in set(others))


def _path(facts: ElfNames) -> str:
    tag = "DT_RUNPATH" if facts.runpath else "DT_RPATH"
    return f"{tag} {':'.join(facts.runpath or facts.rpath)}" if facts.runpath or facts.rpath else "none"
