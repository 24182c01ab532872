"""Names that were probably meant."""

import pytest

from axletree.core.near import nearest, similar

KEYS = ("exclude", "git", "path", "pypi", "ref", "url")


@pytest.mark.parametrize(
    ("name", "meant"),
    [("pipy", "pypi"), ("gti", "git"), ("paht", "path"), ("pyp", "pypi"), ("version", None), ("", None)],
)
def test_the_nearest_name(name: str, meant: str | None) -> None:
    assert nearest(name, KEYS) == meant


def test_each_name_once_and_at_most_so_many() -> None:
    assert similar("abc", ["acb", "bac", "abcd", "x"], most=2) == ["acb", "bac"]
    assert similar("abc", ["abc", "acb"]) == ["abc", "acb"]
