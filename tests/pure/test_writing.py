"""Values written as TOML are the same values when they are read."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from axletree.recipe.writing import toml_document, toml_value

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
SCALARS = TEXTS | st.booleans() | st.integers(-(2**63), 2**63 - 1)
LEAVES = SCALARS | st.lists(SCALARS, max_size=3)
TABLES: Any = st.recursive(LEAVES, lambda inner: st.dictionaries(TEXTS, inner, max_size=3), max_leaves=8)
DOCUMENTS = st.dictionaries(
    TEXTS, TABLES | st.lists(st.dictionaries(TEXTS, TABLES, max_size=3), max_size=3), max_size=5
)


@given(DOCUMENTS)
def test_what_is_written_is_read(document: dict[str, Any]) -> None:
    assert tomllib.loads(toml_document(document, {})) == document


@given(TEXTS)
def test_no_text_reaches_a_terminal_as_it_is(text: str) -> None:
    assert toml_value(text).isprintable()


RECIPES = sorted((Path(__file__).parents[2] / "recipes").glob("*.toml"))
SHIPPED = {path.name: path.read_text(encoding="utf-8") for path in RECIPES}


@pytest.mark.parametrize("name", SHIPPED)
def test_shipped_recipes(name: str) -> None:
    document = tomllib.loads(SHIPPED[name])
    assert tomllib.loads(toml_document(document, {})) == document
