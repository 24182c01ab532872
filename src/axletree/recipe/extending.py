"""The keys by which a recipe changes another; :mod:`axletree.recipe.overlay` says what they do."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

Extends = Annotated[
    str | None,
    Meta(
        description=(
            "Recipe that this one changes: the name of a shipped recipe, or the path of a file in this recipe's folder "
            "or below. Tables merge, other values replace the base's, and `[[override]]` and `[[patches]]` are added "
            "after the base's. A recipe with `extends` has its own locks."
        )
    ),
]
Removed = Annotated[
    tuple[str, ...],
    Meta(description="With `extends`: dotted keys of the base to remove, such as `stages.build.env.FORCE_CUDA`."),
]
