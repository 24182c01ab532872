"""The facts that rules about a wheel look at."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from axletree.package.linkage import Need, find_owners
from axletree.package.policy import Policy, SymbolNeed, lowest_policy, symbol_needs
from axletree.package.torch_symbols import TorchMatch
from axletree.package.wheel import WheelFacts, WheelScan

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from axletree.binary.elf import ElfFacts


class Platform(msgspec.Struct, frozen=True, kw_only=True):
    """A single platform tag of a wheel's name."""

    tag: str
    machine: str | None
    """``x86_64``; ``None`` for ``any`` and for what is no Linux tag."""
    policy: Policy | None
    """What a manylinux tag promises; ``None`` for tags that promise nothing about glibc."""
    musl: bool = False


class DistFacts(msgspec.Struct, frozen=True, kw_only=True):
    """A wheel, its ELF files, and what was promised about it."""

    scan: WheelScan
    platforms: tuple[Platform, ...]
    needs: tuple[Need, ...]
    """Each library that its files need, with its owner."""
    symbols: tuple[SymbolNeed, ...]
    """Each symbol version that its files need from outside."""
    floors: dict[str, str]
    """Machine -> lowest platform tag that the symbol versions of its files allow."""
    provided_by: dict[str, tuple[str, ...]]
    """Distribution -> patterns of SONAMEs that it brings."""
    glibc: str | None
    """Highest glibc version that was promised to be enough."""
    archs: tuple[str, ...] = ()
    """GPUs that were promised to work, as :func:`~axletree.package.arch.parse_gpu` reads them."""
    torch: TorchMatch | None = None
    """Its files against the torch that they will meet, where one was named."""

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
        promising = [platform for platform in self.platforms if platform.policy is not None]
        return min(promising, key=lambda platform: platform.policy.glibc if platform.policy else (), default=None)


def observe_dist(
    scan: WheelScan,
    *,
    policies: Sequence[Policy],
    driver: Iterable[str] = (),
    provided_by: dict[str, tuple[str, ...]] | None = None,
    glibc: str | None = None,
    archs: Sequence[str] = (),
    torch: TorchMatch | None = None,
) -> DistFacts:
    """Derive from a scanned wheel what the rules compare.

    Args:
        scan: the wheel.
        policies: manylinux policies, lowest glibc first.
        driver: patterns of SONAMEs that GPU drivers bring.
        provided_by: distribution -> patterns of SONAMEs that it brings.
        glibc: highest glibc version that was promised to be enough.
        archs: GPUs that were promised to work.
        torch: its files against the torch that they will meet.
    """
    elfs = {member.path: member.facts for member in scan.elfs}
    platforms = tuple(parse_platform(tag, policies) for tag in scan.wheel.name.platform.split("."))
    musl = any(platform.musl for platform in platforms)
    needs = find_owners(
        elfs,
        system=_system_libraries(platforms, policies),
        driver=driver,
        provided_by=provided_by,
        musl=musl,
    )
    machines = sorted({facts.architecture for facts in elfs.values() if facts.architecture})
    return DistFacts(
        scan=scan,
        platforms=platforms,
        needs=needs,
        symbols=symbol_needs(elfs),
        floors={} if musl else {machine: _floor(elfs, policies, machine) for machine in machines},
        provided_by=provided_by or {},
        glibc=glibc,
        archs=tuple(archs),
        torch=torch,
    )


def parse_platform(tag: str, policies: Sequence[Policy]) -> Platform:
    """What a platform tag (PEP 425, 600, 656) promises; between two known policies the lower one counts."""
    kind, machine = _split(tag)
    if kind.startswith("musllinux_"):
        return Platform(tag=tag, machine=machine, policy=None, musl=True)
    if kind.startswith("manylinux_"):
        version = tuple(int(part) for part in kind.split("_")[1:3])
        policy = next((policy for policy in reversed(policies) if policy.glibc <= version), None)
    else:
        policy = next((policy for policy in policies if kind in policy.aliases), None)
    return Platform(tag=tag, machine=machine, policy=policy)


def _split(tag: str) -> tuple[str, str | None]:
    """(``manylinux_2_28``, ``x86_64``); no machine for ``any`` and for other systems."""
    parts = tag.split("_")
    if parts[0] in {"manylinux", "musllinux"} and len(parts) > 3 and all(part.isdecimal() for part in parts[1:3]):
        return "_".join(parts[:3]), "_".join(parts[3:])
    if parts[0] in {"linux", "manylinux1", "manylinux2010", "manylinux2014"}:
        return parts[0], "_".join(parts[1:])
    return tag, None


def _system_libraries(platforms: Sequence[Platform], policies: Sequence[Policy]) -> frozenset[str]:
    """What all promised systems have; where nothing is promised, what a present one has."""
    promised = [platform.policy.libraries for platform in platforms if platform.policy is not None]
    if promised:
        return frozenset.intersection(*promised)
    if any(platform.musl for platform in platforms):
        return frozenset({"libz.so.1"})
    return policies[-1].libraries if policies else frozenset()


def _floor(elfs: dict[str, ElfFacts], policies: Sequence[Policy], machine: str) -> str:
    needs = symbol_needs({path: facts for path, facts in elfs.items() if facts.architecture == machine})
    policy = lowest_policy(needs, policies, machine)
    return f"{policy.name if policy else 'linux'}_{machine}"
