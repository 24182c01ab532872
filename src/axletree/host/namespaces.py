"""Why this host grants no namespaces, which images need, and what can be done instead."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from axletree.core.errors import Problem

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

ALLOW = (
    "allow namespaces (`sysctl kernel.unprivileged_userns_clone=1 user.max_user_namespaces=15000`; in a container: "
    "`--security-opt seccomp=unconfined`)"
)
_PROC = Path("/proc")
_MOUNTS = 1 << 21
"""CAP_SYS_ADMIN among the rights of a process."""


class _Switch(msgspec.Struct, frozen=True):
    path: str
    value: str
    why: str


_SWITCHES = (
    _Switch("sys/kernel/unprivileged_userns_clone", "0", "kernel.unprivileged_userns_clone is 0"),
    _Switch("sys/user/max_user_namespaces", "0", "user.max_user_namespaces is 0"),
    _Switch(
        "sys/kernel/apparmor_restrict_unprivileged_userns",
        "1",
        "kernel.apparmor_restrict_unprivileged_userns is 1",
    ),
)


def obstacles(read: Callable[[str], str]) -> tuple[str, ...]:
    """What keeps processes from namespaces, as far as the kernel tells.

    Args:
        read: gives the text of a file below /proc; empty where there is none.
    """
    found = [switch.why for switch in _SWITCHES if read(switch.path).strip() == switch.value]
    status = dict(line.partition(":")[::2] for line in read("self/status").splitlines())
    if status.get("Seccomp", "").strip() == "2":
        found.append("a seccomp filter restricts this process, as containers have it")
    user, granted = status.get("Uid", "").split()[1:2], int(status.get("CapEff", "").strip() or "0", 16)
    if user == ["0"] and not granted & _MOUNTS:
        found.append("root has no right to mount: CAP_SYS_ADMIN is missing")
    return tuple(found)


def no_images(engines: Sequence[str], *, read: Callable[[str], str] | None = None) -> Problem:
    """The error of a build whose stages have images where none can be entered: what is missing, and all ways.

    Args:
        engines: container engines that are installed here.
        read: as for :func:`obstacles`; the kernel's own by default.
    """
    why = obstacles(read or _read)
    lacks = f"it does not allow namespaces with mounts{f' ({_joined(why)})' if why else ''}"
    lacks += "" if engines else ", and neither podman nor docker is installed"
    engine = " or ".join(f"--runner {name}" for name in engines or ("podman", "docker"))
    ways = f"{ALLOW}; or use {engine}{'' if engines else ' where one is installed'}"
    return Problem(
        message=f"this machine cannot run stages in images: {lacks}",
        hint=f"{ways}; or start the job from the image and pass `--runner here`",
    )


def _joined(texts: Iterable[str]) -> str:
    return "; ".join(texts)


def _read(path: str) -> str:
    try:
        return (_PROC / path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return ""
