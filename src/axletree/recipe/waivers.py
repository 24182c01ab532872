"""Findings of the audit that a recipe accepts, each with its reason."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from msgspec import Meta

from axletree.core.globs import glob_fault
from axletree.recipe.base import Condition, Table
from axletree.recipe.faults import Fault

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from axletree.recipe.faults import Path


class Waiver(Table, frozen=True, kw_only=True):
    """An accepted finding of the audit: it is still reported, with the reason, but does not fail the audit."""

    rule: Annotated[str, Meta(description="Rule of the finding, such as `dist/needed-unresolved`.")]
    where: Annotated[str, Meta(description="File pattern for the place that the finding names.")]
    reason: Annotated[str, Meta(min_length=1, description="Why the finding is accepted.")]
    when: Annotated[Condition, Meta(description="Only for variants that match: axis -> value or list of values.")] = {}


def waiver_faults(waivers: Sequence[Waiver], path: Path) -> Iterator[Fault]:
    """Patterns that can match nothing, reasons that say nothing, and what is waived twice."""
    met: dict[tuple[str, str, str], int] = {}
    for number, waiver in enumerate(waivers):
        at: Path = (*path, number)
        fault = glob_fault(waiver.where)
        if fault is not None:
            yield Fault(path=(*at, "where"), message=f"{waiver.where!r} {fault}")
        if not waiver.reason.strip():
            yield Fault(path=(*at, "reason"), message="the reason is empty", hint="say why the finding is accepted")
        first = met.setdefault((waiver.rule, waiver.where, str(waiver.when)), number)
        if first != number:
            yield Fault(
                path=at, message=f"this entry waives the same findings as waive[{first}]", hint="remove one of the two"
            )
