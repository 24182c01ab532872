"""Rules about disks: room, and whether builds can work there."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from axletree.check.engine import Case, Found, Rule
from axletree.check.host.part import UNLIMITED
from axletree.check.rules.host.sample import FOR_CUDA, GIB, HEALTHY, on
from axletree.core.units import format_bytes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from axletree.check.host.examined import Examined
    from axletree.check.host.system import Disk

_ROOM = 5 * GIB
_FEW_INODES = 100_000


def _full(facts: Examined) -> Iterator[Found]:
    for disk in facts.host.disks or ():
        need = facts.wish.disk if {"store"} & set(disk.uses) else None
        if need is not None and disk.free is not None and disk.free < need:
            message = (
                f"{format_bytes(disk.free)} are free in {disk.uses['store']}, and the build takes {format_bytes(need)}"
            )
            yield Found(where=disk.uses["store"], message=message, fix=_room(disk))


def _tight(facts: Examined) -> Iterator[Found]:
    for disk in facts.host.disks or ():
        enough = facts.wish.disk is not None and "store" in disk.uses
        if not enough and disk.free is not None and disk.free < _ROOM and not disk.read_only:
            yield Found(
                where=_folder(disk), message=f"{format_bytes(disk.free)} are free for {_uses(disk)}", fix=_room(disk)
            )
        elif (
            disk.inodes_free is not None and disk.inodes not in (None, 0, UNLIMITED) and disk.inodes_free < _FEW_INODES
        ):
            yield Found(
                where=_folder(disk),
                message=f"{disk.inodes_free} more files fit on the disk of {_uses(disk)}",
                fix=_room(disk),
            )


def _room(disk: Disk) -> str:
    if "store" in disk.uses:
        return "$ axletree store gc\nor put the store on another disk: export AXLETREE_STORE=..."
    return "remove what is not needed" if "tmp" not in disk.uses else "use another folder: export TMPDIR=..."


def _uses(disk: Disk) -> str:
    return ", ".join(disk.uses)


def _folder(disk: Disk) -> str:
    return next(iter(disk.uses.values()), disk.mount or "disk")


def _not_writable(facts: Examined) -> Iterator[Found]:
    for disk in facts.host.disks or ():
        wanted = [name for name in ("store", "tmp") if name in disk.uses]
        if wanted and (disk.read_only or disk.writable is False):
            how = "is mounted read-only" if disk.read_only else "can't be written by this user"
            yield Found(where=disk.uses[wanted[0]], message=f"{disk.uses[wanted[0]]} ({wanted[0]}) {how}")


def _not_executable(facts: Examined) -> Iterator[Found]:
    for disk in facts.host.disks or ():
        wanted = [name for name in ("store", "tmp") if name in disk.uses]
        if wanted and disk.executable is False and disk.writable is not False and not disk.read_only:
            yield Found(
                where=disk.uses[wanted[0]],
                message=f"programs in {disk.uses[wanted[0]]} ({wanted[0]}) can't be started: the disk is "
                "mounted noexec",
            )


def _network(facts: Examined) -> Iterator[Found]:
    for disk in facts.host.disks or ():
        if disk.network and "store" in disk.uses:
            yield Found(
                where=disk.uses["store"],
                message=f"the store is on a network disk ({disk.filesystem}): locks and many small files are slow",
            )


def _case(facts: Examined) -> Iterator[Found]:
    for disk in facts.host.disks or ():
        wanted = [name for name in ("store", "tmp", "cwd") if name in disk.uses]
        if wanted and (disk.case_sensitive is False or disk.symlinks is False):
            lacks = "does not tell a.h from A.h" if disk.case_sensitive is False else "has no symbolic links"
            yield Found(
                where=disk.uses[wanted[0]], message=f"the disk of {disk.uses[wanted[0]]} ({disk.filesystem}) {lacks}"
            )


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
        title="The disk is too small for the build",
        references=("recipe key `resources.disk`",),
        why="It ends in `No space left on device`, late.",
        fix="make room",
        check=_full,
        cases=lambda: (
            Case(
                title="20 GB for 100",
                facts=on(msgspec.structs.replace(HEALTHY, **_disk(free=20 * GIB)), _LARGE),
                fires=True,
            ),
            Case(title="300 GB for 100", facts=on(wish=_LARGE), fires=False),
        ),
    ),
    Rule(
        id="host/disk-tight",
        severity="warning",
        title="Little room on a disk",
        references=("statvfs(3)",),
        why="A build of a large project takes tens of gigabytes.",
        fix="make room",
        check=_tight,
        cases=lambda: (
            Case(title="2 GB", facts=_on_disk(free=2 * GIB), fires=True),
            Case(title="no inodes", facts=_on_disk(inodes_free=100), fires=True),
            Case(title="300 GB", facts=on(), fires=False),
        ),
    ),
    Rule(
        id="host/disk-read-only",
        severity="error",
        title="A folder that builds write to can't be written",
        references=("mount(8), ro",),
        why="Nothing can be kept, or no temporary file made.",
        fix="name another folder: export AXLETREE_STORE=... TMPDIR=...",
        check=_not_writable,
        cases=lambda: (
            Case(title="a read-only root", facts=_on_disk(read_only=True), fires=True),
            Case(title="writable", facts=on(), fires=False),
        ),
    ),
    Rule(
        id="host/disk-noexec",
        severity="error",
        title="Programs can't be started where builds work",
        references=("mount(8), noexec",),
        why="Configuring compiles small programs and starts them, pip runs what it unpacked: all of it is refused.",
        fix="name another folder: export TMPDIR=... AXLETREE_STORE=...\nor, as root,\n$ mount -o remount,exec /tmp",
        check=_not_executable,
        cases=lambda: (
            Case(title="a temporary folder with noexec", facts=_on_disk(noexec=True, executable=False), fires=True),
            Case(title="programs start", facts=on(), fires=False),
        ),
    ),
    Rule(
        id="host/disk-network",
        severity="info",
        title="The store is on a network disk",
        references=('nfs(5), "Using file locks with NFS"',),
        why="It works where the disk has working locks, and is slow.",
        fix="put it on a local disk: export AXLETREE_STORE=...",
        check=_network,
        cases=lambda: (
            Case(title="NFS", facts=_on_disk(network=True, filesystem="nfs4"), fires=True),
            Case(title="ext4", facts=on(), fires=False),
        ),
    ),
    Rule(
        id="host/disk-kind",
        severity="warning",
        title="The file system is not one that Linux projects expect",
        references=('Microsoft, "Working across file systems" in WSL',),
        why=(
            "Files whose names differ only in case overwrite each other, and libraries lose their version links. "
            "Windows drives in WSL behave this way."
        ),
        fix="work in the home folder of Linux",
        check=_case,
        cases=lambda: (
            Case(title="a drive of Windows in WSL", facts=_on_disk(filesystem="9p", case_sensitive=False), fires=True),
            Case(title="ext4", facts=on(), fires=False),
        ),
    ),
)
"""Rules about :class:`~axletree.check.host.examined.Examined`: disks."""
