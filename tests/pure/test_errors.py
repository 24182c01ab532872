"""What people see of errors: each problem, and a hint that several have once."""

from __future__ import annotations

import pytest

from axletree.core.errors import IntegrityError, Problem, UsageError, damaged_archive, refused_archive
from axletree.host.web import StatusError


def test_a_hint_of_several_problems_is_said_once_after_the_last() -> None:
    links = [Problem(file=name, message="is a link", hint="copy its target") for name in ("a", "b", "c")]
    assert str(UsageError(*links)) == "a: is a link\nb: is a link\nc: is a link\n  hint: copy its target"


def test_a_hint_stays_with_its_problem_where_the_next_has_another() -> None:
    problems = [Problem(message="x", hint="one"), Problem(message="y", hint="two"), Problem(message="z")]
    error = UsageError(*problems)
    assert str(error) == "x\n  hint: one\ny\n  hint: two\nz"
    assert error.problems[0].hint == "one"


def test_a_damaged_archive_is_called_that_and_has_an_action() -> None:
    error = IntegrityError(damaged_archive("x.zip", "the member occurs twice", key="a"))
    assert str(error) == (
        "x.zip: a: damaged archive: the member occurs twice\n  hint: download the file or build it again"
    )
    refused = IntegrityError(refused_archive("x.zip", "the member is encrypted"))
    assert str(refused).startswith("x.zip: unsupported archive: the member is encrypted\n  hint: build the archive")


@pytest.mark.parametrize(
    ("status", "hint"),
    [
        (401, "set the credentials in the URL or in ~/.netrc"),
        (403, "set the credentials in the URL or in ~/.netrc"),
        (404, "check the URL: the server does not have this file"),
        (429, "the server is overloaded or has a fault: try again later"),
        (503, "the server is overloaded or has a fault: try again later"),
        (400, None),
    ],
)
def test_an_answer_has_the_hint_of_its_status(status: int, hint: str | None) -> None:
    error = StatusError("https://example.org/simple/x/", status)
    assert error.problems[0].message == (
        f"example.org answered with HTTP status {status} (requested https://example.org/simple/x/)"
    )
    assert error.problems[0].hint == hint
