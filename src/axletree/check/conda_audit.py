"""The audit of a conda package."""

from __future__ import annotations

from typing import TYPE_CHECKING

from axletree.check.audit import AuditReport
from axletree.check.engine import apply_rules, worst_first
from axletree.check.rules.conda import CONDA_RULES, observe_conda
from axletree.check.rules.conda_beside import BESIDE_RULES, CondaBeside
from axletree.check.rules.wheel.platform import GLIBC_PROMISE
from axletree.check.rules.wheel.unused import DRIVER_UNUSED
from axletree.check.tree import RULES_OF_CODE, audit_tree
from axletree.core.units import plural
from axletree.package.conda.beside import comparable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from axletree.package.conda.needs import LibraryOwners
    from axletree.package.conda.reader import CondaFacts
    from axletree.package.libraries.policy import Policy
    from axletree.package.wheel.tree import TreeScan


def audit_conda(
    facts: CondaFacts,
    code: TreeScan,
    *,
    policies: Sequence[Policy],
    owners: LibraryOwners,
    others: Sequence[CondaFacts] = (),
    glibc: str | None = None,
) -> AuditReport:
    """The report about a conda package: whether it is what it says, how its code is made, and if it fits among others.

    Args:
        facts: of the package.
        code: its machine code.
        policies: policies of platform tags, oldest first: who knows them can name the versions that files need.
        owners: what is known of the owners of paths and libraries.
        others: packages that it is to be installed beside.
        glibc: highest glibc version that it may need.
    """
    files = [member.path for member in facts.members]
    tree = audit_tree(
        code,
        label=facts.filename,
        files=files,
        policies=policies,
        providers=owners.providers,
        glibc=glibc,
        rules=(*RULES_OF_CODE, DRIVER_UNUSED, GLIBC_PROMISE),
    )
    elfs = {member.path: member.facts for member in code.elfs}
    beside = CondaBeside(facts=facts, elfs=elfs, owners=owners, others=others)
    index = facts.index
    subdir = (index and index.subdir) or "an unspecified platform"
    floor = next(
        (spec.partition(" ")[2] for spec in (index.depends if index else ()) if spec.startswith("__glibc ")), ""
    )
    return AuditReport(
        file=facts.filename,
        project=facts.name,
        version=facts.version,
        tags=(facts.build,),
        size=facts.size,
        files=sum(member.kind != "folder" for member in facts.members),
        elf_files=sum(member.elf for member in facts.members),
        floors={},
        glibc=tree.glibc,
        versions=tree.versions,
        verdict=f"a conda package for {subdir}" + (f", glibc {floor}" if floor else ""),
        needs=(),
        compared=_compared(facts, owners, others),
        findings=worst_first(
            (*apply_rules(CONDA_RULES, observe_conda(facts)), *apply_rules(BESIDE_RULES, beside), *tree.findings)
        ),
    )


def _compared(facts: CondaFacts, owners: LibraryOwners, others: Sequence[CondaFacts]) -> tuple[str, ...]:
    """What its paths were compared with: of all other packages nothing is known."""
    listed = sum(bool(each.paths) for each in owners.known.neighbour)
    given = comparable(facts, others)
    return (
        f"known paths of {plural(listed, 'package')}",
        *((f"all paths of {plural(given, 'package')}",) if others else ()),
    )
