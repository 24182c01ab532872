"""One step of one target, as planning describes it."""

from __future__ import annotations

from typing import Literal

import msgspec

from axletree.core.images import StageImage
from axletree.plan.actions.spec import Parameters
from axletree.recipe.target import TargetResources
from axletree.recipe.target_source import AxisValues


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """One step of one target."""

    name: str
    """Unique in the target: ``build``, ``pack:torch-scatter``, ``test:operators:pip``."""
    action: str
    axes: AxisValues
    parameters: Parameters
    axes_in_key: bool = True
    """Not where the axes only choose parameters: a patch for other variants changes nothing here."""
    needs: dict[str, str] = {}
    """Name of an input -> name of the step that makes it."""
    tools: tuple[str, ...] = ()
    pass_env: tuple[str, ...] = ()
    own_compilers: bool = False
    """Whether its environment brings the compilers, so that those of the host are no part of it."""
    image: StageImage | None = None
    """Root file system that its programs see, if that is not the host's."""
    resources: TargetResources = TargetResources()
    parallel: Literal["auto", "jobs", "tokens", "setuptools"] = "auto"
    workspace: bool = False
    continues: str | None = None
    """Name of the step in whose workspace this one may go on. In no key: it cannot change the result."""
