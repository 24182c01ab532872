"""What ``axletree drift`` reports."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from axletree.core.findings import Finding
from axletree.package.drift.evidence import Column, Confidence, Phase, Role
from axletree.package.drift.ranges import describe
from axletree.package.drift.verdict import Judgement, Verdict

if TYPE_CHECKING:
    from axletree.package.drift.evidence import Evidence
    from axletree.package.drift.verdict import DriftRow


class Compared(msgspec.Struct, frozen=True, kw_only=True):
    """One input and its upstream version."""

    what: str
    """``recipe``, ``source``, ``wheel``, ``conda recipe``."""
    name: str
    version: str
    """Empty if it states none."""
    said_by: str = ""


class Stated(msgspec.Struct, frozen=True, kw_only=True):
    """What one file states: see :class:`axletree.package.drift.evidence.Evidence`."""

    column: Column
    role: Role
    file: str
    line: int | None
    text: str
    spec: str
    confidence: Confidence
    phase: Phase
    when: str
    gpus: tuple[str, ...]
    optional: str
    project: str
    note: str
    range: str | None
    """The versions that it allows, in words; ``None`` if it states none."""

    @property
    def place(self) -> str:
        """Where it stands: ``cmake/Dependencies.cmake:112``."""
        return self.file if self.line is None else f"{self.file}:{self.line}"


class Newest(msgspec.Struct, frozen=True, kw_only=True):
    """The available versions of a dependency."""

    version: str
    """The newest release."""
    file: str
    releases: int
    """Number of versions."""


class Dependency(msgspec.Struct, frozen=True, kw_only=True):
    """Everything known about one dependency."""

    dependency: str
    verdicts: tuple[Verdict, ...]
    """Most severe first, each once."""
    judgements: tuple[Judgement, ...]
    newest: Newest | None
    ci_only: bool
    """Whether upstream only pins it, looks for it or links it."""
    evidence: tuple[Stated, ...]


class DriftReport(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a comparison."""

    recipe: str
    version: str
    """The upstream version of all inputs."""
    inputs: tuple[Compared, ...]
    dependencies: tuple[Dependency, ...]
    """Most severe verdicts first."""
    findings: tuple[Finding, ...]
    """Where upstream contradicts itself."""
    notes: tuple[str, ...]
    """Notes about the inputs."""


def reported(row: DriftRow) -> Dependency:
    """A row of the comparison as it is reported."""
    offer, newest = row.offer, None
    if offer is not None:
        newest = Newest(version=offer.versions[-1][1], file=offer.file, releases=len(offer.versions))
    return Dependency(
        dependency=row.dependency,
        verdicts=row.verdicts,
        judgements=row.judgements,
        newest=newest,
        ci_only=row.secondary,
        evidence=tuple(map(_stated, row.evidence)),
    )


def _stated(evidence: Evidence) -> Stated:
    fields = {name: getattr(evidence, name) for name in Stated.__struct_fields__}
    return Stated(**{**fields, "range": None if evidence.range is None else describe(evidence.range)})
