"""Memory: how much there is, what limits it, how scarce it is, and which of the kernel's means this process has."""

from __future__ import annotations

import errno
import fcntl
import os
import secrets
from contextlib import suppress
from typing import TYPE_CHECKING

from axletree.check.host.part import UNLIMITED
from axletree.check.host.system import Cgroup, Memory
from axletree.host.cgroups import group_folders, memory_groups, out_of_memory_kills, read_number, swap_limits
from axletree.host.facts.access import Seen

if TYPE_CHECKING:
    from pathlib import Path

    from axletree.host.facts.access import Access

_TRIAL_LIMIT = 1 << 30
_GROUP = "axletree-probe-"
"""How the names of groups begin that are made to try something."""
_PSI = "/proc/pressure/memory"


def memory_facts(access: Access) -> Memory:
    """Memory of the access's host, for this process."""
    seen = Seen()
    fields = _meminfo(access)
    folders = group_folders(access.root)
    rooms = memory_groups(folders)
    total, available = fields.get("MemTotal"), fields.get("MemAvailable")
    seen.put("total", "MemTotal in /proc/meminfo", total)
    left = min([*([] if available is None else [available]), *(room for room, _ in rooms)], default=None)
    seen.put("available", "MemAvailable in /proc/meminfo, within the limits of control groups", left)
    seen.put("swap_total", "SwapTotal in /proc/meminfo", fields.get("SwapTotal"))
    seen.put("swap_free", "SwapFree in /proc/meminfo", fields.get("SwapFree"))
    groups = "memory.max or memory.limit_in_bytes of this process's control groups"
    if rooms:
        room, limit = min(rooms)
        seen.put("limit", groups, limit)
        seen.put("limit_used", f"{groups}, not counting idle caches", limit - room)
        seen.put("limit_left", f"{groups}, not counting idle caches", room)
    else:
        seen.put("limit", groups, UNLIMITED)
        for field in ("limit_used", "limit_left"):
            seen.put(field, "no limit is set", None)
    seen.put(
        "swap_limit", "memory.swap.max or memory.memsw.limit_in_bytes", min(swap_limits(folders), default=UNLIMITED)
    )
    seen.attempt("shm", "statvfs /dev/shm", lambda: _size(access, "/dev/shm"))  # noqa: S108 (its size alone is asked)
    seen.attempt(
        "overcommit", "/proc/sys/vm/overcommit_memory", lambda: int(access.read("/proc/sys/vm/overcommit_memory"))
    )
    seen.attempt("pressure_some", f"avg10 of the `some` line in {_PSI}", lambda: _pressure(access))
    seen.attempt("pressure_trigger", f"writing a trigger to {_PSI}", lambda: _trigger(access))
    kills = out_of_memory_kills(folders)
    if kills is not None:
        seen.put("oom_kills", "oom_kill of this process's control group", kills)
    else:
        seen.attempt("oom_kills", "oom_kill in /proc/vmstat, since boot", lambda: _kills_since_boot(access))
    seen.put("cgroup", "see its own sources", _cgroup(access, folders))
    return Memory(**seen.values, sources=seen.sources)


def _meminfo(access: Access) -> dict[str, int]:
    lines = (line.split() for line in (access.peek("/proc/meminfo") or "").splitlines())
    return {words[0].rstrip(":"): int(words[1]) * 1024 for words in lines if len(words) > 1 and words[1].isdigit()}


def _size(access: Access, folder: str) -> int:
    found = os.statvfs(access.path(folder))
    return found.f_blocks * found.f_frsize


def _pressure(access: Access) -> float:
    line = next((line for line in access.read(_PSI).splitlines() if line.startswith("some")), "")
    return float(dict(word.partition("=")[::2] for word in line.split()[1:])["avg10"])


def _trigger(access: Access) -> bool | None:
    """Whether the kernel takes a trigger; it ends with its descriptor. See "PSI" in the kernel's documentation."""
    path = access.path(_PSI)
    if not path.exists():
        return None
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_NONBLOCK)
    except OSError:
        return False
    try:
        os.write(descriptor, b"some 150000 2000000\0")
    except OSError:
        return False
    finally:
        os.close(descriptor)
    return True


def _kills_since_boot(access: Access) -> int | None:
    fields = dict(line.split() for line in access.read("/proc/vmstat").splitlines())
    return int(fields["oom_kill"]) if "oom_kill" in fields else None


def _cgroup(access: Access, folders: list[tuple[Path, str]]) -> Cgroup:
    seen = Seen()
    mounts = access.peek("/proc/self/mountinfo")
    kinds = {line.partition(" - ")[2].split(" ")[0] for line in (mounts or "").splitlines()}
    found = [number for kind, number in (("cgroup", "1"), ("cgroup2", "2")) if kind in kinds]
    version = None if mounts is None else "hybrid" if len(found) == 2 else (found or ["none"])[0]
    seen.put("version", "cgroup and cgroup2 file systems in /proc/self/mountinfo", version)
    first = next((folder for folder, names in folders if "memory" in names.split(",")), None)
    if first is None:
        first = next((folder for folder, names in folders if names == "" and _controls_memory(folder)), None)
        controller = "2" if first is not None else "none"
    else:
        controller = "1"
    seen.put("memory_controller", "/proc/self/cgroup and cgroup.controllers", controller)
    _try_limit(seen, first, controller)
    _try_unified(seen, next((folder for folder, names in folders if names == ""), None), folders)
    return Cgroup(**seen.values, sources=seen.sources)


def _controls_memory(folder: Path) -> bool:
    try:
        return "memory" in (folder / "cgroup.controllers").read_text().split()
    except OSError:
        return False


def _try_limit(seen: Seen, folder: Path | None, controller: str) -> None:
    """Make a group below ours, limit it, read the limit back, remove it. Nothing runs in it."""
    if folder is None:
        seen.put("may_create", "no control group limits memory", value=False)
        seen.put("may_limit_memory", "no control group limits memory", value=False)
        return
    try:
        child, held = _make_group(folder)
    except OSError as error:
        for field in ("may_create", "may_limit_memory"):
            seen.put(field, f"creating a subgroup: {error.strerror}", value=False)
        return
    try:
        seen.put("may_create", "creating a subgroup", value=True)
        file = child / ("memory.max" if controller == "2" else "memory.limit_in_bytes")
        file.write_text(str(_TRIAL_LIMIT))
        seen.put("may_limit_memory", f"writing {file.name} and reading it back", read_number(file) == _TRIAL_LIMIT)
    except OSError as error:
        reason = "the memory controller is not delegated to it" if error.errno == errno.ENOENT else error.strerror
        seen.put("may_limit_memory", f"setting a subgroup's memory limit: {reason}", value=False)
    finally:
        _remove(child)
        os.close(held)


def _try_unified(seen: Seen, folder: Path | None, folders: list[tuple[Path, str]]) -> None:
    names: frozenset[str] = frozenset()
    source = "the files of a version 2 subgroup"
    if folder is None:
        source = "version 2 control groups are not available"
    else:
        try:
            child, held = _make_group(folder)
            names = frozenset(file.name for file in child.iterdir())
            _remove(child)
            os.close(held)
        except OSError as error:
            source = f"creating a version 2 subgroup: {error.strerror}"
    seen.put("may_kill", source, "cgroup.kill" in names)
    freezer = any("freezer" in names.split(",") and os.access(folder, os.W_OK) for folder, names in folders)
    where = source if "cgroup.freeze" in names or not freezer else "a writable version 1 freezer"
    seen.put("may_freeze", where, "cgroup.freeze" in names or freezer)


def _make_group(folder: Path) -> tuple[Path, int]:
    """Make a group, and hold its lock: it says that somebody needs it. Those that nobody needs any more go first."""
    for left in folder.glob(f"{_GROUP}*"):
        with suppress(OSError):
            held = _lock(left)
            try:
                _remove(left)
            finally:
                os.close(held)
    while True:
        child = folder / f"{_GROUP}{secrets.token_hex(4)}"
        child.mkdir()
        try:
            return child, _lock(child)
        except (FileNotFoundError, BlockingIOError):  # somebody took it for a leftover in between
            continue


def _lock(folder: Path) -> int:
    """Lock a folder until it is closed.

    Raises:
        OSError: it is gone, or somebody has the lock.
    """
    held = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        folder.stat()
    except OSError:
        os.close(held)
        raise
    return held


def _remove(child: Path) -> None:
    with suppress(OSError):
        child.rmdir()
        return
    # In a fake host a group is a plain folder with the files written to it.
    with suppress(OSError):
        for file in child.iterdir():
            file.unlink()
        child.rmdir()
