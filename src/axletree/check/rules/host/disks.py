"""Rules about disks: room, and whether builds can work there."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

import msgspec

from axletree.check.engine import Found, Rule, fires, silent
from axletree.check.host.part import UNLIMITED
from axletree.check.rules.host.sample import FOR_CUDA, GIB, HEALTHY, on
from axletree.core.units import format_bytes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from axletree.check.host.examined import Examined
    from axletree.check.host.system import Disk

_ROOM = 5 * GIB
_FEW_INODES = 100_000
_CALLED = {
    "store": "the store",
    "tmp": "temporary files",
    "cwd": "the working folder",
    "home": "the home folder",
}
"""What a message calls a use of a disk."""


def _full(facts: Examined) -> Iterator[Found]:
    for disk in facts.host.disks or ():
        need = facts.wish.disk if {"store"} & set(disk.uses) else None
        if need is not None and disk.free is not None and disk.free < need:
            message = (
                f"only {format_bytes(disk.free)} is free in {disk.uses['store']}, but the build needs "
                f"{format_bytes(need)}"
            )
            yield Found(disk.uses["store"], message, fix=_room(disk))


def _tight(facts: Examined) -> Iterator[Found]:
    for disk in facts.host.disks or ():
        enough = facts.wish.disk is not None and "store" in disk.uses
        if not enough and disk.free is not None and disk.free < _ROOM and not disk.read_only:
            yield Found(_folder(disk), f"only {format_bytes(disk.free)} is free for {_uses(disk)}", fix=_room(disk))
        elif (
            disk.inodes_free is not None and disk.inodes not in (None, 0, UNLIMITED) and disk.inodes_free < _FEW_INODES
        ):
            yield Found(
                _folder(disk),
                f"the disk used for {_uses(disk)} has room for only {disk.inodes_free} more files",
                fix=_room(disk),
            )


def _room(disk: Disk) -> str:
    if "store" in disk.uses:
        return "$ axletree store gc\nor put the store on a different disk: export AXLETREE_STORE=..."
    return "remove unneeded files" if "tmp" not in disk.uses else "use a different folder: export TMPDIR=..."


def _uses(disk: Disk) -> str:
    *others, last = [_CALLED.get(use, use) for use in disk.uses] or ["builds"]
    return f"{', '.join(others)} and {last}" if others else last


def _folder(disk: Disk) -> str:
    return next(iter(disk.uses.values()), disk.mount or "disk")


def _used_for(facts: Examined, *names: str) -> Iterator[tuple[Disk, str, str]]:
    """(disk, folder, use) of each disk that is used for something of that, the first of it."""
    for disk in facts.host.disks or ():
        use = next((name for name in names if name in disk.uses), None)
        if use is not None:
            yield disk, disk.uses[use], use


def _not_writable(facts: Examined) -> Iterator[Found]:
    for disk, folder, use in _used_for(facts, "store", "tmp"):
        if disk.read_only or disk.writable is False:
            how = "is mounted read-only" if disk.read_only else "is not writable by this user"
            yield Found(folder, f"{folder} ({_CALLED[use]}) {how}")


def _with_exec(disk: Disk, folder: str, use: str) -> str:
    variable = "TMPDIR" if use == "tmp" else "AXLETREE_STORE"
    mount = shlex.quote(disk.mount or folder)
    return f"use a different folder: export {variable}=...\nor, as root:\n$ mount -o remount,exec {mount}"


def _not_executable(facts: Examined) -> Iterator[Found]:
    for disk, folder, use in _used_for(facts, "store", "tmp"):
        if disk.executable is False and disk.writable is not False and not disk.read_only:
            message = f"programs in {folder} ({_CALLED[use]}) cannot be started because the disk is mounted noexec"
            yield Found(folder, message, fix=_with_exec(disk, folder, use))


def _network(facts: Examined) -> Iterator[Found]:
    for disk, folder, _ in _used_for(facts, "store"):
        if disk.network:
            message = f"the store is on a network disk ({disk.filesystem}), where locks and many small files are slow"
            yield Found(folder, message)


def _case(facts: Examined) -> Iterator[Found]:
    for disk, folder, _ in _used_for(facts, "store", "tmp", "cwd"):
        if disk.case_sensitive is False or disk.symlinks is False:
            case = disk.case_sensitive is False
            lacks = "does not distinguish a.h from A.h" if case else "does not support symbolic links"
            yield Found(folder, f"the disk that contains {folder} ({disk.filesystem}) {lacks}")


_DISK = (HEALTHY.disks or ())[0]


def _disk(**fields: object) -> dict[str, tuple[Disk, ...]]:
    return {"disks": (msgspec.structs.replace(_DISK, **fields),)}


def _on_disk(**fields: object) -> Examined:
    host = msgspec.structs.replace(HEALTHY, **_disk(**fields))
    return on(host)


_LARGE = msgspec.structs.replace(FOR_CUDA, disk=100 * GIB)

DISK_RULES: tuple[Rule[Examined], ...] = (
    Rule(
        id="host/disk-full",
        severity="error",
        title="The disk has too little free space for the build",
        references=("recipe key `resources.disk`",),
        why="The build fails late with `No space left on device`.",
        fix="free some disk space",
        check=_full,
        cases=lambda: (
            fires("20 GB free, 100 GB needed", on(msgspec.structs.replace(HEALTHY, **_disk(free=20 * GIB)), _LARGE)),
            silent("300 GB free, 100 GB needed", on(wish=_LARGE)),
        ),
    ),
    Rule(
        id="host/disk-tight",
        severity="warning",
        title="Little free disk space",
        references=("statvfs(3)",),
        why="Building a large project takes tens of gigabytes.",
        fix="free some disk space",
        check=_tight,
        cases=lambda: (
            fires("2 GB", _on_disk(free=2 * GIB)),
            fires("too few free inodes", _on_disk(inodes_free=100)),
            silent("300 GB", on()),
        ),
    ),
    Rule(
        id="host/disk-read-only",
        severity="error",
        title="A folder that builds write to is not writable",
        references=("mount(8), ro",),
        why="Builds cannot store results or create temporary files.",
        fix="use different folders: export AXLETREE_STORE=... TMPDIR=...",
        check=_not_writable,
        cases=lambda: (
            fires("a read-only root file system", _on_disk(read_only=True)),
            silent("writable", on()),
        ),
    ),
    Rule(
        id="host/disk-noexec",
        severity="error",
        title="Programs cannot be started in a folder that builds use",
        references=("mount(8), noexec",),
        why="Configuration compiles and runs small programs, and pip runs files that it unpacked; the system "
        "refuses to start any of them.",
        fix=(
            "use a different folder: export TMPDIR=... AXLETREE_STORE=...\nor, as root:\n"
            "$ mount -o remount,exec MOUNTPOINT"
        ),
        check=_not_executable,
        cases=lambda: (
            fires("a temporary folder mounted noexec", _on_disk(noexec=True, executable=False)),
            silent("a temporary folder that allows programs", on()),
        ),
    ),
    Rule(
        id="host/disk-network",
        severity="info",
        title="The store is on a network disk",
        references=('nfs(5), "Using file locks with NFS"',),
        why="The store works if the disk supports file locks, but it is slow.",
        fix="put the store on a local disk: export AXLETREE_STORE=...",
        check=_network,
        cases=lambda: (
            fires("NFS", _on_disk(network=True, filesystem="nfs4")),
            silent("ext4", on()),
        ),
    ),
    Rule(
        id="host/disk-kind",
        severity="warning",
        title="The file system lacks features that Linux projects expect",
        references=('Microsoft, "Working across file systems" in WSL',),
        why="Files whose names differ only in case overwrite each other, and libraries lose their symbolic links. "
        "Windows drives in WSL behave this way.",
        fix="work in a folder on the Linux file system, such as your home folder",
        check=_case,
        cases=lambda: (
            fires("a Windows drive in WSL", _on_disk(filesystem="9p", case_sensitive=False)),
            silent("ext4", on()),
        ),
    ),
)
"""Rules about :class:`~axletree.check.host.examined.Examined`: disks."""
