"""Texts of one owner, filled in at a variant."""

from __future__ import annotations

from typing import TYPE_CHECKING

from axletree.recipe.axes import project
from axletree.recipe.placeholders import render
from axletree.recipe.properties import properties_at

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from axletree.recipe.model import Recipe


class Filler:
    """Fills texts of one owner, which sees some axes."""

    def __init__(self, recipe: Recipe, values: Mapping[str, str], axes: Iterable[str]) -> None:
        """``values`` are those of all axes; the texts may read ``axes`` only."""
        self.allowed = frozenset(axes)
        self.axes = project(values, self.allowed)
        self.values = {**values, "name": recipe.name, "version": recipe.version}
        self.properties = properties_at(recipe, values)

    def one(self, text: str) -> str:
        """A text without placeholders.

        Raises:
            RecipeError: it reads what the owner does not see, or a property that a value lacks.
        """
        return self.with_given(text, {})

    def with_given(self, text: str, given: Mapping[str, str]) -> str:
        """As :meth:`one`, for a text that may read ``given`` too."""
        values = {**self.values, **given}
        return render(text, values, allowed=self.allowed | given.keys(), properties=self.properties)

    def each(self, texts: Iterable[str]) -> tuple[str, ...]:
        """All of some texts."""
        return tuple(self.one(text) for text in texts)

    def table(self, texts: Mapping[str, str]) -> dict[str, str]:
        """The texts of a table under their keys."""
        return {key: self.one(text) for key, text in texts.items()}
