"""Sizes as text, both ways."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from axletree.core.units import and_more, format_bytes, parse_size, some_lines, some_of


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("1.6 GB", 1_600_000_000),
        ("512 MiB", 512 * 1024**2),
        ("2 GB", 2_000_000_000),
        ("2GB", 2_000_000_000),
        ("1.5 KiB", 1536),
        ("0 B", 0),
        ("0.1 TB", 100_000_000_000),
        (" 3 kB ", 3000),
    ],
)
def test_parse(text: str, size: int) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize("text", ["", "GB", "1", "-1 GB", "1,5 GB", "1e9 B", "1 gb", "1  GB", "٣ GB", "1" * 20 + " B"])
def test_what_is_no_size(text: str) -> None:
    with pytest.raises(ValueError, match="is not a size"):
        parse_size(text)


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (1000, "1.00 kB"),
        (1_600_000_000, "1.60 GB"),
        (1_634_000_000, "1.63 GB"),
        (999_499, "999 kB"),
        (999_501, "1.00 MB"),
        (99_960_000, "100 MB"),
        (5 * 10**15, "5000 TB"),
    ],
)
def test_format(size: int, text: str) -> None:
    assert format_bytes(size) == text


@given(st.integers(0, 10**15))
def test_there_and_back_is_exact_to_three_digits(size: int) -> None:
    assert parse_size(format_bytes(size)) == pytest.approx(size, rel=0.0051)


def test_a_list_shows_its_beginning_and_how_much_is_left() -> None:
    assert [some_of("abcd", most) for most in (1, 3, 4, 9)] == [
        "a and 3 more",
        "a, b, c and 1 more",
        *["a, b, c, d"] * 2,
    ]
    assert some_of(["a b", "c"], 1, separator="; ") == "a b and 1 more"
    assert some_of([], 3) == ""


def test_lines_show_their_beginning_and_how_many_are_left() -> None:
    assert some_lines(["a", "b"], 2) == ["a", "b"]
    assert some_lines(["a"] * 2000, 1) == ["a", "and 1,999 more"]
    assert some_lines(["a", "b"], 1, what="file") == ["a", "and 1 more file"]


def test_what_is_left_may_be_called_by_its_name() -> None:
    assert some_of("abc", 1, what="library") == "a and 2 more libraries"
    assert and_more(1, "library") == "and 1 more library"
