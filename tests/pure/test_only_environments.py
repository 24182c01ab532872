"""Files with nothing but environments: for `axletree env`, without name, version and source."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from axletree.core.errors import RecipeError
from axletree.recipe.documents import read_document
from axletree.recipe.only_environments import has_only_environments, stood_in
from axletree.recipe.parse import parse_document

if TYPE_CHECKING:
    from axletree.recipe.model import Recipe

TEXT = """\
[axes]
gpu = ["cpu", "cu126"]

[environments.dev]
axes = ["gpu"]
python = "3.12"
provider = "conda"
channels = ["conda-forge"]
requires = ["zlib"]
"""


def parsed(text: str, stem: str = "envs") -> Recipe:
    return parse_document(stood_in(read_document(text, f"{stem}.toml"), stem=stem))


@pytest.mark.parametrize(
    ("stem", "name"), [("envs", "envs"), ("My Env", "my-env"), ("_", "environments"), ("a.b-c", "a.b-c")]
)
def test_a_file_of_environments_needs_nothing_else(stem: str, name: str) -> None:
    recipe = parsed(TEXT, stem)
    assert (recipe.name, recipe.version, recipe.source.path) == (name, "0", ".")
    assert recipe.environments.keys() == {"dev"}


def test_what_it_says_itself_counts() -> None:
    assert parsed(f'name = "ours"\nversion = "2"\n{TEXT}').name == "ours"


@pytest.mark.parametrize("more", ['[stages.x]\naction = "run"\n', '[packages.x]\nfrom = "x"\n', "[tests.t]\n"])
def test_what_builds_needs_a_source(more: str) -> None:
    assert not has_only_environments(read_document(TEXT + more, "x.toml").values)
    with pytest.raises(RecipeError, match="missing required key"):
        parsed(TEXT + more)


def test_without_an_environment_it_is_no_such_file() -> None:
    assert not has_only_environments({})
    assert not has_only_environments({"axes": {"python": ["3.12"]}, "environments": {}})


def test_its_mistakes_have_their_lines() -> None:
    with pytest.raises(RecipeError, match=r"envs\.toml:7: environments\.dev\.provider: unexpected value 'konda'"):
        parsed(TEXT.replace('"conda"', '"konda"'))
