"""``archives``: audited archives and the file of their digests."""

from __future__ import annotations

from axletree.plan.actions.listing import ListingFacts, ListingParameters
from axletree.plan.actions.spec import ActionSpec

SPEC = ActionSpec(
    module="axletree.execute.actions.archives", revision=1, parameters=ListingParameters, facts=ListingFacts
)
