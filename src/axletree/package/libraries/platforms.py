"""Platform tags (PEP 425, 600, 656, 730, 738): the system and the machine that each names, and what it promises."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Literal

import msgspec

from axletree.package.libraries.policy import Policy, policy_between

if TYPE_CHECKING:
    from collections.abc import Sequence

    from axletree.binary.elf.facts import ElfFacts

System = Literal["any", "linux", "glibc", "musl", "macos", "windows", "ios", "android", "other"]
"""``linux``: Linux, unknown which C library; ``glibc`` and ``musl``: Linux with that one."""

_LINUX = frozenset({"linux", "glibc", "musl"})
_LEGACY = frozenset({"manylinux1", "manylinux2010", "manylinux2014"})
_MACHINES = {"amd64": "x86_64", "win32": "i686", "arm64": "aarch64", "arm64_v8a": "aarch64", "armeabi_v7a": "armv7l"}
_VERSIONED = re.compile(r"(manylinux|musllinux)_(\d+)_(\d+)_(\w+)")
_ANDROID = re.compile(r"android_(\d+)_(\w+)")
_MUSL_LIBC = re.compile(r"libc\.musl-\w+\.so\.\d+|ld-musl-\w+\.so\.\d+")


class Platform(msgspec.Struct, frozen=True, kw_only=True):
    """A single platform tag of a wheel's name."""

    tag: str
    system: System = "linux"
    machine: str | None
    """``x86_64``; ``None`` for ``any`` and where several or none are named."""
    policy: Policy | None
    """What the tag promises of the system's libraries; ``None`` where it promises nothing, or nothing is known."""

    @property
    def musl(self) -> bool:
        """Whether it is for systems with musl."""
        return self.system == "musl"

    @property
    def linux(self) -> bool:
        """Whether it is for Linux."""
        return self.system in _LINUX


def parse_platform(tag: str, policies: Sequence[Policy]) -> Platform:
    """What a platform tag says. ``policies`` are those that are known, oldest first."""
    if found := _VERSIONED.fullmatch(tag):
        version = (int(found[2]), int(found[3]))
        known = next((policy for policy in policies if policy.name == f"{found[1]}_{version[0]}_{version[1]}"), None)
        if found[1] == "musllinux":
            older = [policy for policy in policies if policy.libc == "musl" and policy.glibc <= version]
            return Platform(tag=tag, system="musl", machine=found[4], policy=known or (older[-1] if older else None))
        return Platform(tag=tag, system="glibc", machine=found[4], policy=known or policy_between(version, policies))
    if found := _ANDROID.fullmatch(tag):
        older = [p for p in policies if p.libc == "android" and p.glibc <= (int(found[1]), 0)]
        return Platform(tag=tag, system="android", machine=_machine(found[2]), policy=older[-1] if older else None)
    kind, _, machine = tag.partition("_")
    if kind in _LEGACY:
        policy = next((policy for policy in policies if kind in policy.aliases), None)
        return Platform(tag=tag, system="glibc", machine=machine, policy=policy)
    return _unversioned(tag, kind, machine)


def _unversioned(tag: str, kind: str, machine: str) -> Platform:
    if kind == "linux":
        return Platform(tag=tag, system="linux", machine=machine or None, policy=None)
    if kind == "macosx":
        name = re.sub(r"^\d+_\d+_", "", machine)
        several = name.startswith(("universal", "intel", "fat"))
        return Platform(tag=tag, system="macos", machine=None if several else _machine(name), policy=None)
    if kind == "ios":
        return Platform(
            tag=tag, system="ios", machine=_machine(re.sub(r"^\d+_\d+_|_iphone\w+$", "", machine)), policy=None
        )
    if kind in {"win32", "win"}:
        return Platform(tag=tag, system="windows", machine=_machine(machine or kind), policy=None)
    system: System = "any" if tag == "any" else "other"
    return Platform(tag=tag, system=system, machine=None, policy=None)


def _machine(name: str) -> str:
    return _MACHINES.get(name, name)


def libc_of(facts: ElfFacts) -> Literal["glibc", "musl"] | None:
    """The C library that a file is linked to; ``None`` where it is linked to none, or it can't be told."""
    # libgcc_s calls versions of its own GLIBC_2.0 as well, on musl too.
    if "libc.so.6" in facts.needed or any(
        version.startswith("GLIBC_")
        for need in facts.versions_needed
        if not need.file.startswith("libgcc_s")
        for version in need.versions
    ):
        return "glibc"
    musl = any(_MUSL_LIBC.fullmatch(soname) for soname in facts.needed) or "/ld-musl-" in (facts.interpreter or "")
    return "musl" if musl else None


def linux_environment(machine: str | None, python: str) -> dict[str, str]:
    """Values of marker variables (PEP 508) on Linux, for the oldest Python of a wheel's tag such as ``cp311``."""
    found = re.match(r"[a-z]+(\d)(\d+)", python)
    version = f"{found[1]}.{found[2]}" if found else "3.12"
    return {
        "sys_platform": "linux",
        "platform_system": "Linux",
        "os_name": "posix",
        "platform_machine": machine or "x86_64",
        "python_version": version,
        "python_full_version": f"{version}.0",
        "implementation_name": "cpython",
        "platform_python_implementation": "CPython",
    }
