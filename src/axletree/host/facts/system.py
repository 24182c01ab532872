"""Kernel, distribution, C library, container and virtual machine, character set, limits."""

from __future__ import annotations

import os
import re
import resource
import time
from pathlib import Path
from typing import TYPE_CHECKING

from axletree.check.host.part import UNLIMITED
from axletree.check.host.system import Limit, System
from axletree.host.facts.access import Seen, own_folder
from axletree.host.facts.names import host_names

if TYPE_CHECKING:
    from axletree.host.facts.access import Access

_LIMITS = {
    "open_files": (resource.RLIMIT_NOFILE, "Max open files"),
    "processes": (resource.RLIMIT_NPROC, "Max processes"),
    "stack": (resource.RLIMIT_STACK, "Max stack size"),
    "address_space": (resource.RLIMIT_AS, "Max address space"),
    "file_size": (resource.RLIMIT_FSIZE, "Max file size"),
    "locked_memory": (resource.RLIMIT_MEMLOCK, "Max locked memory"),
}
"""Field -> number for ``getrlimit``, row of ``/proc/self/limits``."""
_CONTAINERS = {"docker": "docker", "libpod": "podman", "kubepods": "kubernetes", "lxc": "lxc"}


def system_facts(access: Access) -> System:
    """The system below the access's root."""
    seen = Seen()
    uname = os.uname()
    fake = access.root != Path("/")
    seen.put("machine", "uname -m", (access.peek("/proc/sys/kernel/arch") if fake else None) or uname.machine)
    seen.attempt("kernel", "/proc/sys/kernel/osrelease", lambda: access.read("/proc/sys/kernel/osrelease").strip())
    release = _os_release(access)
    seen.put("distribution", "ID in /etc/os-release", release.get("ID"))
    seen.put("distribution_version", "VERSION_ID in /etc/os-release", release.get("VERSION_ID"))
    _libc(access, seen)
    container, source = _container(access)
    seen.put("container", source, container)
    kernel = seen.values.get("kernel", "")
    wsl = _wsl(access, kernel)
    seen.put("wsl", "/proc/sys/kernel/osrelease", wsl)
    virtual, source = _virtual(access, wsl)
    seen.put("virtual", source, virtual)
    seen.put("root", "geteuid", os.geteuid() == 0)
    seen.put("sys_writable", *_sys_writable(access))
    seen.attempt("namespaces", "a process tried to create them", lambda: _namespaces(access))
    _locale(access, seen)
    seen.attempt("clock_skew", "the timestamp of a new file in the working folder", lambda: _clock_skew(access))
    for field, limit in _limits(access).items():
        seen.put(field, "/proc/self/limits" if fake else "getrlimit", limit)
    return System(**seen.values, sources=seen.sources)


def _os_release(access: Access) -> dict[str, str]:
    text = access.peek("/etc/os-release") or access.peek("/usr/lib/os-release") or ""
    pairs = (line.partition("=") for line in text.splitlines() if "=" in line and not line.startswith("#"))
    return {name.strip(): value.strip().strip("\"'") for name, _, value in pairs}


def _libc(access: Access, seen: Seen) -> None:
    """The C library that programs of the system run with, as ``ldd`` tells it."""
    answer = access.ask("ldd", "--version")
    text = f"{answer.out}\n{answer.err}"
    version = re.search(r"(\d+\.\d+(?:\.\d+)?)", text.splitlines()[0]) if answer.out else None
    if "musl" in text.lower():
        found = re.search(r"Version (\d[\d.]*)", text)
        seen.put("libc", "ldd", "musl")
        seen.put("libc_version", "ldd", found[1] if found else None)
    elif answer.code == 0 and version and ("glibc" in text.lower() or "gnu libc" in text.lower()):
        seen.put("libc", "ldd --version", "glibc")
        seen.put("libc_version", "ldd --version", version[1])
    else:
        asked = access.ask("getconf", "GNU_LIBC_VERSION")
        name, _, number = asked.out.strip().partition(" ")
        good = asked.code == 0 and bool(number)
        source = "getconf GNU_LIBC_VERSION" if good else f"ldd: {answer.trouble}; getconf: {asked.trouble}"
        seen.put("libc", source, name if good else None)
        seen.put("libc_version", source, number if good else None)


def _container(access: Access) -> tuple[str | None, str]:
    mounts = access.peek("/proc/self/mountinfo")
    root = next((line for line in (mounts or "").splitlines() if line.split()[4:5] == ["/"]), "")
    disk = re.search(r" - \S+ (/dev/(?:[svx]d|vd|nvme)\S*)", root)
    for marker, kind in (("/run/.containerenv", "podman"), ("/.dockerenv", "docker"), ("/.singularity.d", "apptainer")):
        if access.exists(marker):
            if disk and kind == "docker":  # a virtual machine whose disk was made from an image
                return "none", f"{marker} exists, but the root is on disk {disk[1]} (/proc/self/mountinfo)"
            return kind, marker
    if access.environ.get("KUBERNETES_SERVICE_HOST"):
        return "kubernetes", "KUBERNETES_SERVICE_HOST"
    named = access.peek("/run/systemd/container")
    if named:
        return named, "/run/systemd/container"
    text = access.peek("/proc/1/cgroup") or ""
    for word, kind in _CONTAINERS.items():
        if re.search(rf"[/:-]{word}", text):
            return kind, "/proc/1/cgroup"
    if access.environ.get("container"):  # what systemd-nspawn, podman and flatpak set
        return access.environ["container"], "the `container` variable"
    if mounts is None:
        return None, "/proc/self/mountinfo: cannot be read"
    kind = "container" if " - overlay " in root else "none"
    return kind, "the root file system in /proc/self/mountinfo, and no sign of a container"


def _wsl(access: Access, kernel: str) -> int:
    if "microsoft" not in kernel.lower():
        return 0
    return 2 if "wsl2" in kernel.lower() or access.exists("/dev/dxg") else 1


def _virtual(access: Access, wsl: int) -> tuple[str | None, str]:
    if wsl:
        return "microsoft", "/proc/sys/kernel/osrelease"
    kernel = access.peek("/proc/sys/kernel/osrelease") or ""
    for name in ("sys_vendor", "product_name", "board_vendor", "bios_vendor"):
        text = (access.peek(f"/sys/class/dmi/id/{name}") or "").lower()
        for word, kind in host_names().hypervisors.items():
            if word in text:
                return kind, f"/sys/class/dmi/id/{name}"
    hypervisor = access.peek("/sys/hypervisor/type")
    if hypervisor:
        return hypervisor, "/sys/hypervisor/type"
    cpu = access.peek("/proc/cpuinfo")
    if cpu is None:
        return None, "/proc/cpuinfo: cannot be read"
    flags = next((line for line in cpu.splitlines() if line.startswith("flags")), "")
    if "hypervisor" not in flags.split():
        return "none", "no hypervisor flag in /proc/cpuinfo"
    if re.search(r"-fc\b|firecracker", kernel):
        return "firecracker", "/proc/sys/kernel/osrelease"
    return "unknown", "the hypervisor flag in /proc/cpuinfo"


def _sys_writable(access: Access) -> tuple[str, bool | None]:
    text = access.peek("/proc/self/mountinfo")
    if text is None:
        return "/proc/self/mountinfo: cannot be read", None
    for line in text.splitlines():
        fields = line.split()
        if len(fields) > 5 and fields[4] == "/sys":
            return "the mount options of /sys in /proc/self/mountinfo", "rw" in fields[5].split(",")
    return "/sys is not mounted (/proc/self/mountinfo)", False


def _namespaces(access: Access) -> bool | None:
    command = ["unshare", "--user", "--map-root-user", "--pid", "--fork", "true"]
    answer = access.ask(*command)
    if answer.code is None:
        raise OSError(f"{' '.join(command)}: {answer.why}")
    return answer.code == 0


def _locale(access: Access, seen: Seen) -> None:
    names = ("LC_ALL", "LC_CTYPE", "LANG")
    chosen = next((name for name in names if access.environ.get(name)), None)
    seen.put("locale", chosen or "none of LC_ALL, LC_CTYPE and LANG is set", access.environ[chosen] if chosen else "C")
    own = {name: access.environ[name] for name in (*names, "PATH") if name in access.environ}
    answer = access.run(["locale", "charmap"], environ=own)
    charmap = answer.out.strip() if answer.code == 0 else ""
    seen.put("charmap", "locale charmap" + (f": {answer.trouble}" if not charmap else ""), charmap or None)
    listed = access.run(["locale", "-a"], environ=own)
    if listed.code != 0:
        seen.put("utf8_locale", f"locale -a: {listed.trouble}", None)
        return
    found = [name for name in listed.out.split() if re.search(r"\.utf-?8$", name, re.IGNORECASE)]
    best = min(found, key=lambda name: (not name.startswith("C."), not name.startswith("en_"), name), default="none")
    seen.put("utf8_locale", "locale -a", best)


def _clock_skew(access: Access) -> float:
    with own_folder(access.path(access.cwd)) as folder:
        file = folder / "now"
        before = time.time()
        file.touch()
        after = time.time()
        stamp = file.stat().st_mtime
    # A disk of this machine may round down to seconds, or to the tick of the kernel's clock.
    return round(stamp - after, 3) if stamp > after else round(min(0.0, stamp - before + 2), 3)


def _limits(access: Access) -> dict[str, Limit]:
    found: dict[str, Limit] = {}
    text = "" if access.root == Path("/") else access.peek("/proc/self/limits") or ""
    for field, (number, row) in _LIMITS.items():
        if access.root == Path("/"):
            soft, hard = map(_limit, resource.getrlimit(number))
            source = "getrlimit"
        elif match := re.search(rf"^{row}\s+(\S+)\s+(\S+)", text, re.MULTILINE):
            soft, hard = (UNLIMITED if word == "unlimited" else int(word) for word in match.groups())
            source = "/proc/self/limits"
        else:
            continue
        found[field] = Limit(soft=soft, hard=hard, sources=dict.fromkeys(("soft", "hard"), source))
    return found


def _limit(value: int) -> int:
    return UNLIMITED if value == resource.RLIM_INFINITY else value
