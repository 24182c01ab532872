"""What a faulty recipe's author sees: each file in ``recipe_errors`` beside the text that it gives."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from axletree.core.errors import RecipeError
from axletree.recipe.parse import parse_recipe

if TYPE_CHECKING:
    from collections.abc import Callable

FOLDER = Path(__file__).parent / "recipe_errors"
RECIPES = sorted(FOLDER.glob("*.toml"))


@pytest.mark.parametrize("path", RECIPES, ids=lambda path: path.stem)
def test_recipe_error(path: Path, golden: Callable[[str, str], None]) -> None:
    with pytest.raises(RecipeError) as caught:
        parse_recipe(path.read_text(encoding="utf-8"), filename=path.name)
    golden(f"recipe_errors/{path.stem}.txt", f"{caught.value}\n")


def test_no_text_is_left_of_a_recipe_that_is_gone() -> None:
    assert {path.stem for path in FOLDER.glob("*.txt")} <= {path.stem for path in RECIPES}


def test_ten_at_once() -> None:
    with pytest.raises(RecipeError) as caught:
        parse_recipe((FOLDER / "ten-at-once.toml").read_text(encoding="utf-8"), filename="ten-at-once.toml")
    assert len(caught.value.problems) >= 10
