"""Whether the rules that a recipe names are rules of the audit."""

from __future__ import annotations

from typing import TYPE_CHECKING

from axletree.core.errors import RecipeError
from axletree.core.near import nearest
from axletree.recipe.documents import problems_of
from axletree.recipe.faults import Fault

if TYPE_CHECKING:
    from axletree.recipe.documents import Document
    from axletree.recipe.model import Recipe


def refuse_unknown_rules(recipe: Recipe, document: Document) -> None:
    """Say which waivers are for rules that no audit has.

    Raises:
        RecipeError: there are some; each with its line and the nearest rule.
    """
    named = [
        (("packages", name, "waive", number, "rule"), waiver.rule)
        for name, package in recipe.packages.items()
        for number, waiver in enumerate(package.waive)
    ]
    if not named:
        return
    # Hundreds of rules, for the few recipes that waive one.
    from axletree.check.rules.conda import CONDA_RULES  # noqa: PLC0415
    from axletree.check.rules.conda_beside import BESIDE_RULES  # noqa: PLC0415
    from axletree.check.rules.wheel.all import DIST_RULES  # noqa: PLC0415

    known = [*(rule.id for rule in DIST_RULES), *(rule.id for rule in CONDA_RULES), *(rule.id for rule in BESIDE_RULES)]
    faults = [
        Fault(path=path, message=f"unknown audit rule {asked!r}", hint=_hint(asked, known))
        for path, asked in named
        if asked not in known
    ]
    if faults:
        raise RecipeError(*problems_of(document, faults))


def _hint(rule: str, known: list[str]) -> str:
    near = nearest(rule, known)
    return f"did you mean {near!r}?" if near is not None else "`axletree rules` lists the rules"
