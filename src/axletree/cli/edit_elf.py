"""``axletree edit-elf``: other names in a library or a program."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from axletree.app.edit_elf import RenamedElf, rename_in_elf
from axletree.binary.elf.edit import ElfChange
from axletree.cli.reporting import ReportCommand, Reported
from axletree.core.errors import Problem, UsageError
from axletree.view.tables import printable

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from axletree.app.edit_elf import ElfNames


@click.command(cls=ReportCommand, report=RenamedElf)
@click.argument("file", type=click.Path(path_type=Path, exists=True, dir_okay=False))
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
@click.option("--soname", metavar="NAME", help="SONAME.")
@click.option(
    "--replace-needed", multiple=True, metavar="OLD=NEW", help="Replace the needed library OLD with NEW. Repeatable."
)
@click.option("--add-needed", multiple=True, metavar="NAME", help="Add NAME to the needed libraries. Repeatable.")
@click.option(
    "--remove-needed", multiple=True, metavar="NAME", help="Remove NAME from the needed libraries. Repeatable."
)
def command(
    file: Path,
    rpath: str | None,
    runpath: str | None,
    soname: str | None,
    replace_needed: tuple[str, ...],
    add_needed: tuple[str, ...],
    remove_needed: tuple[str, ...],
    *,
    no_rpath: bool,
) -> Reported:
    """Change the search path, SONAME and needed libraries of an ELF file.

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
        hint = "specify --rpath, --runpath, --no-rpath, --soname, --replace-needed, --add-needed or --remove-needed"
        yield Problem(message="nothing to change", hint=hint)
    if sum(path is not None for path in paths) > 1:
        yield Problem(message="specify only one of --rpath, --runpath and --no-rpath")
    if "" in paths[:2]:
        yield Problem(message="the search path is empty", hint="use --no-rpath to remove it")
    if len(change.replace_needed) < len(set(pairs)):
        yield Problem(message="--replace-needed gives two new names to the same library")
    others = {*change.replace_needed, *change.replace_needed.values(), *change.add_needed}
    for name in sorted(others & {*change.remove_needed}):
        yield Problem(message=f"{name} cannot be both removed and added or replaced")


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
    for now, names in (("no longer", _left(before.needed, after.needed)), ("now", _left(after.needed, before.needed))):
        if names:
            yield printable(f"  needs {now}: {', '.join(names)}")
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
