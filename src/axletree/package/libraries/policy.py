"""Policies of platform tags (PEP 600, 656, 738) as values: which symbol versions and libraries a tag lets a wheel use.

The data is auditwheel's; whoever may open files reads it and hands it over parsed.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from axletree.core.errors import IntegrityError
from axletree.core.shipped import Shipped

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from axletree.binary.elf.facts import ElfFacts


Libc = Literal["glibc", "musl", "android"]


class Policy(msgspec.Struct, frozen=True, kw_only=True):
    """What one platform tag promises, but for the machine."""

    name: str
    """``manylinux_2_28``, ``musllinux_1_2``, ``android_24``."""
    libc: Libc = "glibc"
    glibc: tuple[int, int]
    """Version of the C library that the tag promises; for Android its API level and 0."""
    aliases: tuple[str, ...]
    """``manylinux2014`` and the like."""
    versions: dict[str, dict[str, frozenset[str]]]
    """Machine -> symbol family (``GLIBC``, ``GLIBCXX`` ...) -> versions that may be needed."""
    libraries: frozenset[str]
    """SONAMEs that every system of the policy has."""
    forbidden: dict[str, frozenset[str]] = {}
    """SONAME -> its inner symbols, which some systems do not export."""


_NAME = re.compile(r"(manylinux|musllinux|android)_(\d+)(?:_(\d+))?")
_LIBCS: dict[str, Libc] = {"manylinux": "glibc", "musllinux": "musl", "android": "android"}


class SymbolNeed(msgspec.Struct, frozen=True, kw_only=True, order=True):
    """A symbol version that a file needs."""

    family: str
    """``GLIBC``, ``GLIBCXX``, ``CXXABI``, ``GCC`` ..."""
    version: str
    path: str
    """The file."""
    library: str
    """Where the file wants it from."""


def parse_policies(data: Iterable[Mapping[str, Any]]) -> tuple[Policy, ...]:
    """Read a policy file of auditwheel's, oldest promise first.

    Raises:
        IntegrityError: it is not in that form.
    """
    policies: list[Policy] = []
    try:
        for item in data:
            found = _NAME.fullmatch(item["name"])
            if found is None:
                continue  # "linux", which promises nothing
            families = item["symbol_versions"]
            policies.append(
                Policy(
                    name=item["name"],
                    libc=_LIBCS[found[1]],
                    glibc=(int(found[2]), int(found[3] or 0)),
                    aliases=tuple(item["aliases"]),
                    versions={
                        machine: {family: frozenset(versions) for family, versions in families[machine].items()}
                        for machine in families
                    },
                    libraries=frozenset(item["lib_whitelist"]),
                    forbidden={name: frozenset(symbols) for name, symbols in item.get("blacklist", {}).items()},
                )
            )
    except (KeyError, TypeError, AttributeError) as error:
        raise IntegrityError(f"not valid platform policies: {error!r}") from error
    return tuple(sorted(policies, key=lambda policy: (policy.libc, policy.glibc)))


def _decode(files: Mapping[str, bytes]) -> tuple[Policy, ...]:
    return tuple(policy for data in files.values() for policy in parse_policies(msgspec.json.decode(data)))


MANYLINUX_POLICIES = Shipped(folder="auditwheel/policy", patterns=("manylinux-policy.json",), decode=_decode)
"""All manylinux policies, lowest glibc first."""
PLATFORM_POLICIES = msgspec.structs.replace(
    MANYLINUX_POLICIES, optional=("musllinux-policy.json", "android-policy.json")
)
"""The manylinux policies, then those of musllinux and Android tags, as far as the installed auditwheel has them."""


def policy_between(version: tuple[int, ...], policies: Sequence[Policy]) -> Policy | None:
    """What a manylinux tag promises for which there is no policy, such as ``manylinux_2_25`` (PEP 600 allows any).

    Its glibc is what the tag says; all else is that of the next policy above, as no data says less. Above the newest
    one only glibc is known. ``None`` for tags of other systems' policies, or below the oldest.
    """
    known = [policy for policy in policies if policy.libc == "glibc"]
    if not known or version < known[0].glibc:
        return None
    above = next((policy for policy in known if policy.glibc >= version), None)
    base = above or known[-1]
    versions = {
        machine: {
            family: _granted(granted, version) if family == "GLIBC" else granted
            for family, granted in families.items()
            if family == "GLIBC" or above is not None
        }
        for machine, families in base.versions.items()
    }
    name = f"manylinux_{version[0]}_{version[1]}"
    return msgspec.structs.replace(base, name=name, glibc=version, aliases=(), versions=versions)


def _granted(granted: frozenset[str], version: tuple[int, ...]) -> frozenset[str]:
    """Versions of glibc up to one: those that a policy lists, and all that may have come since."""
    listed = {text for text in granted if (number := parse_glibc(text)) is None or number <= version}
    return frozenset(listed | {f"{version[0]}.{minor}" for minor in range(version[1] + 1)})


def symbol_needs(elfs: Mapping[str, ElfFacts]) -> tuple[SymbolNeed, ...]:
    """Symbol versions that files need of libraries that are not among them, sorted.

    ``elfs`` maps paths to facts. Files for other than a host's processor (GPU code) count for nothing.
    """
    own = {path.rpartition("/")[2] for path in elfs} | {facts.soname for facts in elfs.values()}
    needs = {
        SymbolNeed(family=family, version=number, path=path, library=need.file)
        for path, facts in elfs.items()
        if facts.architecture is not None
        for need in facts.versions_needed
        if need.file not in own
        for family, _, number in (version.partition("_") for version in need.versions)
    }
    return tuple(sorted(needs))


def broken_needs(needs: Iterable[SymbolNeed], policy: Policy, machine: str) -> tuple[SymbolNeed, ...]:
    """The needs that a policy does not grant on a machine. Families that it does not know are none of its business."""
    families = policy.versions.get(machine, {})
    return tuple(need for need in needs if need.family in families and need.version not in families[need.family])


def lowest_policy(needs: Sequence[SymbolNeed], policies: Iterable[Policy], machine: str) -> Policy | None:
    """The policy of the lowest glibc that grants all needs; ``None`` where there is none."""
    ordered = sorted(policies, key=lambda policy: policy.glibc)
    return next(
        (policy for policy in ordered if machine in policy.versions and not broken_needs(needs, policy, machine)), None
    )


def promised_libraries(elfs: Mapping[str, ElfFacts], policies: Sequence[Policy], machine: str | None) -> frozenset[str]:
    """SONAMEs that files may leave to the system: those of the lowest policy that they fit, of the newest otherwise.

    ``policies`` are of one kind of system, lowest first.
    """
    reached = lowest_policy(symbol_needs(elfs), policies, machine) if machine is not None else None
    return (reached or policies[-1]).libraries


def highest_versions(needs: Iterable[SymbolNeed]) -> dict[str, str]:
    """Symbol family -> highest version that the needs name, for families that are numbered; sorted by name."""
    best: dict[str, tuple[int, ...]] = {}
    for need in needs:
        version = parse_glibc(need.version)
        if version is not None:
            best[need.family] = max(version, best.get(need.family, ()))
    return {family: ".".join(map(str, version)) for family, version in sorted(best.items())}


def parse_glibc(text: str) -> tuple[int, ...] | None:
    """``2.28`` -> ``(2, 28)``; ``None`` for what is no dotted number."""
    return tuple(map(int, text.split("."))) if re.fullmatch(r"\d{1,4}(\.\d{1,4}){1,3}", text, re.ASCII) else None
