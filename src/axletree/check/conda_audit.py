"""The audit of a conda package."""

from __future__ import annotations

from typing import TYPE_CHECKING

from axletree.check.audit import AuditReport
from axletree.check.engine import apply_rules
from axletree.check.rules.conda import CONDA_RULES, observe_conda

if TYPE_CHECKING:
    from axletree.package.conda.reader import CondaFacts


def audit_conda(facts: CondaFacts) -> AuditReport:
    """The report about a conda package, ``.conda`` or ``.tar.bz2``: whether it is what it says.

    What its libraries need is not judged: other packages of the prefix bring that.
    """
    index = facts.index
    subdir = (index and index.subdir) or "a platform that it does not name"
    glibc = next(
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
        glibc=None,
        versions={},
        verdict=f"a conda package for {subdir}" + (f", glibc {glibc}" if glibc else ""),
        needs=(),
        findings=apply_rules(CONDA_RULES, observe_conda(facts)),
    )
