"""Sets of versions: compared with what packaging and plain order say of each single version."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from packaging.specifiers import SpecifierSet
from packaging.version import Version

from axletree.package.drift import ranges

if TYPE_CHECKING:
    from packaging.ranges import VersionRange

UNIVERSE = [
    Version(f"{release}{suffix}")
    for release in ("0.9", "1", "1.0.1", "1.1", "1.1.1", "1.2", "1.10", "2", "2.0.1", "3", "1!1.0")
    for suffix in ("", ".dev1", "a1", "a2", "b1", "rc1", ".post1", ".post1.dev2", "+cpu", "+cu130")
]
"""Finals, pre-, post- and dev-releases and local versions, close enough together to fall on both sides of any bound."""

plain = st.sampled_from([version for version in UNIVERSE if version.local is None])
numbers = st.sampled_from(["0.9", "1.0", "1.0.1", "1.1", "1.2", "2.0", "2.0.1", "3.0"])
specifiers = st.lists(
    st.one_of(
        st.builds("{}{}".format, st.sampled_from([">=", "<=", ">", "<", "==", "!="]), plain),
        st.builds("{}{}.*".format, st.sampled_from(["==", "!="]), numbers),
        st.builds("~={}".format, numbers),
    ),
    max_size=3,
).map(",".join)


def members(found: VersionRange) -> set[Version]:
    return {version for version in UNIVERSE if version in found}


@given(specifiers)
def test_a_specifier_set_has_the_versions_that_packaging_takes(text: str) -> None:
    wanted = SpecifierSet(text)
    assert members(ranges.of_specifiers(text)) == {v for v in UNIVERSE if wanted.contains(v, prereleases=True)}


@settings(max_examples=200)
@given(specifiers, specifiers)
def test_algebra_agrees_with_single_versions(one: str, other: str) -> None:
    left, right = ranges.of_specifiers(one), ranges.of_specifiers(other)
    mine, theirs = members(left), members(right)
    assert members(left & right) == mine & theirs
    assert members(left | right) == mine | theirs
    assert members(left - right) == mine - theirs
    assert members(ranges.ANY - left) == set(UNIVERSE) - mine
    match ranges.relate(left, right):
        case "same":
            assert mine == theirs
        case "tighter":
            assert mine <= theirs
        case "disjoint":
            assert not mine & theirs
        case "looser":
            assert not left.is_empty


@given(st.lists(st.tuples(st.sampled_from([">=", "<", ">", "<=", "!=", "=="]), plain), min_size=1, max_size=3))
def test_condas_bounds_mean_what_pep_440s_do(parts: list[tuple[str, Version]]) -> None:
    text = ",".join(f"{operator}{bound}" for operator, bound in parts)
    assert members(ranges.of_conda(text)) == members(ranges.of_specifiers(text))


@pytest.mark.parametrize(
    ("text", "inside", "outside"),
    [
        ("*", ["0", "99"], []),
        ("", ["0"], []),
        (">=1,<2.0a0", ["1", "1.9.9"], ["2.0a0", "2.0.dev1", "2", "0.9"]),
        ("<2", ["1"], ["2", "2.0a0"]),
        ("<2.0a1", ["1", "2.0a0"], ["2", "2.0a1"]),
        ("2.30.*", ["2.30", "2.30.7"], ["2.3", "2.31"]),
        ("=2.30", ["2.30.7"], ["2.31"]),
        ("==2.30", ["2.30", "2.30.0"], ["2.30.7"]),
        ("2.30.7", ["2.30.7"], ["2.30.7.1"]),
        ("1.1|1.3.*", ["1.1", "1.3.9"], ["1.2"]),
        (">=1.13.1,!=1.13.2", ["1.13.1", "1.13.3"], ["1.13.2", "1.13"]),
        ("!=1.2.*", ["1.3"], ["1.2", "1.2.9"]),
        ("~=1.4.2", ["1.4.9"], ["1.5", "1.4.1"]),
        ("1.1.1w", ["1.1.1.23"], ["1.1.1"]),
        (">=2.0_1", ["2.0.post1"], ["2.0"]),
    ],
)
def test_conda_specs(text: str, inside: list[str], outside: list[str]) -> None:
    found = ranges.of_conda(text)
    assert [v for v in inside if Version(v) not in found] == []
    assert [v for v in outside if Version(v) in found] == []


@pytest.mark.parametrize("text", ["^1[.]2$", "(1|2),<3", "1.2-3~", "what", ">=" + "1" * 501])
def test_conda_specs_that_are_not_certain_are_refused(text: str) -> None:
    with pytest.raises(ValueError):
        ranges.of_conda(text)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("", "any version"),
        ("<2,>=1", ">=1,<2"),
        ("==1.2.*", "==1.2.*"),
        (">=2,<1", "nothing"),
        ("~=3.8.0", ">=3.8.0,<3.9"),
        (">1", ">1"),
        ("!=1", "!=1"),
    ],
)
def test_sets_are_described_as_people_write_them(text: str, shown: str) -> None:
    assert ranges.describe(ranges.of_specifiers(text)) == shown


def test_what_a_looser_recipe_allows_too_reads_as_a_bound() -> None:
    beyond = ranges.of_specifiers("<82") - ranges.of_specifiers(">=77.0.3")
    assert ranges.describe(beyond) == "<77.0.3"


def test_arbitrary_equality_counts_as_the_version_that_it_names() -> None:
    assert Version("1.0") in ranges.of_specifiers("===1.0")
    assert ranges.parse_specifiers("===what") is None
    assert ranges.parse_specifiers("=> 1") is None


@given(specifiers, plain)
def test_later_than_a_version_means_each_of_a_set(text: str, version: Version) -> None:
    found = ranges.of_specifiers(text)
    if ranges.is_above(found, version):
        assert all(each > version for each in members(found))


@pytest.mark.parametrize(
    ("own", "specifiers"),
    [("2.30.7", "==2.30.7"), ("20230802.*", "==20230802.*"), (">=2022", ">=2022"), ("!=1.2", "!=1.2"), ("a b", None)],
)
def test_a_version_in_the_tables_form_is_a_set(own: str, specifiers: str | None) -> None:
    expected = None if specifiers is None else ranges.of_specifiers(specifiers)
    assert ranges.of_own(own) == expected
