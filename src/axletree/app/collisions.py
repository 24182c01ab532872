"""Two files of one name: what several variants publish must be the same file, or called something else."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from axletree.core.errors import Problem, PublishError
from axletree.core.units import some_of
from axletree.plan.actions.listing import ListingFacts
from axletree.plan.actions.spec import facts_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from axletree.core.records import StageRecord
    from axletree.plan.graph import PlannedStage


def refuse_collisions(listings: Iterable[tuple[PlannedStage, StageRecord]]) -> None:
    """See that whatever has one name in the output folder has one content, whichever variants made it.

    A package that is built once for each value of an axis, and does not say so in its name, is fine as long as the
    builds give the same file: then it is there once.

    Args:
        listings: stages that list packages, with their records.

    Raises:
        PublishError: names each such file, and for each the variants that have another one.
    """
    seen: dict[str, tuple[str, PlannedStage]] = {}
    problems: list[Problem] = []
    for stage, record in listings:
        facts = facts_of(record, ListingFacts)
        for file in facts.files:
            path = PurePosixPath(facts.root, file.filename).as_posix()
            digest, first = seen.setdefault(path, (file.sha256, stage))
            if digest != file.sha256:
                problems.append(_problem(path, first, stage))
    if problems:
        raise PublishError(*problems)


def _problem(path: str, one: PlannedStage, other: PlannedStage) -> Problem:
    differ = [axis for axis, value in other.step.axes.items() if one.step.axes.get(axis) != value] or ["axis"]
    slots = "-".join(f"{{{axis}}}" for axis in differ)
    some, others = some_of(one.variants, 3), some_of(other.variants, 3)
    return Problem(
        file=path,
        message=f"the variants {some} and {others} would produce different files with this name",
        hint=f'give each variant its own index root (index = "{slots}") or label '
        f'(local = "{slots}"), or build the package once for all of them',
    )
