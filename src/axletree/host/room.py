"""The room of a stage: the host's files as they are, and the store at one path for everybody.

Compilers write paths into what they make, compiler caches hash them, and build tools keep them in their folders. So
that results agree between stores, users and machines, a stage sees its store at a fixed path. Where mounts are granted,
its mount namespace gets a new root: an empty file system with the folders of the host's root, and ``/axletree``.

Paths below ``/axletree`` mean nothing outside: what leaves the stage, in logs, events and findings, has the paths by
which users find the same files.
"""

from __future__ import annotations

import ctypes
import os
import re
import shutil
import stat
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from axletree.core.errors import HostError
from axletree.host.devices import show_devices, show_driver
from axletree.host.mounts import (
    MS_NODEV,
    MS_NOSUID,
    attach,
    bind,
    change_root,
    cloned,
    fresh_proc,
    make_read_only,
    mount,
    unmount,
)
from axletree.host.namespaces import ALLOW

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

ROOM = Path("/axletree")
"""The only folder of a room that the host's root does not have."""
STORE = ROOM / "store"
"""Where a stage sees the store."""
WORKSPACE = ROOM / "workspace"
"""Where a stage sees the folder that it keeps between runs: its path in the store differs between checkouts."""
IMAGE = ROOM / "image"
"""Where the root file system is that the programs of a stage see, if that is an image's."""
_CHANGES = ROOM / "changes"
"""Where what they change in it is kept, in memory, until the stage ends."""
_BENCH = Path("/tmp")  # noqa: S108 (a folder that every system has, to mount the new root on; nothing is written to it)
_KERNELS = (Path("/proc"), Path("/sys"), STORE)
"""What an image gets from outside, beside devices."""
_DEVICES = Path("/dev")
DRIVER = ROOM / "driver"
"""Where programs in an image find the libraries of the GPU driver, if they may use GPUs."""
NO_NAMESPACES = f"{ALLOW}, or build with --runner podman or docker, or without the image"
_INSIDE = re.compile(rb"/axletree/(store|workspace)(?![\w.-])")


class _Outside:
    """What the paths of this process's room stand for outside of it."""

    store: Path | None = None
    image: bool = False
    """Whether programs see an image (:func:`prepare_image`)."""
    contained: bool = False
    """Whether the room is a container (:func:`join_room`), in which nothing can be mounted."""
    shown: Path | None = None
    """The folder below :data:`STORE` that a container has at :data:`WORKSPACE`."""
    driver: bool = False
    """Whether they find libraries of a GPU driver at :data:`DRIVER`."""
    workspace: Path | None = None
    """The folder last shown at :data:`WORKSPACE`, as a path below :data:`STORE`."""


def in_room() -> bool:
    """Whether this process sees its store at :data:`STORE`."""
    return _Outside.store is not None


def outside(text: bytes) -> bytes:
    """A text with the paths by which users find what is below :data:`ROOM`."""
    return _replaced(text, os.fsencode)


def outside_json(text: bytes) -> bytes:
    """The same for JSON."""
    return _replaced(text, lambda path: msgspec.json.encode(str(path))[1:-1])


def _replaced(text: bytes, encode: Callable[[Path], bytes]) -> bytes:
    store, workspace = _Outside.store, _Outside.workspace
    if store is None or b"/axletree/" not in text:
        return text
    kept = store if workspace is None else store / workspace.relative_to(STORE)
    return _INSIDE.sub(lambda match: encode(store if match[1] == b"store" else kept), text)


def enter_room(store: Path) -> bool:
    """Give this process a root in which the store is at :data:`STORE`; whether that was done.

    For a process alone in its mount namespace. If it fails half-way, the process is spoilt.
    """
    with cloned(_BENCH) as bench, cloned(store) as shown_store:
        if not mount("axletree", _BENCH, "tmpfs", flags=MS_NOSUID | MS_NODEV, options="mode=755,size=1m"):
            return False
        entries = [entry for entry in Path("/").iterdir() if entry != ROOM]
        if not all(attach(bench, _make(entry)) if entry == _BENCH else _show(entry) for entry in entries):
            return False
        for place in (STORE, WORKSPACE, IMAGE, _CHANGES):
            _place(place).mkdir(parents=True, exist_ok=True)
        done = attach(shown_store, _place(STORE)) and make_read_only(_BENCH) and change_root(_BENCH)
    _Outside.store = store if done else None
    return done


def join_room(store: Path, kept: str | None) -> None:
    """Take the container in which this process is for its room: an engine has mounted all that belongs there.

    Args:
        store: where the store is outside.
        kept: the folder of the store that is at :data:`WORKSPACE`, relative to the store; ``None``: none.
    """
    _Outside.store, _Outside.contained = store, True
    _Outside.shown = None if kept is None else STORE / kept


def in_container() -> bool:
    """Whether an engine made this process's room."""
    return _Outside.contained


def can_keep(folder: Path) -> bool:
    """Whether :func:`kept_at_one_place` can show a folder of the store: in a container, only the one that it has."""
    return not _Outside.contained or folder == _Outside.shown


def _place(path: Path) -> Path:
    """Where something lies as long as the new root is not the root."""
    return _BENCH / path.relative_to("/")


def _make(entry: Path) -> Path:
    place = _place(entry)
    place.mkdir()
    return place


def _show(entry: Path) -> bool:
    """Show an entry of the host's root in the new one; whether that was done, or nobody can miss it."""
    mode = entry.lstat().st_mode
    if stat.S_ISLNK(mode):
        _place(entry).symlink_to(entry.readlink())
    elif stat.S_ISDIR(mode):
        place = _make(entry)
        return (entry.name == "proc" and fresh_proc(place)) or bind(entry, place)
    elif stat.S_ISREG(mode):
        _place(entry).touch()
        return bind(entry, _place(entry))
    return True


def prepare_image(root: Path, *, gpus: bool = False) -> None:
    """Assemble the file system that programs of this room see: an image's, ``/axletree``, and the kernel's own.

    Programs may change all of it: the changes end with the stage. This process still sees the host's files.

    Args:
        root: root file system of the image, below :data:`STORE`.
        gpus: whether programs may use the GPUs of this machine.

    Raises:
        HostError: this is no room, or the kernel refuses a mount.
    """
    if not in_room():
        raise HostError("this host does not allow mount namespaces, which an image needs", hint=NO_NAMESPACES)
    if not _overlay(root):
        reason = os.strerror(ctypes.get_errno())
        raise HostError(f"the kernel refuses to mount the image: {reason}", hint="overlays need Linux 5.11 or later")
    for folder in _KERNELS:
        place = IMAGE / folder.relative_to("/")
        place.mkdir(parents=True, exist_ok=True)
        if not bind(folder, place):
            raise HostError(f"the kernel refuses to show {folder} in the image: {os.strerror(ctypes.get_errno())}")
    refused = _show_devices(gpus=gpus)
    if refused is not None:
        raise HostError(f"the kernel refuses to show {refused} in the image: {os.strerror(ctypes.get_errno())}")
    (IMAGE / WORKSPACE.relative_to("/")).mkdir(exist_ok=True)
    _Outside.image = True


def _show_devices(*, gpus: bool) -> str | None:
    """Give the image its devices; what the kernel refuses to show."""
    place = IMAGE / _DEVICES.relative_to("/")
    place.mkdir(exist_ok=True)
    refused = show_devices(place, gpus=gpus)
    if refused is not None or not gpus:
        return refused
    from axletree.host.libraries import search_folders  # noqa: PLC0415 (start-up time: few stages see GPUs)

    driver = IMAGE / DRIVER.relative_to("/")
    driver.mkdir()
    refused = show_driver(driver, search_folders(variable=False))
    _Outside.driver = any(driver.iterdir())
    return refused


def gpu_variables(environ: Mapping[str, str]) -> dict[str, str]:
    """What changes in the variables of programs, so that they find the libraries of the GPU driver if they may use it.

    These come first: other ones do not fit this machine's driver.
    """
    if not _Outside.driver:
        return {}
    name = "LD_LIBRARY_PATH"
    return {name: ":".join(filter(None, [str(DRIVER), environ.get(name)]))}


def _overlay(root: Path) -> bool:
    if not mount("changes", _CHANGES, "tmpfs", flags=MS_NOSUID | MS_NODEV):
        return False
    upper, work = _CHANGES / "upper", _CHANGES / "work"
    upper.mkdir()
    work.mkdir()
    layers = f"lowerdir={root},upperdir={upper},workdir={work}"
    # A user namespace may only keep notes of its own on the files that were changed.
    return any(mount("image", IMAGE, "overlay", options=f"{layers}{more}") for more in ("", ",userxattr"))


def entrance(cwd: Path) -> Callable[[], None] | None:
    """What a child process does to enter the image, between fork and exec; ``None`` where programs see the host.

    ``cwd`` is the folder where it then is.
    """
    if not _Outside.image:
        return None

    def enter() -> None:
        os.chroot(IMAGE)
        os.chdir(cwd)

    return enter


def as_seen(path: Path) -> Path:
    """Where this process finds a file by the path that programs of the stage know."""
    return IMAGE / path.relative_to("/") if _Outside.image else path


def find_program(name: str, path: str) -> str | None:
    """Where the programs of the stage find a program, as they know its path; ``None`` if it is on none of the folders.

    ``path`` is the value of their ``PATH``.
    """
    if not _Outside.image:
        return shutil.which(name, path=path)
    places = (f"{folder}/{name}" for folder in path.split(":"))
    return next((place for place in places if os.path.lexists(as_seen(Path(place)))), None)


def views(folder: Path) -> tuple[Path, ...]:
    """All places where the stage's process and its programs see a folder of the store."""
    return (folder, as_seen(folder)) if _Outside.image and folder.is_relative_to(ROOM) else (folder,)


@contextmanager
def kept_at_one_place(folder: Path) -> Iterator[Path]:
    """Show a kept folder of the store at :data:`WORKSPACE` while the block runs, and say where it is then.

    Outside of a room the folder stays where it is. Files can't be renamed from there to elsewhere in the store:
    :func:`unaliased` gives the paths for that.
    """
    if not in_room() or not (folder == _Outside.shown or bind(folder, WORKSPACE)):
        yield folder
        return
    _Outside.workspace = folder
    if _Outside.contained:
        yield WORKSPACE
        return
    places = views(WORKSPACE)
    try:
        for place in places[1:]:
            bind(folder, place)
        yield WORKSPACE
    finally:
        for place in reversed(places):
            unmount(place)


def unaliased(path: Path) -> Path:
    """The path in the store of a file below :data:`WORKSPACE`; any other path as it is."""
    if _Outside.workspace is not None and path.is_relative_to(WORKSPACE):
        return _Outside.workspace / path.relative_to(WORKSPACE)
    return path
