"""A stage's kill domain: a process tree that ends as one, without a network unless it needs one.

Where the kernel lets us, a stage runs in a PID namespace of its own. Its first process is the namespace's init: when it
dies, the kernel kills everything in it, also what detached itself with ``setsid`` or double forks. Parent-death signals
tie the two ends together, so that a SIGKILL of the driver, or of the stage's outer process, takes the whole tree with
it and no clean-up is left for anybody. (A cgroup's ``cgroup.kill`` would need a living process to write to it.)

Where namespaces are refused, the outer process becomes a child subreaper and kills its descendants until none is left,
also when the driver dies. Only a SIGKILL of the outer process itself leaves descendants behind then.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import fcntl
import os
import signal
import socket
import struct
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import psutil

from axletree.host.hiding import hide_start
from axletree.host.mounts import bind_read_only, fresh_proc, own_mounts, unmount
from axletree.host.room import enter_room, views

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

_CLONE_NEWNS = 0x00020000
_CLONE_NEWUSER = 0x10000000
_CLONE_NEWPID = 0x20000000
_CLONE_NEWNET = 0x40000000
_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_NO_ISOLATION, _WITH_MOUNTS, _WITH_ROOM = 1, 2, 3
"""Exit codes of a probe."""

_LIBC = ctypes.CDLL(None, use_errno=True)
_mounts_are_ours = False
"""Whether this process sits in a mount namespace of its own where it may mount: set when a kill domain begins."""


class Isolation(msgspec.Struct, frozen=True, kw_only=True):
    """What the system granted."""

    processes: bool
    """The tree is a PID namespace of its own."""
    network: bool
    """It has no network but its own loopback."""
    mounts: bool = False
    """Folders can be made read-only for it alone (:func:`read_only`)."""
    paths: bool = False
    """It sees its store at a fixed path (:mod:`axletree.host.room`)."""


def run_isolated(
    body: Callable[[Isolation], int], *, network: bool, store: Path | None = None, parent: int | None = None
) -> int:
    """Run ``body`` in a kill domain of its own and return its exit code (128 + n after signal n).

    SIGTERM and SIGINT end the whole domain at once. Call it from a process with one thread: it forks.

    Args:
        body: The work; gets what isolation was reached.
        network: Whether the network stays reachable.
        store: Folder that the domain sees at :data:`axletree.host.room.STORE`, where mounts are granted.
        parent: Process whose death ends the domain: the one that started us. ``None``: nobody's.
    """
    hide_start()
    granted = _unshare(network=network, store=store)
    if parent is not None:
        # The namespace ends with us; without one we must live long enough to kill the tree ourselves.
        _end_with(parent, by=signal.SIGKILL if granted.processes else signal.SIGTERM)
    if not granted.processes:
        _LIBC.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    outer = os.getpid()
    sys.stdout.flush()
    sys.stderr.flush()
    ours, theirs = socket.socketpair()
    child = os.fork()
    if child == 0:
        ours.close()
        _child(body, granted, store=store, outer=outer, link=theirs)
    theirs.close()
    with ours, contextlib.suppress(ConnectionError):  # the child may have died already
        ours.recv(1)  # now it is tied to us
        _forward_signals(child)
        ours.send(b"+")  # it starts only now: no signal can fall between fork and the handlers
    _, status = os.waitpid(child, 0)
    if not granted.processes:
        kill_descendants()
    return os.waitstatus_to_exitcode(status) if os.WIFEXITED(status) else 128 + os.WTERMSIG(status)


def grants_room(store: Path) -> bool:
    """Whether kill domains see the store at its fixed path here, and can enter images."""
    user = 0 if os.geteuid() == 0 else _CLONE_NEWUSER
    return _answer_of(partial(_probe, _CLONE_NEWPID | _CLONE_NEWNS | user, store)) == _WITH_ROOM


def can_protect() -> bool:
    """Whether :func:`read_only` has an effect in this process."""
    return _mounts_are_ours


@contextlib.contextmanager
def read_only(folders: Iterable[Path]) -> Iterator[None]:
    """Make folders read-only for this process and its children while the block runs; others still can write there.

    Does nothing outside of a kill domain and where the system refuses mounts: :func:`can_protect` tells.
    """
    with contextlib.ExitStack() as stack:
        for folder in folders if _mounts_are_ours else ():
            for place in views(folder) if folder.is_dir() else ():
                if bind_read_only(place):
                    stack.callback(unmount, place)
        yield


def _end_with(parent: int, *, by: signal.Signals) -> None:
    """Get a signal when the parent dies; exit at once if it is gone. A change of user namespace would undo it."""
    _LIBC.prctl(_PR_SET_PDEATHSIG, by, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(137)


def _child(
    body: Callable[[Isolation], int], granted: Isolation, *, store: Path | None, outer: int, link: socket.socket
) -> None:
    code = 70
    try:
        _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        # The outer process answers only after our word. If it died before the line above, nobody answers; its process
        # id would not tell, since in a PID namespace a parent outside reads as 0.
        with link:
            link.send(b"+")
            alive = link.recv(1) == b"+"
        if not alive or os.getppid() not in {outer, 0}:
            os._exit(137)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        if granted.processes:
            global _mounts_are_ours  # noqa: PLW0603 (a fact of this process, and set once)
            _mounts_are_ours = own_mounts() and granted.mounts
            if not (granted.paths and store is not None and enter_room(store)):
                fresh_proc()
        if granted.network:
            _loopback_up()
        code = body(granted)
    except BaseException:  # noqa: BLE001 (a forked child must never return into its parent's code)
        sys.excepthook(*sys.exc_info())
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _forward_signals(child: int) -> None:
    def end(_number: int, _frame: object) -> None:
        try:
            os.kill(child, signal.SIGKILL)
        except ProcessLookupError:
            return

    signal.signal(signal.SIGTERM, end)
    signal.signal(signal.SIGINT, end)


def kill_descendants() -> None:
    """Kill all descendants of this process, again and again until none is left (the fallback's kill domain)."""
    me = psutil.Process()
    for _round in range(100):
        alive = [process for process in me.children(recursive=True) if process.status() != psutil.STATUS_ZOMBIE]
        for process in alive:
            try:
                process.kill()
            except psutil.NoSuchProcess:
                continue
        _reap()
        if not alive:
            return


def _reap() -> None:
    while True:
        try:
            pid, _ = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if pid == 0:
            return


def _unshare(*, network: bool, store: Path | None) -> Isolation:
    """Take the strongest isolation that the system grants; each try is all or nothing."""
    net = 0 if network else _CLONE_NEWNET
    base = _CLONE_NEWPID | _CLONE_NEWNS
    user = 0 if os.geteuid() == 0 else _CLONE_NEWUSER
    for flags in dict.fromkeys([base | net | user, base | user, net | user]):
        if flags in {0, _CLONE_NEWUSER}:
            continue
        # In a child first: a user namespace may be granted and then be of no use, and there is no way back out of it.
        answer = _answer_of(partial(_probe, flags, store))
        if answer == _NO_ISOLATION or not _enter(flags):
            continue
        return Isolation(
            processes=bool(flags & _CLONE_NEWPID),
            network=bool(flags & _CLONE_NEWNET),
            mounts=answer in {_WITH_MOUNTS, _WITH_ROOM},
            paths=answer == _WITH_ROOM,
        )
    return Isolation(processes=False, network=False)


def _enter(flags: int) -> bool:
    """Enter new namespaces; whether that was done. Where it fails half-way, the process is spoilt."""
    ids = os.geteuid(), os.getegid()
    if _LIBC.unshare(flags) != 0:
        return False
    if flags & _CLONE_NEWUSER:
        _map_identity(*ids)
    return True


def _probe(flags: int, store: Path | None) -> int:
    """Try all that a kill domain will do, as its first process would; the exit code tells how far that went."""
    if not _enter(flags):
        return _NO_ISOLATION
    if not flags & _CLONE_NEWPID:
        return 0
    return _answer_of(partial(_probe_mounts, store))


def _probe_mounts(store: Path | None) -> int:
    if not own_mounts() or not bind_read_only(Path(os.devnull)):
        return 0
    return _WITH_ROOM if store is not None and enter_room(store) else _WITH_MOUNTS


def _answer_of(question: Callable[[], int]) -> int:
    """Ask in a forked child; :data:`_NO_ISOLATION` where it comes to grief."""
    try:
        child = os.fork()
    except OSError:
        return _NO_ISOLATION
    if child == 0:
        answer = _NO_ISOLATION
        try:
            answer = question()
        finally:
            os._exit(answer)
    _, status = os.waitpid(child, 0)
    return os.WEXITSTATUS(status) if os.WIFEXITED(status) else _NO_ISOLATION


def _map_identity(uid: int, gid: int) -> None:
    Path("/proc/self/setgroups").write_text("deny")
    Path("/proc/self/uid_map").write_text(f"{uid} {uid} 1")
    Path("/proc/self/gid_map").write_text(f"{gid} {gid} 1")


def _loopback_up() -> None:
    """Bring ``lo`` up: tests of distributed code talk to themselves."""
    get_flags, set_flags, up = 0x8913, 0x8914, 1
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        request = struct.pack("16sh14x", b"lo", 0)
        try:
            flags = struct.unpack("16sh14x", fcntl.ioctl(control, get_flags, request))[1]
            fcntl.ioctl(control, set_flags, struct.pack("16sh14x", b"lo", flags | up))
        except OSError as error:
            if error.errno not in {errno.EPERM, errno.ENODEV}:
                raise
