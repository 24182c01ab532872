"""Making the devel tree, and bringing it in line with what is installed."""

from __future__ import annotations

import os
import shutil
import stat
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import _devel, _devel_payload, _journal, _record
from ._devel_links import MODES, can_symlink, choose_mode
from ._devel_lock import locked
from ._devel_make import Tree, same_content
from ._devel_places import (
    Place,
    cache_places,
    finish_removals,
    is_writable,
    link_folders,
    payload_digest,
    remove_cache,
)
from ._devel_plan import payload_facts, plan_tree, stamps
from ._sdk import SdkError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ._devel_plan import Plan
    from ._journal import Mark, Members
    from ._sdk import PackageFile, Sdk, SdkPackage

NEW = "_devel_new"
"""A file that is about to replace one of those that the expansion keeps, or RECORD."""


def update(sdk: Sdk, *, asked: str, quiet: bool) -> Path:
    """Make the tree, or bring it in line; see :func:`_devel.expand`."""
    return _run(sdk, asked=asked, quiet=quiet, thorough=False)[0]


def update_thoroughly(sdk: Sdk) -> tuple[str, ...]:
    """The same, with the content of each file compared; see :func:`_devel.repair`."""
    return _run(sdk, asked=sdk.setting("LINK_MODE"), quiet=True, thorough=True)[1]


def differences(sdk: Sdk, place: Place, mark: Mark) -> list[str]:
    """Paths at which a tree is not what the installed packages ask for; of one that can't be judged all of it."""
    members = _journal.read_members(place.root)
    if members is None:
        return [_journal.MEMBERS]
    try:
        plan = plan_tree(sdk, members.payload, folders_of(sdk, place), symlinks=mark.symlinks)
    except SdkError:
        return [""]
    tree = Tree(place.root, plan.wanted, mark.mode, work=place.work, site=place.site, before=members.made)
    return [*tree.differences(), *sorted(members.made.keys() - plan.wanted.keys())]


def folders_of(sdk: Sdk, place: Place) -> dict[str, Path]:
    """Where a tree finds the platform folders: of one in the cache by the links beside it."""
    return {
        package.folder: place.site / package.folder if place.cache else folder
        for package, folder in sdk.installed().items()
    }


def _run(sdk: Sdk, *, asked: str, quiet: bool, thorough: bool) -> tuple[Path, tuple[str, ...]]:
    if asked and asked not in MODES:
        raise ValueError(f"link mode {asked!r} is not one of {', '.join(MODES)}")
    found = _devel.find_tree(sdk)
    place = found[0] if found else _devel.place_for_new(sdk)
    if not place.cache and not is_writable(sdk, place):
        if thorough:
            raise SdkError(f"{place.root} is read-only for this user: run the repair as the user who installed it")
        if not quiet and asked:
            sys.stderr.write(f"{sdk.file.command}: {place.root} is read-only for this user: left unchanged\n")
        return place.root, ()  # it is right, though its mark or link mode can't be changed
    module = sdk.devel_module()
    try:
        if place.cache:
            place.site.mkdir(parents=True, exist_ok=True, mode=0o700)
        lock = place.site if place.cache or module is None else module
        note = "" if quiet else f"{sdk.file.command}: waiting for another process that is expanding the devel package"
        with locked(lock, place.work / "lock", note):
            if not thorough and (other := _devel.done_already(sdk, asked)) is not None:
                return other.root, ()  # by whom this one waited for
            done = _Update(sdk, place, asked, quiet=quiet, thorough=thorough).run()
    except OSError as error:
        where = error.filename2 or error.filename or place.root
        raise SdkError(f"the devel tree cannot be created: {where}: {error.strerror or error}") from error
    return place.root, done


@dataclass(frozen=True)
class _Source:
    """The payload, as it is installed now."""

    package: SdkPackage
    about: PackageFile
    path: Path
    size: int
    mtime: int
    digest: str


class _Update:
    """One run, under the lock."""

    def __init__(self, sdk: Sdk, place: Place, asked: str, *, quiet: bool, thorough: bool) -> None:
        self.sdk = sdk
        self.place = place
        self.asked = asked
        self.quiet = quiet
        self.thorough = thorough
        self.symlinks = True
        self.done: list[str] = []
        package, module = sdk.devel_package(), sdk.devel_module()
        if package is None or module is None:
            raise SdkError("the devel package was removed by another process")
        about = sdk.shipped(package)
        path, size, mtime = payload_facts(module)
        digest = payload_digest(module.parent, package.dist, about.version, path)
        self.source = _Source(package, about, path, size, mtime, digest)
        self.module_site = module.parent

    def run(self) -> tuple[str, ...]:
        record = self.record()
        if record is not None:
            _record.append_row(record, self.place.work.name)
        self.place.work.mkdir(exist_ok=True)
        if self.has_tree():
            (self.place.root / NEW).unlink(missing_ok=True)
        try:
            self.clear_work()
            self.bring_in_line()
        finally:
            self.finish()
        return tuple(self.done)

    def bring_in_line(self) -> None:
        place = self.place
        self.symlinks = can_symlink(place.work)
        if place.cache:
            link_folders(place, {package.folder: folder for package, folder in self.sdk.installed().items()})
        self.tell_record(add=[place.root.name, place.work.name])
        mark, members = _journal.read_mark(place.root), _journal.read_members(place.root)
        if mark is not None and members is not None and self.is_same_payload(mark):
            self.change(mark, members)
        else:
            self.make()

    def finish(self) -> None:
        """Leave nothing but the tree, if there is one."""
        place = self.place
        self.clear_work()
        if self.has_tree():
            shutil.rmtree(place.work)
            self.tell_record(remove=[place.work.name])
            mark = _journal.read_mark(place.root)
            if mark is not None:
                _journal.write_mark(place.root, replace(mark, settled=True), place.root / NEW)
        else:
            self.tell_record(remove=[place.root.name])
            shutil.rmtree(place.work)
            record = self.record()
            if record is not None:  # by now no folder of ours is there in which another could be made
                _record.drop_last_row(record, place.work.name)
        if place.cache:
            self.remove_older()

    def has_tree(self) -> bool:
        """Whether there is a tree of this SDK, not something that others put in its place."""
        return not self.place.root.is_symlink() and _journal.read_mark(self.place.root) is not None

    def record(self) -> Path | None:
        """RECORD of the devel package, where a tree is to have a row in it."""
        if self.place.cache:
            return None
        return _record.find_record(self.module_site, self.source.package.dist, self.source.about.version)

    def tell_record(self, *, add: Sequence[str] = (), remove: Sequence[str] = ()) -> None:
        record, root = self.record(), self.place.root
        if self.place.cache:
            return
        if record is not None:
            beside = (root if self.has_tree() else self.place.work) / NEW
            _record.set_rows(record, add=add, remove=remove, beside=beside)
        elif add and not self.quiet:
            self.say(f"{self.source.package.dist} has no RECORD: run {self.sdk.file.command} deinit to remove the tree")

    def is_same_payload(self, mark: Mark) -> bool:
        source = self.source
        if mark.version != source.about.version:
            return False
        return (mark.size, mark.mtime) == (source.size, source.mtime) or (
            bool(mark.digest) and mark.digest == source.digest
        )

    def plan(self, members: tuple[_devel_payload.Member, ...]) -> Plan:
        plan = plan_tree(self.sdk, members, folders_of(self.sdk, self.place), symlinks=self.symlinks)
        if not self.quiet:
            for note in plan.notes:
                self.say(note)
        return plan

    def mode(self, plan: Plan, asked: str) -> str:
        samples = {
            each.source.rpartition(os.sep)[0]: Path(each.source)
            for each in plan.wanted.values()
            if each.kind == "mirror"
        }
        return choose_mode(asked, self.place.work, samples.values())

    def mark(self, mode: str, asked: str) -> Mark:
        source = self.source
        return _journal.Mark(
            sdk=self.sdk.file.sdk,
            version=source.about.version,
            site=os.path.realpath(self.module_site),
            size=source.size,
            mtime=source.mtime,
            digest=source.digest,
            mode=mode,
            asked=asked,
            symlinks=self.symlinks,
            packages=stamps(self.sdk),
        )

    def make(self) -> None:
        """Make a new tree, and put what is at its place out of the way."""
        place, source = self.place, self.source
        packages = [each for each in self.sdk.file.packages if each.kind != "devel"]
        members = _devel_payload.read_members(source.path, place.root.name, [each.folder for each in packages])
        plan = self.plan(members)
        asked = self.asked or "auto"
        mode = self.mode(plan, asked)
        mark = self.mark(mode, asked)
        new = place.work / "new"
        new.mkdir()
        tree = Tree(new, plan.wanted, mode, work=place.work, site=place.site, name=place.root.name)
        tree.check_space(plan.wanted)
        tree.fill(plan.wanted, source.path)
        _journal.write_members(new, _journal.Members(members, tree.made()), place.work / NEW)
        _journal.write_mark(new, mark, place.work / NEW)
        self.put_away()
        new.rename(place.root)
        self.done.append(f"created {place.root} ({len(plan.wanted)} members, {mode})")

    def change(self, mark: Mark, members: Members) -> None:
        """Bring the tree that is there in line."""
        place = self.place
        plan = self.plan(members.payload)
        asked = self.asked or mark.asked
        mode = self.mode(plan, asked)
        new = self.mark(mode, asked)
        tree = Tree(place.root, plan.wanted, mode, work=place.work, site=place.site, before=members.made)
        wrong = tree.differences()
        if self.thorough:
            wrong += tree.other_content(self.source.path)
        wrong = tree.differences_with_names(wrong)
        gone = sorted(members.made.keys() - plan.wanted.keys())
        if wrong or gone:
            tree.check_space(wrong)
            both = {
                **{path: tree.expected(path) for path in wrong if plan.wanted[path].kind != "folder"},
                **members.made,
            }
            _journal.write_members(place.root, _journal.Members(members.payload, both), place.work / NEW)
            tree.fill(wrong, self.source.path, aside=lambda path: self.put_aside(tree, path, members))
            for path in gone:
                self.remove(tree, path, members)
        made = tree.made()
        if made != members.made:
            _journal.write_members(place.root, _journal.Members(members.payload, made), place.work / NEW)
        _journal.write_mark(place.root, new, place.work / NEW)
        self.done += [f"repaired: {path}" for path in wrong] + [f"removed: {path}" for path in gone]

    def put_aside(self, tree: Tree, path: str, members: Members) -> None:
        """Get what is at a path out of the way; what somebody else made is kept."""
        place = tree.at(path)
        wanted = tree.wanted[path]
        facts = os.lstat(place)
        if stat.S_ISDIR(facts.st_mode):
            try:
                os.rmdir(place)
            except OSError:
                self.keep(Path(place), path)
        elif is_as_made(place, members.made.get(path)) or (wanted.source and same_content(place, wanted.source)):
            if wanted.kind == "folder":
                os.unlink(place)
        else:
            self.keep(Path(place), path)

    def remove(self, tree: Tree, path: str, members: Members) -> None:
        """Remove what was made and is not wanted any more, and folders that this empties."""
        if is_as_made(tree.at(path), members.made[path]):
            os.unlink(tree.at(path))
        folder = os.path.dirname(path)
        while folder and folder not in tree.wanted:
            try:
                os.rmdir(tree.at(folder))
            except OSError:
                return
            folder = os.path.dirname(folder)

    def put_away(self) -> None:
        """Get what is at the tree's place out of the way: an older tree, or something that is no tree."""
        root = self.place.root
        if not os.path.lexists(root):
            return
        if self.has_tree() or (root.is_dir() and not root.is_symlink() and not foreign_files(root)):
            root.rename(self.place.work / "old")
        else:
            self.keep(root, "")

    def clear_work(self) -> None:
        """Throw away what a run left; of an older tree files that somebody else made are kept."""
        work = self.place.work
        old = work / "old"
        if old.is_dir():
            for path in foreign_files(old):
                self.keep(old / path, path)
        for each in work.iterdir():
            if each.is_dir() and not each.is_symlink():
                shutil.rmtree(each)
            elif each.name != "lock":
                each.unlink()

    def keep(self, what: Path, path: str) -> None:
        """Move something to a folder beside the tree, and say so."""
        root = self.place.root
        saved = root.with_name(f"{root.name}.saved")
        number = 1
        while os.path.lexists(saved / path if path else saved):
            number += 1
            saved = root.with_name(f"{root.name}.saved-{number}")
        target = saved / path if path else saved
        target.parent.mkdir(parents=True, exist_ok=True)
        what.rename(target)
        self.say(f"{root / path if path else root} is not part of the SDK: moved to {target}")
        self.done.append(f"moved to {target}: {path or root}")

    def remove_older(self) -> None:
        """Remove trees in the cache that were made for other packages in the same site directory."""
        finish_removals(self.sdk)
        for each in cache_places(self.sdk, self.place.root.name):
            mark = _journal.read_mark(each.root)
            if each.site != self.place.site and mark and mark.site == os.path.realpath(self.module_site):
                remove_cache(each)

    def say(self, text: str) -> None:
        sys.stderr.write(f"{self.sdk.file.command}: {text}\n")


def is_as_made(place: str, made: list[Any] | str | None) -> bool:
    """Whether there is what was made, as far as size, time and text tell."""
    try:
        facts = os.lstat(place)
    except OSError:
        return False
    if isinstance(made, str):
        return stat.S_ISLNK(facts.st_mode) and os.readlink(place) == made
    return made is not None and stat.S_ISREG(facts.st_mode) and [facts.st_size, int(facts.st_mtime)] == made[:2]


def foreign_files(root: Path) -> list[str]:
    """Files of a tree that were not made by its expansion, but for Python's caches."""
    members = _journal.read_members(root)
    known = set(members.made) if members else set()
    found: list[str] = []
    for place, folders, files in os.walk(root):
        folders[:] = [name for name in folders if name != "__pycache__"]
        below = os.path.relpath(place, root).replace(os.sep, "/")
        links = [name for name in folders if os.path.islink(os.path.join(place, name))]
        for name in (*files, *links):
            path = name if below == "." else f"{below}/{name}"
            if path not in known and path not in _devel_payload.OWN and not name.endswith((".pyc", ".pyo")):
                found.append(path)
    return sorted(found)
