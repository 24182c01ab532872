"""The image of a step, as keys have it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from axletree.core.errors import LockError, Problem
from axletree.recipe.locks import REMAKE

if TYPE_CHECKING:
    from axletree.core.images import StageImage
    from axletree.plan.inputs import PlanInputs


def image_of(name: str | None, inputs: PlanInputs) -> StageImage | None:
    """The locked image that a stage or test names; ``None`` where its programs see the host's files.

    Raises:
        LockError: the image is not locked.
    """
    if name is None:
        return None
    if name not in inputs.images:
        raise LockError(Problem(key=f"images.{name}", message=f"image {name!r} is not locked", hint=REMAKE))
    return inputs.images[name]
