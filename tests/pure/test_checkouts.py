"""The tables ``[checkouts.NAME]`` of a recipe: their faults with lines, and what they are filled in."""

from __future__ import annotations

import pytest

from axletree.core.errors import RecipeError
from axletree.recipe.checkouts import repositories
from axletree.recipe.parse import parse_recipe

HEAD = 'name = "torch"\nversion = "2.6"\n[source]\n'
GIT = 'git = "https://host.example/torch"\nref = "v{version}"\n'


def test_the_git_source_is_the_main_repository() -> None:
    text = HEAD + GIT + '[checkouts.vision]\ngit = "https://host.example/{name}vision"\npin = "ci/vision.txt"\n'
    main, vision = repositories(parse_recipe(text, filename="r.toml"))
    assert (main.name, main.ref, main.folder, main.submodules) == ("torch", "v2.6", "torch", False)
    assert (vision.git, vision.pin, vision.folder) == ("https://host.example/torchvision", "ci/vision.txt", "vision")


def test_else_the_first_table_is() -> None:
    text = HEAD + 'path = "x"\n[checkouts.torch]\n' + GIT + '[checkouts.a]\ngit = "file:///a"\npin = "p"\n'
    assert [one.name for one in repositories(parse_recipe(text, filename="r.toml"))] == ["torch", "a"]


@pytest.mark.parametrize(
    ("table", "line", "said"),
    [
        ('[checkouts.a]\ngit = "https://h.example/a"', 6, "exactly one of ref and pin is required, found neither"),
        ('[checkouts.a]\ngit = "https://h.example/a"\nref = "x"\npin = "y"', 6, "found both"),
        ('[checkouts.a]\ngit = "ext::sh -c x"\nref = "x"', 7, "must begin with https:// or file://"),
        ('[checkouts.a]\ngit = "https://u:p@h.example/a"\nref = "x"', 7, "a user name or password"),
        ('[checkouts.a]\ngit = "https://h.example/a"\nref = "-x"', 8, "cannot be empty or start with '-'"),
        ('[checkouts.a]\ngit = "https://h.example/a"\npin = "../x"', 8, "must be a relative path inside the folder"),
        ('[checkouts.a]\ngit = "https://h.example/a"\nref = "x"\nfolder = "torch/a"', 9, "overlaps"),
        ('[checkouts.torch]\ngit = "https://h.example/a"\nref = "x"', 6, "already has this name"),
        ('[checkouts.a]\ngit = "https://h.example/a"\nref = "{gpu}"', 8, "gpu"),
    ],
)
def test_faults_have_lines(table: str, line: int, said: str) -> None:
    with pytest.raises(RecipeError) as caught:
        parse_recipe(f"{HEAD}{GIT}{table}\n", filename="r.toml")
    problem = caught.value.problems[0]
    assert (problem.line, len(caught.value.problems)) == (line, 1)
    assert said in problem.message


def test_the_main_checkout_has_no_pin() -> None:
    with pytest.raises(RecipeError, match="the first checkout cannot have a pin"):
        parse_recipe(HEAD + 'path = "x"\n[checkouts.a]\ngit = "file:///a"\npin = "p"\n', filename="r.toml")
