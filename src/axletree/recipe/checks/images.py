"""The tables ``[images.NAME]``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from axletree.recipe.faults import suggestion
from axletree.recipe.images import NO_IMAGE, image_faults

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from axletree.recipe.faults import Fault
    from axletree.recipe.model import Recipe


def recipe_image_faults(recipe: Recipe) -> Iterator[Fault]:
    """All faults of images."""
    yield from image_faults(recipe.images)


def image_message(recipe: Recipe) -> Callable[[str], str | None]:
    """What says which image a stage or test names that the recipe does not have."""

    def message(name: str) -> str | None:
        if name in recipe.images or name in NO_IMAGE:
            return None
        hint = suggestion(name, recipe.images, "images") or f"add a table [images.{name}]"
        return f"the recipe has no image {name!r}: {hint}"

    return message
