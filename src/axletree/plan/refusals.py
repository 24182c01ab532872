"""Why nothing was published, for each variant of a run: packages of a run are published together or not at all."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from axletree.core.errors import render_problem
from axletree.core.units import and_more, some_of
from axletree.plan.actions.listing import ListingFacts
from axletree.plan.actions.spec import facts_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from axletree.core.errors import Problem
    from axletree.core.records import StageRecord
    from axletree.plan.graph import PlannedStage


def refusals(
    problems: Sequence[Problem], listings: Iterable[tuple[PlannedStage, StageRecord]], variants: Iterable[str]
) -> Mapping[str, str]:
    """Variant -> why its packages were not published: because of its own ones, or else because of those of others.

    Args:
        problems: What publishing failed of; one about a package has its path in the output folder as its file.
        listings: Stages that list packages, with their records.
        variants: Those of the run.
    """
    makers: dict[str, dict[str, None]] = {}
    for stage, record in listings:
        facts = facts_of(record, ListingFacts)
        for file in facts.files:
            path = PurePosixPath(facts.root, file.filename).as_posix()
            makers.setdefault(path, {}).update(dict.fromkeys(stage.variants))
    named = [problem.file for problem in problems if problem.file is not None]
    rejected = {file: makers[file] for file in named if file in makers}
    others = some_of(list(dict.fromkeys(variant for made in rejected.values() for variant in made)), 3)
    said: dict[str, str] = {}
    for variant in variants:
        own = [problem for problem in problems if variant in rejected.get(problem.file or "", ())]
        if own or not rejected:
            shown = own or problems
            more = f" {and_more(len(shown) - 1, 'error')}" if len(shown) > 1 else ""
            said[variant] = f"not published: {render_problem(shown[0]).partition(chr(10))[0]}{more}"
        else:
            said[variant] = f"not published because packages of {others} were rejected"
    return said
