"""Files for ``requires-from``: what is read, what is refused, with its line."""

from __future__ import annotations

import pytest

from axletree.core.errors import RecipeError
from axletree.recipe.environments import Environment, with_requirements
from axletree.recipe.requirements import parse_requirements


def test_comments_and_empty_lines_are_left_out() -> None:
    text = "# all\n\nnumpy>=2  # why\n  scipy[test] ; python_version > '3.10'\n"
    assert parse_requirements(text, file="r.txt") == ("numpy>=2", "scipy[test] ; python_version > '3.10'")


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("-r other.txt", "options of pip are not supported"),
        ("--index-url https://example.org", "options of pip are not supported"),
        ("numpy==2 --hash=sha256:00", "options of pip are not supported"),
        ("numpy==2 \\", "options of pip are not supported"),
        ("numpy=={numpy}", "placeholders are not supported"),
        ("numpy 2", "not a valid requirement"),
        ("numpy @ https://example.org/numpy.whl", "a requirement with a URL cannot be locked"),
    ],
)
def test_what_is_no_requirement_is_refused_with_its_line(line: str, said: str) -> None:
    with pytest.raises(RecipeError) as caught:
        parse_requirements(f"scipy\n{line}\n", file="r.txt")
    (problem,) = caught.value.problems
    assert (problem.file, problem.line) == ("r.txt", 2)
    assert said in problem.message


def test_they_are_wheels_of_any_environment() -> None:
    venv = with_requirements(Environment(requires=("a",)), ("b",))
    assert (venv.requires, venv.wheels) == (("a", "b"), ())
    conda = with_requirements(Environment(provider="conda", requires=("a",), wheels=("c",)), ("b",))
    assert (conda.requires, conda.wheels) == (("a",), ("c", "b"))
