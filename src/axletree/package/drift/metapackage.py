"""The parts that a metapackage's extras bring: of ``cuda-toolkit[cublas]==13.0.3`` what cuda-toolkit 13.0.3 says."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
from packaging.utils import canonicalize_name

from axletree.core.errors import Problem, UsageError
from axletree.package.drift.requirements import RequirementOrigin, of_metadata
from axletree.package.wheel.metadata import parse_requirement

if TYPE_CHECKING:
    from collections.abc import Iterable

    from packaging.requirements import Requirement

    from axletree.package.drift.evidence import Evidence
    from axletree.package.drift.names import DependencyTable
    from axletree.package.wheel.metadata import Metadata


def requires_extras(project: str, evidence: Iterable[Evidence]) -> tuple[tuple[Evidence, Requirement], ...]:
    """The statements of wheels that require a project with extras."""
    found = [
        (each, requirement)
        for each in evidence
        if each.column == "wheel" and each.project == canonicalize_name(project) and "[" in each.text
        if (requirement := parse_requirement(each.text)) is not None
    ]
    return tuple({text.text: (text, requirement) for text, requirement in found}.values())


def fan_out(
    metadata: Metadata, evidence: Iterable[Evidence], *, file: str, table: DependencyTable, pythons: tuple[str, ...]
) -> tuple[Evidence, ...]:
    """All statements, where those about a metapackage's parts say what the metapackage's wheel says of them.

    Args:
        metadata: of the metapackage's wheel.
        evidence: all statements so far.
        file: name of that wheel.
        table: what dependencies are called.
        pythons: Python versions that matter.

    Raises:
        UsageError: its version is not the one that is required.
    """
    known = tuple(evidence)
    brought: list[Evidence] = []
    for whole, requirement in requires_extras(metadata.name, known):
        if not requirement.specifier.contains(metadata.version, prereleases=True):
            message = f"{whole.file} requires {requirement.name}{requirement.specifier}, but this is {metadata.version}"
            raise UsageError(Problem(file=file, message=message))
        extras = {canonicalize_name(extra) for extra in requirement.extras}
        origin = RequirementOrigin(
            column="wheel", role="requires", file=file, phase="run", gpus=whole.gpus, pythons=pythons, when=whole.when
        )
        note = f"provided by {whole.text.split(';')[0]}"
        parts = of_metadata(metadata, origin, table=table)
        asked = (part for part in parts if canonicalize_name(part.optional) in extras)
        brought += [msgspec.structs.replace(part, optional="", note=note) for part in asked]
    unique = {(each.dependency, each.spec, each.gpus): each for each in brought}
    names = {each.dependency for each in brought}
    kept = [each for each in known if not (each.range is None and each.column == "wheel" and each.dependency in names)]
    return (*kept, *unique.values())
