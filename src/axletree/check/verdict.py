"""What a wheel's files say about its platform tags, in one sentence; and the tag that a policy's name means for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from axletree.core.errors import UsageError
from axletree.core.near import nearest
from axletree.package.libraries.policy import broken_needs, highest_versions

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from axletree.check.dist import DistFacts
    from axletree.package.libraries.platforms import Platform
    from axletree.package.libraries.policy import Policy

_SYSTEMS = {"macos": "macOS", "windows": "Windows", "ios": "iOS", "android": "Android"}
_FAMILIES = ("GLIBC", "GLIBCXX", "CXXABI", "GCC")


def complete_policy(text: str, machines: Iterable[str], policies: Sequence[Policy]) -> str:
    """The platform tag that ``manylinux_2_28``, ``manylinux2014`` or a full tag means for files of some machines.

    Raises:
        UsageError: there is no such policy.
    """
    named = {name: policy for policy in policies for name in (policy.name, *policy.aliases)}
    for name, policy in named.items():
        machine = text.removeprefix(f"{name}_") if text.startswith(f"{name}_") else ""
        if text == name:
            fitting = [machine for machine in machines if machine in policy.versions]
            return f"{policy.name}_{min(fitting, default='x86_64')}"
        if machine in policy.versions:
            return f"{policy.name}_{machine}"
    near = nearest(text, named)
    known = ", ".join(policy.name for policy in policies)
    suffix = f"; did you mean {near!r}?" if near else ""
    raise UsageError(
        f"--policy: unknown policy {text!r}{suffix}", hint=f"known policies, with or without _MACHINE appended: {known}"
    )


def judge_platform(facts: DistFacts) -> str:
    """One sentence for the whole wheel."""
    systems = {platform.system for platform in facts.platforms}
    if not facts.elfs:
        code = {member.format for member in facts.wheel.members} - {""}
        if systems == {"any"} and not code:
            return "contains no machine code, so it works on every system"
        where = ", ".join(_SYSTEMS[system] for system in sorted(systems & _SYSTEMS.keys()))
        if where:
            return f"built for {where}, so rules about ELF files and Linux platform tags do not apply"
        return "contains no ELF files, so nothing in it depends on the platform that its tag names"
    if not facts.linux:
        where = ", ".join(_SYSTEMS[system] for system in sorted(systems & _SYSTEMS.keys()))
        return f"built for {where}, so rules about ELF files and Linux platform tags do not apply"
    if not facts.floors:
        return "built for musl, which has no symbol versions, so it works with the musl release in its tag and later"
    floors = ", ".join(facts.floors.values())
    return f"{_judge_tags(facts)}; its symbols allow {floors}{_reasons(facts)}"


def _judge_tags(facts: DistFacts) -> str:
    broken = [platform.tag for platform in facts.platforms if not _keeps(facts, platform)]
    unbound = [need for need in facts.needs if need.owner in {"nobody", "undeclared"}]
    if facts.misplaced:
        return f"contains no files for {', '.join(sorted(facts.machines))}, which its tags name"
    if broken:
        return f"does not comply with {', '.join(broken)}"
    if all(platform.policy is None for platform in facts.platforms):
        return "its tags set no limits on system libraries"
    outside = (
        f", except for {len(unbound)} librar{'ies' if len(unbound) > 1 else 'y'} that no required package provides"
        if unbound
        else ""
    )
    return f"complies with its tags{outside}"


def _keeps(facts: DistFacts, platform: Platform) -> bool:
    if platform.policy is None or platform.machine is None or platform.system != "glibc":
        return True
    elfs = facts.elfs
    broken = broken_needs(facts.symbols, platform.policy, platform.machine)
    return not any(elfs[need.path].architecture == platform.machine for need in broken)


def _reasons(facts: DistFacts) -> str:
    """The versions that make the floor."""
    versions = highest_versions(facts.symbols)
    named = [f"{family} {versions[family]}" for family in _FAMILIES if family in versions]
    return f" ({', '.join(named)})" if named else ""
