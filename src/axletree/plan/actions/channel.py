"""``channel``: audited conda packages and the pages that list them."""

from __future__ import annotations

from axletree.plan.actions.listing import ListingFacts, ListingParameters
from axletree.plan.actions.spec import ActionSpec

SPEC = ActionSpec(
    module="axletree.execute.actions.channel", revision=1, parameters=ListingParameters, facts=ListingFacts
)
