"""``index``: audited wheels and the pages that list them."""

from __future__ import annotations

from axletree.plan.actions.listing import ListingFacts, ListingParameters
from axletree.plan.actions.spec import ActionSpec

SPEC = ActionSpec(
    module="axletree.execute.actions.index", revision=2, parameters=ListingParameters, facts=ListingFacts, dated=True
)
