"""File systems that matter: how much room there is, and what they can do, tried in the folders in question."""

from __future__ import annotations

import errno
import os
import subprocess
import time
from typing import TYPE_CHECKING, NamedTuple

from axletree.check.host.part import UNLIMITED
from axletree.check.host.system import Disk
from axletree.disk import clone
from axletree.host.facts.access import Seen, existing, own_folder
from axletree.host.facts.names import host_names

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from axletree.host.facts.access import Access

_SECONDS = 10
_MOUNTS = "/proc/self/mountinfo"


class Mount(NamedTuple):
    """A line of ``/proc/self/mountinfo``."""

    point: str
    filesystem: str
    options: frozenset[str]


def disk_facts(access: Access) -> tuple[Disk, ...]:
    """The file systems of home, temporary folder, store and working folder, each once."""
    mounts = read_mounts(access.peek(_MOUNTS) or "")
    uses: dict[tuple[str, int], dict[str, str]] = {}
    for use in ("home", "tmp", "store", "cwd"):
        folder = getattr(access, use)
        path = existing(access.path(folder).absolute())
        mount = find_mount(access.real(access.logical(path)), mounts)
        uses.setdefault((mount.point if mount else "/", path.stat().st_dev), {})[use] = folder
    by_point = {mount.point: mount for mount in mounts}
    return tuple(_disk(access, folders, by_point.get(point)) for (point, _), folders in uses.items())


def read_mounts(text: str) -> tuple[Mount, ...]:
    """The mounts that ``/proc/self/mountinfo`` lists, in its order; see ``proc_pid_mountinfo(5)``."""
    mounts: list[Mount] = []
    for line in text.splitlines():
        before, _, after = line.partition(" - ")
        fields, rest = before.split(" "), after.split(" ")
        if len(fields) > 5 and rest[0]:
            point = fields[4].encode().decode("unicode_escape").encode("latin-1", "replace").decode(errors="replace")
            options = frozenset(fields[5].split(",")) | frozenset(rest[2].split(",") if len(rest) > 2 else ())
            mounts.append(Mount(point, rest[0], options))
    return tuple(mounts)


def find_mount(path: str, mounts: tuple[Mount, ...]) -> Mount | None:
    """The mount that a path lies on: the longest, and of those at one point the last."""
    found: Mount | None = None
    for mount in mounts:
        inside = path == mount.point or path.startswith(mount.point.rstrip("/") + "/")
        if inside and (found is None or len(mount.point) >= len(found.point)):
            found = mount
    return found


def _disk(access: Access, uses: dict[str, str], mount: Mount | None) -> Disk:
    seen = Seen()
    absent = [use for use, name in uses.items() if not access.exists(name)]
    more = f"; replaced by a parent folder because they do not exist: {', '.join(absent)}" if absent else ""
    seen.put("uses", f"HOME, TMPDIR, the store folder and the working folder{more}", uses)
    if mount is None:
        seen.put("mount", f"{_MOUNTS} does not list one", None)
        seen.put("filesystem", f"{_MOUNTS} does not list one", None)
    else:
        seen.put("mount", _MOUNTS, mount.point)
        seen.put("filesystem", _MOUNTS, mount.filesystem)
        seen.put("network", f"the file system type in {_MOUNTS}", mount.filesystem in host_names().network_file_systems)
        seen.put("read_only", f"mount options in {_MOUNTS}", "ro" in mount.options)
        seen.put("noexec", f"mount options in {_MOUNTS}", "noexec" in mount.options)
    folder = existing(access.path(next(iter(uses.values()))).absolute())
    try:
        found = os.statvfs(folder)
    except OSError as error:
        for field in ("size", "free", "inodes", "inodes_free"):
            seen.put(field, f"statvfs: {error.strerror}", None)
    else:
        seen.put("size", "statvfs", found.f_blocks * found.f_frsize)
        seen.put("free", "statvfs", found.f_bavail * found.f_frsize)
        seen.put("inodes", "statvfs", found.f_files or UNLIMITED)
        seen.put("inodes_free", "statvfs", found.f_favail if found.f_files else UNLIMITED)
    _try(seen, {use: existing(access.path(name).absolute()) for use, name in uses.items()})
    return Disk(**seen.values, sources=seen.sources)


def _try(seen: Seen, folders: dict[str, Path]) -> None:
    """Do it in the first of the folders that can be written to; each that can't be is named."""
    refused: list[str] = []
    place = None
    for use, folder in folders.items():
        try:
            with own_folder(folder):
                place = place or (use, folder)
        except OSError as error:
            refused.append(f"{use}: {error.strerror}")
    seen.put("writable", "; ".join(refused) or "a folder was created in each", not refused)
    trials: dict[str, Callable[[Path], bool]] = {
        "executable": _runs,
        "hardlinks": _links,
        "symlinks": _symlinks,
        "reflinks": _shares_blocks,
        "case_sensitive": _tells_case,
    }
    if place is None:
        for field in trials:
            seen.put(field, "no folder on this disk is writable", None)
        return
    use, folder = place
    try:
        with own_folder(folder) as trials_in:
            for field, trial in trials.items():
                seen.attempt(field, f"tested in {use}", lambda trial=trial: trial(trials_in))  # type: ignore[misc]
    except OSError as error:
        for field in trials:
            seen.sources.setdefault(field, f"tested in {use}: {error.strerror}")


def _runs(folder: Path) -> bool:
    program = folder / "program"
    program.write_text("#!/bin/sh\nexit 0\n")
    program.chmod(0o755)
    for _ in range(50):
        try:
            return subprocess.run([program], check=False, timeout=_SECONDS, capture_output=True).returncode == 0
        except PermissionError:
            return False
        except subprocess.TimeoutExpired as error:
            raise OSError(f"no response within {_SECONDS} s") from error
        except OSError as error:
            if error.errno != errno.ETXTBSY:  # a process that another thread starts holds the file open for a moment
                raise
            time.sleep(0.02)
    return False


def _links(folder: Path) -> bool:
    (folder / "first").write_text("one file")
    try:
        (folder / "second").hardlink_to(folder / "first")
    except OSError:
        return False
    return (folder / "second").samefile(folder / "first")


def _symlinks(folder: Path) -> bool:
    try:
        (folder / "link").symlink_to("target")
    except OSError:
        return False
    return (folder / "link").is_symlink()


def _shares_blocks(folder: Path) -> bool:
    (folder / "original").write_bytes(b"\0" * 65536)
    with (folder / "original").open("rb") as source, (folder / "clone").open("wb") as target:
        return clone(source.fileno(), target.fileno())


def _tells_case(folder: Path) -> bool:
    (folder / "name-of-a-file").touch()
    return not (folder / "NAME-OF-A-FILE").exists()
