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
                f"only {format_bytes(disk.free)} is free in {disk.uses['store']}, but the build needs "
                f"{format_bytes(need)}"
            )
            yield Found(where=disk.uses["store"], message=message, fix=_room(disk))


def _tight(facts: Examined) -> Iterator[Found]:
    for disk in facts.host.disks or ():
        enough = facts.wish.disk is not None and "store" in disk.uses
        if not enough and disk.free is not None and disk.free < _ROOM and not disk.read_only:
            yield Found(
                where=_folder(disk),
                message=f"only {format_bytes(disk.free)} is free for {_uses(disk)}",
                fix=_room(disk),
            )
        elif (
            disk.inodes_free is not None and disk.inodes not in (None, 0, UNLIMITED) and disk.inodes_free < _FEW_INODES
        ):
            yield Found(
                where=_folder(disk),
                message=f"the disk used for {_uses(disk)} has room for only {disk.inodes_free} more files",
                fix=_room(disk),
            )


def _room(disk: Disk) -> str:
    if "store" in disk.uses:
        return "$ axletree store gc\nor put the store on a different disk: export AXLETREE_STORE=..."
    return "remove unneeded files" if "tmp" not in disk.uses else "use a different folder: export TMPDIR=..."


def _uses(disk: Disk) -> str:
    return ", ".join(disk.uses)


def _folder(disk: Disk) -> str:
    return next(iter(disk.uses.values()), disk.mount or "disk")


def _not_writable(facts: Examined) -> Iterator[Found]:
    for disk in facts.host.disks or ():
        wanted = [name for name in ("store", "tmp") if name in disk.uses]
        if wanted and (disk.read_only or disk.writable is False):
            how = "is mounted read-only" if disk.read_only else "is not writable by this user"
            yield Found(where=disk.uses[wanted[0]], message=f"{disk.uses[wanted[0]]} ({wanted[0]}) {how}")


def _not_executable(facts: Examined) -> Iterator[Found]:
    for disk in facts.host.disks or ():
        wanted = [name for name in ("store", "tmp") if name in disk.uses]
        if wanted and disk.executable is False and disk.writable is not False and not disk.read_only:
            yield Found(
                where=disk.uses[wanted[0]],
                message=f"programs in {disk.uses[wanted[0]]} ({wanted[0]}) cannot be started because the disk is "
                "mounted noexec",
            )


def _network(facts: Examined) -> Iterator[Found]:
    for disk in facts.host.disks or ():
        if disk.network and "store" in disk.uses:
            yield Found(
                where=disk.uses["store"],
                message=(
                    f"the store is on a network disk ({disk.filesystem}), where locks and many small files are slow"
                ),
            )


def _case(facts: Examined) -> Iterator[Found]:
    for disk in facts.host.disks or ():
        wanted = [name for name in ("store", "tmp", "cwd") if name in disk.uses]
        if wanted and (disk.case_sensitive is False or disk.symlinks is False):
            lacks = (
                ("does not distinguish a.h from A.h")
                if disk.case_sensitive is False
                else "does not support symbolic links"
            )
            yield Found(
                where=disk.uses[wanted[0]],
                message=f"the disk that contains {disk.uses[wanted[0]]} ({disk.filesystem}) {lacks}",
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
        title="The disk has too little free space for the build",
        references=("recipe key `resources.disk`",),
        why="The build fails late with `No space left on device`.",
        fix="free some disk space",
        check=_full,
        cases=lambda: (
            Case(
                title="20 GB free, 100 GB needed",
                facts=on(msgspec.structs.replace(HEALTHY, **_disk(free=20 * GIB)), _LARGE),
                fires=True,
            ),
            Case(title="300 GB free, 100 GB needed", facts=on(wish=_LARGE), fires=False),
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
            Case(title="2 GB", facts=_on_disk(free=2 * GIB), fires=True),
            Case(title="too few free inodes", facts=_on_disk(inodes_free=100), fires=True),
            Case(title="300 GB", facts=on(), fires=False),
        ),
    ),
    Rule(
        id="host/disk-read-only",
        severity="error",
        title="A folder that builds write to is not writable",
        references=("mount(8), ro",),
        why="Builds cannot store results or create temporary files.",
        fix="choose different folders: export AXLETREE_STORE=... TMPDIR=...",
        check=_not_writable,
        cases=lambda: (
            Case(title="a read-only root file system", facts=_on_disk(read_only=True), fires=True),
            Case(title="writable", facts=on(), fires=False),
        ),
    ),
    Rule(
        id="host/disk-noexec",
        severity="error",
        title="Programs cannot be started in a folder that builds use",
        references=("mount(8), noexec",),
        why=(
            "Configuration compiles and runs small programs, and pip runs files that it unpacked; the system "
            "refuses to start any of them."
        ),
        fix="name another folder: export TMPDIR=... AXLETREE_STORE=...\nor, as root,\n$ mount -o remount,exec /tmp",
        check=_not_executable,
        cases=lambda: (
            Case(title="a temporary folder mounted noexec", facts=_on_disk(noexec=True, executable=False), fires=True),
            Case(title="a temporary folder that allows programs", facts=on(), fires=False),
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
            Case(title="NFS", facts=_on_disk(network=True, filesystem="nfs4"), fires=True),
            Case(title="ext4", facts=on(), fires=False),
        ),
    ),
    Rule(
        id="host/disk-kind",
        severity="warning",
        title="The file system lacks features that Linux projects expect",
        references=('Microsoft, "Working across file systems" in WSL',),
        why=(
            "Files whose names differ only in case overwrite each other, and libraries lose their version links. "
            "Windows drives in WSL behave this way."
        ),
        fix="work in a folder on the Linux file system, such as your home folder",
        check=_case,
        cases=lambda: (
            Case(title="a Windows drive in WSL", facts=_on_disk(filesystem="9p", case_sensitive=False), fires=True),
            Case(title="ext4", facts=on(), fires=False),
        ),
    ),
)
"""Rules about :class:`~axletree.check.host.examined.Examined`: disks."""
