"""The audit of a wheel: one pass over its bytes, then every rule. What the command and the build's audit share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import msgspec

from axletree.binary.elf.symbols import Symbols, read_symbols
from axletree.binary.zip.directory import read_directory
from axletree.binary.zip.members import PassingMember
from axletree.check.dist import observe_dist
from axletree.check.engine import apply_rules
from axletree.check.rules.archive import ARCHIVE_RULES, Refusal
from axletree.check.rules.wheel.all import DIST_RULES
from axletree.check.verdict import complete_policy, judge_platform
from axletree.core.errors import IntegrityError
from axletree.core.findings import Finding, worst
from axletree.package.libraries.linkage import Need
from axletree.package.libraries.policy import highest_versions
from axletree.package.libraries.providers import Provider
from axletree.package.libraries.torch_symbols import TorchMatch, match_torch
from axletree.package.libraries.unused import find_unused
from axletree.package.wheel.scan import scan_wheel

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from axletree.binary.zip.directory import ZipEntry
    from axletree.check.dist import DistFacts
    from axletree.check.engine import Rule
    from axletree.package.libraries.policy import Policy
    from axletree.package.libraries.torch_symbols import TorchExports


_LARGEST = 32 << 20
"""Bytes of a file whose symbols are read for themselves: to unpack larger ones once more takes too long."""


class AuditReport(msgspec.Struct, frozen=True, kw_only=True):
    """What an audit found."""

    file: str
    """File name of the wheel or conda package, or the folder."""
    project: str
    version: str
    tags: tuple[str, ...]
    """Build string of a conda package."""
    size: int
    """Bytes of the archive; 0 for a folder."""
    files: int
    elf_files: int
    floors: dict[str, str]
    """Machine -> lowest platform tag that the symbol versions of its files allow."""
    glibc: str | None
    """Highest glibc version that a file needs."""
    versions: dict[str, str]
    """Symbol family (``GLIBC``, ``GLIBCXX``, ``CXXABI``, ``GCC``) -> highest version that a file needs from outside."""
    verdict: str
    """Whether its files comply with its platform tags, in one sentence."""
    needs: tuple[Need, ...]
    """Each needed library and its provider."""
    compared: tuple[str, ...] = ()
    """What the paths of a conda package were compared with; nothing is known about paths of other packages."""
    unhashed: tuple[str, ...] = ()
    """Large files whose hash was not compared with RECORD."""
    torch: TorchMatch | None = None
    """Comparison of its files with the named torch."""
    findings: tuple[Finding, ...]
    """Worst first."""

    @property
    def failed(self) -> bool:
        """Whether there is a finding of severity error."""
        return worst(self.findings) == "error"


def audit_buffer(
    buffer: bytes | memoryview,
    *,
    filename: str,
    policies: Sequence[Policy],
    providers: Sequence[Provider] = (),
    driver: Iterable[str] = (),
    provided_by: Mapping[str, Iterable[str]] | None = None,
    wanted: str | None = None,
    glibc: str | None = None,
    torch: TorchExports | None = None,
    compilers: Sequence[str] = (),
    hashes: Literal["all", "small"] = "small",
) -> AuditReport:
    """Audit a wheel that is in memory or mapped.

    Args:
        buffer: the wheel.
        filename: its name without folders.
        policies: policies of platform tags, oldest first.
        providers: known owners of libraries.
        driver: further patterns of SONAMEs that GPU drivers bring.
        provided_by: distribution -> patterns of SONAMEs that it brings.
        wanted: a policy or platform tag that it should fit, such as ``manylinux_2_28``.
        glibc: highest glibc version that it may need, such as ``2.28``.
        torch: what the torch that it will meet exports.
        compilers: compilers that its build asked for.
        hashes: ``small`` leaves the hashes of large members unread; the report names them.

    Raises:
        IntegrityError: the file is no wheel, or its archive is damaged or unsafe.
        UsageError: there is no such policy, or it does not fit the wheel's machine.
    """
    scan = scan_wheel(buffer, filename=filename, hashes=hashes)
    elfs = {member.path: member.facts for member in scan.elfs}
    others = tuple(driver)
    machines = {elf.architecture for elf in elfs.values() if elf.architecture}
    facts = observe_dist(
        scan,
        policies=policies,
        providers=(*providers, *([Provider(name="GPU driver", kind="driver", sonames=others)] if others else [])),
        provided_by={name: tuple(values) for name, values in (provided_by or {}).items()},
        wanted=None if wanted is None else complete_policy(wanted, sorted(machines), policies),
        glibc=glibc,
        torch=None if torch is None else match_torch(buffer, elfs, torch, filename=filename),
        compilers=compilers,
        unused=find_unused(elfs, _reader(buffer, filename)),
    )
    return report_facts(facts)


def _reader(buffer: bytes | memoryview, filename: str) -> Callable[[str], Symbols | None]:
    """What reads the symbols of a member that is not too large."""
    entries: dict[str, ZipEntry] = {}

    def read(path: str) -> Symbols | None:
        if not entries:
            entries.update({entry.name: entry for entry in read_directory(buffer, archive=filename)})
        if entries[path].size > _LARGEST:
            return None
        try:
            return read_symbols(PassingMember(buffer, entries[path], archive=filename), name=path)
        except IntegrityError:  # names without end, in a file that is fine otherwise
            return None

    return read


def refused_report(filename: str, error: IntegrityError) -> AuditReport:
    """The report about an archive that can't be opened: its findings name the members at fault."""
    return AuditReport(
        file=filename,
        project="",
        version="",
        tags=(),
        size=0,
        files=0,
        elf_files=0,
        floors={},
        glibc=None,
        versions={},
        verdict="not checked because the archive was rejected",
        needs=(),
        findings=apply_rules(ARCHIVE_RULES, Refusal(file=filename, problems=error.problems)),
    )


def report_facts(facts: DistFacts, *, rules: Sequence[Rule[DistFacts]] = DIST_RULES) -> AuditReport:
    """Apply rules, and say what was found."""
    wheel = facts.wheel
    versions = highest_versions(facts.symbols)
    return AuditReport(
        file=wheel.filename,
        project=wheel.name.project,
        version=wheel.name.version,
        tags=wheel.name.tags,
        size=wheel.size,
        files=len(wheel.members),
        elf_files=len(facts.elfs),
        floors=facts.floors,
        glibc=versions.get("GLIBC"),
        versions=versions,
        verdict=judge_platform(facts),
        needs=facts.needs,
        unhashed=wheel.unhashed,
        torch=facts.torch,
        findings=apply_rules(rules, facts),
    )
