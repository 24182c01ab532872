"""``download``: commands of the recipe that fill a folder from the network; its digest is in the recipe."""

from __future__ import annotations

from typing import TYPE_CHECKING

from axletree.core.values import Digest
from axletree.plan.actions.project import CommandParameters
from axletree.plan.actions.spec import ActionSpec

if TYPE_CHECKING:
    from axletree.recipe.target import TargetStage


class DownloadParameters(CommandParameters, frozen=True, kw_only=True):
    """What is run, and what must come of it."""

    sha256: Digest | None = None
    """Digest of the tree; ``None`` where nobody knows it yet, so that the stage tells."""


def parameters(stage: TargetStage) -> DownloadParameters:
    """What a stage of a recipe asks for."""
    sha256 = None if stage.sha256 is None else Digest(stage.sha256)
    return DownloadParameters(directory=stage.directory, env=stage.env, commands=stage.commands, sha256=sha256)


SPEC = ActionSpec(
    of_stage=parameters,
    module="axletree.execute.actions.download",
    revision=1,
    parameters=DownloadParameters,
    network=True,
)
