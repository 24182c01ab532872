"""What there is of a devel tree, and its removal."""

from __future__ import annotations

import os
import shutil
import sys
from contextlib import nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING

from . import _devel, _journal, _record
from ._devel_links import is_overlay
from ._devel_lock import locked
from ._devel_places import Place, cache_places, finish_removals, remove_cache, site_place
from ._devel_update import NEW, differences, foreign_files
from ._sdk import SdkError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from ._journal import Mark
    from ._sdk import Sdk

_SHOWN = 3


@dataclass(frozen=True)
class State:
    """What there is of the devel tree."""

    installed: bool
    """Whether the devel package is."""
    root: Path | None
    """Where a tree lies, whether it counts or not."""
    current: bool
    """Whether it counts: ``devel_root`` gives it."""
    place: str = ""
    """``site``, ``cache``, or empty where there is none."""
    mode: str = ""
    """Its link mode."""
    version: str = ""
    recorded: bool = False
    """Whether uninstalling the devel package removes it."""
    problems: tuple[str, ...] = ()
    """What is wrong, each with what to do."""
    leftovers: tuple[Path, ...] = ()
    """What nobody needs: of runs that were killed, of packages that are gone, files that were moved aside."""
    foreign: tuple[str, ...] = ()
    """Files in the tree that others made; they go with it."""


def find_state(sdk: Sdk) -> State:
    """See :func:`_devel.state`."""
    package = sdk.devel_package()
    if package is None:
        return State(installed=False, root=None, current=False)
    beside = site_place(sdk, package.folder)
    installed = sdk.devel_module() is not None
    found = _devel.find_tree(sdk)
    place = found[0] if found else beside
    command, root = sdk.file.command, place.root
    mark = _journal.read_mark(root)
    there = os.path.lexists(root)
    leftovers = [
        each
        for each in sorted(beside.site.glob(f"{package.folder}.*"))
        if each.name.startswith((f"{package.folder}.tmp", f"{package.folder}.saved"))
    ]
    problems: list[str] = []
    recorded = False
    if there and not place.cache and installed:
        record = _record.find_record(beside.site, package.dist, sdk.shipped(package).version)
        recorded = record is not None and _record.has_rows(record, [root.name])
        if not recorded:
            problems.append(
                f"RECORD of {package.dist} does not list {root}: run {command} repair, or {command} deinit before "
                "you uninstall it"
            )
    if there and not installed:
        leftovers.append(root)
        problems.append(
            f"{root} is left over from {package.dist}, which is not installed: run {command} deinit to remove it"
        )
    elif there and mark is None:
        problems.append(f"{root} is not a devel tree of this SDK: run {command} init to move it aside")
    elif there and mark is not None:
        problems += _faults(sdk, place, mark, counts=found is not None)
    if mark is not None and mark.mode == "hardlink" and is_overlay(beside.site):
        problems.append(
            f"{root} has hard links on overlayfs, which turns them into copies: run {command} init --link-mode symlink"
        )
    return State(
        installed=installed,
        root=root if there else None,
        current=found is not None,
        place=("cache" if place.cache else "site") if there else "",
        mode=mark.mode if mark else "",
        version=mark.version if mark else "",
        recorded=recorded,
        problems=tuple(problems),
        leftovers=tuple(leftovers),
        foreign=tuple(foreign_files(root)) if mark is not None else (),
    )


def remove_all(sdk: Sdk) -> tuple[str, ...]:
    """See :func:`_devel.deinit`."""
    package = sdk.devel_package()
    if package is None:
        return ()
    beside = site_place(sdk, package.folder)
    module = sdk.devel_module()
    done: list[str] = []
    record = _record.find_record(beside.site, package.dist, sdk.shipped(package).version) if module else None
    try:
        names = (beside.root.name, beside.work.name)
        rows = record is not None and any(_record.has_rows(record, [name]) for name in names)
        if os.path.lexists(beside.root) or os.path.lexists(beside.work) or rows:
            with locked(module, beside.work / "lock") if module else nullcontext():
                done += _remove_beside(sdk, beside, record)
        finish_removals(sdk)
        for each in cache_places(sdk, package.folder):
            mark = _journal.read_mark(each.root)
            if mark and mark.site == os.path.realpath(beside.site):
                remove_cache(each)
                done.append(f"removed {each.root}")
    except OSError as error:
        raise SdkError(f"{error.filename or beside.root} cannot be removed: {error.strerror or error}") from error
    return tuple(done)


def _remove_beside(sdk: Sdk, place: Place, record: Path | None) -> list[str]:
    """Remove the tree beside its package: first out of sight, then what is in it, last the rows that cover both."""
    done: list[str] = []
    root, work = place.root, place.work
    names, beside = (root.name, work.name), work / NEW
    if os.path.lexists(root):
        if root.is_symlink() or (_journal.read_mark(root) is None and any(root.iterdir())):
            raise SdkError(f"{root} is not a devel tree of this SDK: remove it manually")
        others = foreign_files(root)
        if others:
            shown = ", ".join(others[:_SHOWN]) + (f" and {len(others) - _SHOWN} more" if len(others) > _SHOWN else "")
            sys.stderr.write(f"{sdk.file.command}: also removing files that do not belong to the SDK: {shown}\n")
    work.mkdir(exist_ok=True)
    if record is not None:
        _record.set_rows(record, add=names, beside=beside)
    if os.path.lexists(root):
        root.rename(work / f"gone-{os.urandom(4).hex()}")
        done.append(f"removed {root}")
    for each in work.iterdir():
        if each.is_dir():
            shutil.rmtree(each)
    if record is not None:
        _record.set_rows(record, remove=names, beside=beside)
    shutil.rmtree(work)
    return done


def _faults(sdk: Sdk, place: Place, mark: Mark, *, counts: bool) -> Iterator[str]:
    """What is wrong with a tree, whether it counts or not."""
    package = sdk.devel_package()
    version = sdk.shipped(package).version if package else ""
    command = sdk.file.command
    if mark.version != version:
        yield f"{place.root} has version {mark.version}, but {version} is installed: run {command} init"
        return
    wrong = differences(sdk, place, mark)
    if wrong:
        shown = ", ".join(wrong[:_SHOWN]) + (f" and {len(wrong) - _SHOWN} more" if len(wrong) > _SHOWN else "")
        cure = "repair" if counts else "init"
        yield f"{place.root} differs from the installed packages at {shown}: run {command} {cure}"
    elif not counts:
        yield f"{place.root} was created from a different payload: run {command} init"
