"""The audit of an unpacked tree: a wheel's content, a build's output, a site-packages folder.

What only an archive can be asked (RECORD, names of members, sizes) is left out; what no ``.dist-info`` folder says, the
tags and what is required, is not judged.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
from packaging.utils import canonicalize_name

from axletree.check.audit import AuditReport, report_facts
from axletree.check.dist import observe_dist
from axletree.check.rules.wheel.elf import ELF_RULES
from axletree.check.rules.wheel.gpu import GPU_RULES
from axletree.check.rules.wheel.linkage import LINKAGE_RULES
from axletree.check.rules.wheel.machine import MACHINE_RULES
from axletree.check.rules.wheel.platform import PLATFORM_RULES
from axletree.check.rules.wheel.python import PYTHON_RULES
from axletree.check.rules.wheel.runtimes import RUNTIME_RULES
from axletree.check.rules.wheel.search import SEARCH_RULES
from axletree.check.rules.wheel.unused import UNUSED_RULES
from axletree.package.wheel.info import WheelInfo
from axletree.package.wheel.metadata import Metadata
from axletree.package.wheel.names import WheelName
from axletree.package.wheel.scan import WheelFacts, WheelMember, WheelScan

if TYPE_CHECKING:
    from collections.abc import Sequence

    from axletree.binary.formats import CodeFormat
    from axletree.check.dist import DistFacts
    from axletree.check.engine import Rule
    from axletree.package.libraries.policy import Policy
    from axletree.package.libraries.providers import Provider
    from axletree.package.wheel.tree import TreeScan

_RULES: tuple[Rule[DistFacts], ...] = (
    *LINKAGE_RULES,
    *UNUSED_RULES,
    *SEARCH_RULES,
    *RUNTIME_RULES,
    *ELF_RULES,
    *GPU_RULES,
)
_RULES_OF_TAGS: tuple[Rule[DistFacts], ...] = (*PLATFORM_RULES, *MACHINE_RULES, *PYTHON_RULES)


RULES_OF_CODE: tuple[Rule[DistFacts], ...] = (*ELF_RULES, *GPU_RULES)
"""Those that need to know nothing of what else is installed."""


class Distribution(msgspec.Struct, frozen=True, kw_only=True):
    """A ``.dist-info`` folder of a tree."""

    metadata: Metadata
    wheel_info: WheelInfo | None = None


def audit_tree(
    scan: TreeScan,
    *,
    label: str,
    files: Sequence[str],
    distributions: Sequence[Distribution] = (),
    policies: Sequence[Policy],
    providers: Sequence[Provider] = (),
    provided_by: dict[str, tuple[str, ...]] | None = None,
    wanted: str | None = None,
    glibc: str | None = None,
    rules: Sequence[Rule[DistFacts]] | None = None,
) -> AuditReport:
    """Audit the machine code of a tree that is laid out like site-packages.

    Args:
        scan: its machine code.
        label: what the report calls it.
        files: paths of all its files.
        distributions: its ``.dist-info`` folders.
        policies: policies of platform tags, oldest first.
        providers: known owners of libraries.
        provided_by: distribution -> patterns of SONAMEs that it brings.
        wanted: a platform tag that it should fit.
        glibc: highest glibc version that it may need.
        rules: else all that a tree can be asked, those about tags where it has some.
    """
    name = _name(scan, label, distributions)
    wheel = WheelFacts(
        filename=label,
        name=name,
        dist_info="",
        metadata=_metadata(distributions),
        wheel_info=None,
        record=None,
        members=_members(scan, files),
    )
    facts = observe_dist(
        WheelScan(wheel=wheel, elfs=scan.elfs, damaged_elfs=scan.damaged_elfs),
        policies=policies,
        providers=providers,
        provided_by=provided_by,
        wanted=wanted,
        glibc=glibc,
    )
    if rules is None:
        tagged = len(distributions) == 1 and distributions[0].wheel_info is not None
        rules = (*_RULES, *(_RULES_OF_TAGS if tagged or wanted or glibc else ()))
    return report_facts(facts, rules=rules)


def _name(scan: TreeScan, label: str, distributions: Sequence[Distribution]) -> WheelName:
    """Name and tags of the one distribution; else what says nothing but the machine."""
    if len(distributions) == 1 and (info := distributions[0].wheel_info) is not None:
        tags = [tag.split("-") for tag in info.tags if tag.count("-") == 2]
        metadata = distributions[0].metadata
        python, abi, platform = (".".join(dict.fromkeys(tag[place] for tag in tags)) for place in range(3))
        project = canonicalize_name(metadata.name)
        return WheelName(project=project, version=metadata.version, python=python, abi=abi, platform=platform)
    machine = next((elf.facts.architecture for elf in scan.elfs if elf.facts.architecture), "")
    return WheelName(project=label, version="0", python="py3", abi="none", platform=f"linux_{machine}")


def _metadata(distributions: Sequence[Distribution]) -> Metadata | None:
    """What all of them require, and what is there: both will be where the tree is used."""
    if not distributions:
        return None
    requires = [value for each in distributions for value in each.metadata.requires]
    present = [each.metadata.name for each in distributions] if len(distributions) > 1 else []
    return Metadata(fields=tuple(("Requires-Dist", value) for value in (*requires, *present)))


def _members(scan: TreeScan, files: Sequence[str]) -> tuple[WheelMember, ...]:
    formats: dict[str, CodeFormat] = {path: "pe" if kind == "pe" else "mach-o" for path, kind in scan.others}
    formats |= {elf.path: "elf" for elf in scan.elfs}
    return tuple(
        WheelMember(path=path, size=0, compressed=0, sha256="", format=formats.get(path, "")) for path in files
    )
