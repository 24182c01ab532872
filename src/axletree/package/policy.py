"""manylinux policies (PEP 600) as values: which symbol versions and libraries each platform tag lets a wheel use.

The data is auditwheel's; whoever may open files reads it and hands it over parsed.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import msgspec

from axletree.core.errors import IntegrityError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from axletree.binary.elf import ElfFacts


class Policy(msgspec.Struct, frozen=True, kw_only=True):
    """One manylinux policy."""

    name: str
    """``manylinux_2_28``."""
    glibc: tuple[int, int]
    aliases: tuple[str, ...]
    """``manylinux2014`` and the like."""
    versions: dict[str, dict[str, frozenset[str]]]
    """Machine -> symbol family (``GLIBC``, ``GLIBCXX`` ...) -> versions that may be needed."""
    libraries: frozenset[str]
    """SONAMEs that every system of the policy has."""


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
    """Read auditwheel's ``manylinux-policy.json``, lowest glibc first.

    Raises:
        IntegrityError: it is not in that form.
    """
    policies: list[Policy] = []
    try:
        for item in data:
            found = re.fullmatch(r"manylinux_(\d+)_(\d+)", item["name"])
            if found is None:
                continue  # "linux", which promises nothing
            families = item["symbol_versions"]
            policies.append(
                Policy(
                    name=item["name"],
                    glibc=(int(found[1]), int(found[2])),
                    aliases=tuple(item["aliases"]),
                    versions={
                        machine: {family: frozenset(versions) for family, versions in families[machine].items()}
                        for machine in families
                    },
                    libraries=frozenset(item["lib_whitelist"]),
                )
            )
    except (KeyError, TypeError, AttributeError) as error:
        raise IntegrityError(f"manylinux policies in an unknown form: {error!r}") from error
    return tuple(sorted(policies, key=lambda policy: policy.glibc))


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


def glibc_floor(needs: Iterable[SymbolNeed]) -> tuple[int, ...] | None:
    """The highest glibc version that the needs name, such as ``(2, 28)``; ``None`` where they name none.

    ``GLIBC_PRIVATE`` and ``GLIBC_ABI_*`` have no number and are left to the policies.
    """
    versions = [parse_glibc(need.version) for need in needs if need.family == "GLIBC"]
    return max((version for version in versions if version is not None), default=None)


def parse_glibc(text: str) -> tuple[int, ...] | None:
    """``2.28`` -> ``(2, 28)``; ``None`` for what is no dotted number."""
    return tuple(map(int, text.split("."))) if re.fullmatch(r"\d{1,4}(\.\d{1,4}){1,3}", text, re.ASCII) else None
