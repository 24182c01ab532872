"""Unpack a built wheel into a tree, laid out as it would lie in site-packages."""

from __future__ import annotations

from typing import TYPE_CHECKING

from axletree.execute.context import Outcome
from axletree.host.wheels import unpack_wheel
from axletree.plan.actions.build import BuiltWheel

if TYPE_CHECKING:
    from axletree.execute.context import ActionContext
    from axletree.plan.actions.install import InstallParameters


def run(context: ActionContext[InstallParameters]) -> Outcome:
    """Unpack the wheel, checked against its RECORD.

    Raises:
        IntegrityError: the wheel is damaged or contradicts its RECORD.
    """
    wheel = next(entry for entry in context.tree("wheel").entries if entry.path.endswith(".whl"))
    folder = context.materialise("wheel", "wheel")
    site = context.work / "site"
    unpack_wheel(folder / wheel.path, site)
    return Outcome(tree=context.store.ingest(site, adopt=True), facts=BuiltWheel(wheel=wheel.path))
