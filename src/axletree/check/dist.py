"""The facts that rules about a wheel look at."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from axletree.package.libraries.demand import NotFound, find_misses, find_optional
from axletree.package.libraries.linkage import LinkContext, Need, find_owners
from axletree.package.libraries.platforms import Platform, linux_environment, parse_platform
from axletree.package.libraries.policy import Policy, SymbolNeed, lowest_policy, symbol_needs
from axletree.package.libraries.providers import Provider, required_names
from axletree.package.libraries.torch_symbols import TorchMatch
from axletree.package.libraries.unused import UnusedNeed, find_unused_drivers
from axletree.package.wheel.scan import WheelFacts, WheelScan

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from axletree.binary.elf.facts import ElfFacts


class DistFacts(msgspec.Struct, frozen=True, kw_only=True):
    """A wheel, its ELF files, and what was promised about it."""

    scan: WheelScan
    platforms: tuple[Platform, ...]
    needs: tuple[Need, ...]
    """Each library that its files need, with its owner. None where the wheel is for another system than Linux."""
    promises: dict[str, str]
    """Needed library that the wheel's tags do not promise -> first tag that does."""
    misses: tuple[NotFound, ...]
    """Libraries of the wheel that the loader does not find for its files."""
    symbols: tuple[SymbolNeed, ...]
    """Each symbol version that its files need from outside."""
    floors: dict[str, str]
    """Machine -> lowest platform tag that the symbol versions of its files allow."""
    provided_by: dict[str, tuple[str, ...]]
    """Distribution -> patterns of SONAMEs that it brings, as the user says."""
    providers: tuple[Provider, ...]
    """Known owners of libraries."""
    wanted: Platform | None
    """The platform that the user asks it to fit, beside those of its tags."""
    glibc: str | None
    """Highest glibc version that was promised to be enough."""
    archs: tuple[str, ...] = ()
    """GPUs that were promised to work, as :func:`~axletree.package.gpu.arch.parse_gpu` reads them."""
    torch: TorchMatch | None = None
    """Its files against the torch that they will meet, where one was named."""
    compilers: tuple[str, ...] = ()
    """Compilers that its build asked for."""
    unused: tuple[UnusedNeed, ...] = ()
    """Libraries of the wheel that files need and take no symbol from, where that is known."""
    unused_drivers: tuple[UnusedNeed, ...] = ()
    """The same of libraries of GPU drivers."""

    @property
    def wheel(self) -> WheelFacts:
        """What the wheel says of itself."""
        return self.scan.wheel

    @property
    def elfs(self) -> dict[str, ElfFacts]:
        """Path -> facts of each ELF file, GPU code included."""
        return {member.path: member.facts for member in self.scan.elfs}

    @property
    def strictest(self) -> Platform | None:
        """The manylinux platform with the lowest glibc: what a wheel of several tags must hold to."""
        promising = [platform for platform in self.platforms if platform.policy and platform.system == "glibc"]
        return min(promising, key=lambda platform: platform.policy.glibc if platform.policy else (), default=None)

    @property
    def machines(self) -> frozenset[str]:
        """Machines that tags for Linux or Android name. ELF headers tell no ARMv6 from ARMv7, so it stands for both."""
        systems = (platform for platform in self.platforms if platform.linux or platform.system == "android")
        named = frozenset(platform.machine for platform in systems if platform.machine)
        return named | {"armv7l"} if "armv6l" in named else named

    @property
    def misplaced(self) -> bool:
        """Whether all that a loader could take is for other machines than the tags name."""
        found = {elf.architecture for elf in self.elfs.values() if elf.dynamic and elf.architecture}
        unnamed = any(platform.linux and platform.machine is None for platform in self.platforms)
        return bool(found and self.machines) and not unnamed and found.isdisjoint(self.machines)

    @property
    def linux(self) -> bool:
        """Whether the rules of ELF loaders hold: a tag for Linux, or for any system and ELF files all the same."""
        return any(platform.linux or platform.system in {"any", "other"} for platform in self.platforms)


def observe_dist(
    scan: WheelScan,
    *,
    policies: Sequence[Policy],
    providers: Sequence[Provider] = (),
    provided_by: dict[str, tuple[str, ...]] | None = None,
    wanted: str | None = None,
    glibc: str | None = None,
    archs: Sequence[str] = (),
    torch: TorchMatch | None = None,
    compilers: Sequence[str] = (),
    unused: Sequence[UnusedNeed] = (),
) -> DistFacts:
    """Derive from a scanned wheel what the rules compare.

    Args:
        scan: the wheel.
        policies: policies of platform tags, oldest first.
        providers: known owners of libraries.
        provided_by: distribution -> patterns of SONAMEs that it brings.
        wanted: a platform tag that it should fit, such as ``manylinux_2_28_x86_64``.
        glibc: highest glibc version that was promised to be enough.
        archs: GPUs that were promised to work.
        torch: its files against the torch that they will meet.
        compilers: compilers that its build asked for.
        unused: libraries of the wheel that files need and take no symbol from.
    """
    elfs = {member.path: member.facts for member in scan.elfs}
    platforms = tuple(parse_platform(tag, policies) for tag in scan.wheel.name.platform.split("."))
    facts = DistFacts(
        scan=scan,
        platforms=platforms,
        needs=(),
        promises={},
        misses=(),
        symbols=symbol_needs(elfs),
        floors=_floors(elfs, policies, platforms),
        provided_by=provided_by or {},
        providers=tuple(providers),
        wanted=None if wanted is None else parse_platform(wanted, policies),
        glibc=glibc,
        archs=tuple(archs),
        torch=torch,
        compilers=tuple(compilers),
        unused=tuple(unused),
    )
    if not facts.linux:
        return facts
    around = _surroundings(facts, policies)
    hosted = {path: elf for path, elf in elfs.items() if elf.architecture is not None}
    needs = find_owners(hosted, around, members=(member.path for member in scan.wheel.members))
    return msgspec.structs.replace(
        facts,
        needs=find_optional(needs, hosted, around),
        promises=_promises(needs, policies, platforms),
        misses=find_misses(hosted),
        unused_drivers=find_unused_drivers(hosted, providers),
    )


def _promises(needs: Sequence[Need], policies: Sequence[Policy], platforms: Sequence[Platform]) -> dict[str, str]:
    machine = next((platform.machine for platform in platforms if platform.machine), None)
    known = [policy for policy in policies if policy.libc == "glibc" and machine in policy.versions]
    first = {soname: policy.name for policy in reversed(known) for soname in policy.libraries}
    return {
        need.soname: f"{first[need.soname]}_{machine}"
        for need in needs
        if need.owner == "nobody" and need.soname in first
    }


def _surroundings(facts: DistFacts, policies: Sequence[Policy]) -> LinkContext:
    wheel = facts.wheel
    machine = next((platform.machine for platform in facts.platforms if platform.machine), None)
    environment = linux_environment(machine, wheel.name.python.partition(".")[0])
    requires = wheel.metadata.requires if wheel.metadata is not None else ()
    return LinkContext(
        own=wheel.name.project,
        system=_system_libraries(facts.platforms, policies),
        musl=any(platform.musl for platform in facts.platforms),
        providers=facts.providers,
        required=required_names(requires, environment=environment),
        extras=required_names(requires, environment=environment, extras=True),
        provided_by=facts.provided_by,
    )


def _system_libraries(platforms: Sequence[Platform], policies: Sequence[Policy]) -> frozenset[str]:
    """What all promised systems have; where nothing is promised, what a present one has."""
    promised = [platform.policy.libraries for platform in platforms if platform.policy is not None]
    if promised:
        return frozenset.intersection(*promised)
    if any(platform.musl for platform in platforms):
        return frozenset({"libz.so.1"})
    newest = [policy for policy in policies if policy.libc == "glibc"]
    return newest[-1].libraries if newest else frozenset()


def _floors(elfs: Mapping[str, ElfFacts], policies: Sequence[Policy], platforms: Sequence[Platform]) -> dict[str, str]:
    """Machine -> lowest tag; only for what is linked to glibc, since other C libraries have no symbol versions."""
    linux = [platform for platform in platforms if platform.system in {"linux", "glibc", "any", "other"}]
    if not linux:
        return {}
    machines = sorted({facts.architecture for facts in elfs.values() if facts.architecture})
    return {machine: _floor(elfs, policies, machine) for machine in machines}


def _floor(elfs: Mapping[str, ElfFacts], policies: Sequence[Policy], machine: str) -> str:
    needs = symbol_needs({path: facts for path, facts in elfs.items() if facts.architecture == machine})
    policy = lowest_policy(needs, [policy for policy in policies if policy.libc == "glibc"], machine)
    return f"{policy.name if policy else 'linux'}_{machine}"
