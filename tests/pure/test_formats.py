"""Files of other versions of Axletree: each is one problem that says what, where and what to do."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import TYPE_CHECKING

import pytest

from axletree.check.host.facts import decode_facts
from axletree.core.errors import AxletreeError
from axletree.core.formats import format_problem
from axletree.environment.description import decode_description
from axletree.recipe.conda_locks import parse_conda_lock
from axletree.recipe.locks import parse_lock
from axletree.recipe.parse import parse_recipe

if TYPE_CHECKING:
    from collections.abc import Callable


REMAKE = "make it"
NEWER = f"update Axletree, or {REMAKE}"


@pytest.mark.parametrize(
    ("found", "known", "message", "hint"),
    [
        (2, 1, "the file has format 2, which a newer version of Axletree wrote; this version supports 1", NEWER),
        (0, 1, "the file has format 0, which an older version of Axletree wrote; this version supports 1", REMAKE),
        (
            "1.10",
            "1.9",
            "the file has format 1.10, which a newer version of Axletree wrote; this version supports 1.9",
            NEWER,
        ),
        ("x", "1", "the file has a format that Axletree does not recognize: 'x'", REMAKE),
        (True, 1, "the file has a format that Axletree does not recognize: True", REMAKE),
        (None, 1, "the file has a format that Axletree does not recognize: None", REMAKE),
        ("9" * 99, "1", f"the file has a format that Axletree does not recognize: '{'9' * 39}", REMAKE),
    ],
)
def test_which_version_wrote_it_and_what_to_do(found: object, known: int | str, message: str, hint: str) -> None:
    problem = format_problem(found, known, file="f", remake=REMAKE)
    assert problem is not None
    assert (problem.file, problem.message, problem.hint) == ("f", message, hint)


def test_the_format_of_this_version_is_no_problem() -> None:
    assert format_problem(1, 1, file="f", remake="") is None
    assert format_problem("1.0", "1.0", file="f", remake="") is None


def _description(data: bytes) -> None:
    decode_description(data, PurePosixPath("/e"))


READERS: list[tuple[Callable[[str], object], str, str]] = [
    (
        lambda text: parse_recipe(text, filename="f"),
        'name = 3\n\nschema = 2\nnew-key = ""\n',
        "rewrite the recipe for format 1",
    ),
    (lambda text: parse_lock(text, file="f"), 'lock-version = "2.0"\nnew-key = ""\n', "run `axletree lock RECIPE`"),
    (
        lambda text: parse_conda_lock(text, file="f"),
        "lock-version = 3\nnew-key = 1\n",
        "run `axletree lock RECIPE`",
    ),
    (lambda text: decode_facts(text.encode(), file="f"), '{"schema": 9}', "axletree facts --json > host.json"),
    (lambda text: _description(text.encode()), '{"schema": 2, "new": {}}', "axletree env create"),
]


@pytest.mark.parametrize(("read", "text", "hint"), READERS)
def test_a_file_of_a_newer_version_is_one_problem(read: Callable[[str], object], text: str, hint: str) -> None:
    with pytest.raises(AxletreeError) as raised:
        read(text)
    (problem,) = raised.value.problems
    assert "a newer version of Axletree wrote; this version supports " in problem.message
    assert problem.file
    assert (problem.hint or "").startswith("update Axletree, or ")
    assert hint in (problem.hint or "")


@pytest.mark.parametrize(("read", "text", "hint"), READERS)
def test_a_file_of_an_older_version_is_one_problem(read: Callable[[str], object], text: str, hint: str) -> None:
    old = (
        text.replace('"2.0"', '"0.1"')
        .replace("= 2", "= 0")
        .replace("= 3", "= 0")
        .replace(": 2", ": 0")
        .replace(": 9", ": 0")
    )
    with pytest.raises(AxletreeError) as raised:
        read(old)
    (problem,) = raised.value.problems
    assert "an older version of Axletree wrote; this version supports " in problem.message
    assert hint in (problem.hint or "")


def test_a_recipe_of_another_version_says_in_which_line() -> None:
    with pytest.raises(AxletreeError) as raised:
        parse_recipe("name = 3\n\nschema = 2\n", filename="r.toml")
    assert str(raised.value).startswith("r.toml:3: schema: the file has format 2, ")


def test_what_is_no_number_is_a_fault_beside_others() -> None:
    with pytest.raises(AxletreeError) as raised:
        parse_recipe('schema = "one"\n', filename="r.toml")
    assert len(raised.value.problems) > 1
    assert "schema" in {problem.key for problem in raised.value.problems}
