"""File patterns: what each takes and leaves, what is none, and the same as a reference that tries name by name."""

from __future__ import annotations

from fnmatch import translate
from functools import cache
from re import fullmatch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from axletree.core.globs import EXAMPLES, Example, glob_fault, glob_matcher

MORE = (
    Example("**", "", ("a\nb",), ()),
    Example("*", "", ("x", ".x"), ("x/y",)),
    Example("**/**/a", "", ("a", "x/a"), ("a/b",)),
    Example("a/**/**", "", ("a", "a/b", "a/b/c"), ("ab",)),
    Example("a/**/b/**/c", "", ("a/b/c", "a/x/b/y/z/c", "a/b/b/c"), ("a/c", "a/b/x", "b/c")),
    Example("**/a/b/**/c", "", ("a/b/c", "x/a/a/b/y/c"), ("a/x/b/c",)),
    Example("a*b*a", "", ("aba", "abba", "axbxa"), ("ab", "aa", "abab")),
    Example(".build-id/**/*.debug", "", (".build-id/x.debug", ".build-id/ab/c.debug"), ("x/.build-id/a.debug",)),
    Example("x[+-9]y", "", ("x.y", "x3y"), ("x/y",)),
    Example("x[]^]y", "", ("x]y", "x^y"), ("xay",)),
    Example("x[!]]y", "", ("xay",), ("x]y", "x/y")),
    Example("x[a-]y", "", ("xay", "x-y"), ("xby",)),
    Example("x[[&|~-]y", "", ("x[y", "x&y", "x-y"), ("xay",)),
)


@pytest.mark.parametrize("example", [*EXAMPLES, *MORE], ids=lambda example: example.pattern)
def test_what_a_pattern_takes(example: Example) -> None:
    assert glob_fault(example.pattern) is None
    matches = glob_matcher((example.pattern,))
    assert [path for path in example.takes if not matches(path)] == []
    assert [path for path in example.leaves if matches(path)] == []


@pytest.mark.parametrize(
    ("pattern", "words"),
    [
        ("", "cannot match a path"),
        ("/usr", "starts with '/'"),
        ("a/", "write '/**'"),
        ("a//b", "cannot match a path"),
        ("../a", "cannot match a path"),
        ("a/./b", "cannot match a path"),
        ("a\\b", "cannot match a path"),
        ("a**", "'**' in 'a**'"),
        ("lib/**.so", "'**' in '**.so'"),
        ("***", "'**' in '***'"),
        ("x/a**b/y", "'**' in 'a**b'"),
        ("x/[ab/c]", "an unclosed '[' in '[ab'"),
        ("[!]", "an unclosed '['"),
        ("[]", "an unclosed '['"),
        ("lib[z-a]", "range 'z-a'"),
        ("lib/*.{a,so}", "alternatives in braces"),
    ],
)
def test_what_is_no_pattern(pattern: str, words: str) -> None:
    assert words in (glob_fault(pattern) or "")


def test_a_pattern_of_many_stars_is_tried_once() -> None:
    """Python's engine would take years for each of these if it went back."""
    name, folders = "a" * 250, "a/" * 2000
    assert not glob_matcher(("*a" * 30 + "b",))(name)
    assert not glob_matcher(("**/a/" * 30 + "b",))(f"{folders}a")


def test_no_glob_takes_nothing_and_several_take_what_one_takes() -> None:
    assert not glob_matcher(())("x")
    matches = glob_matcher(("a", "b/*"))
    assert [path for path in ("a", "b", "b/c", "c") if matches(path)] == ["a", "b/c"]


def reference(glob: str, path: str) -> bool:
    """Names by recursion, each by the standard library's own translation."""
    parts, names = glob.split("/"), path.split("/")

    @cache
    def match(at: int, name: int) -> bool:
        if at == len(parts):
            return name == len(names)
        if parts[at] == "**":
            return any(match(at + 1, later) for later in range(name, len(names) + 1))
        return (
            name < len(names) and fullmatch(translate(parts[at]), names[name]) is not None and match(at + 1, name + 1)
        )

    return match(0, 0)


SEGMENTS = st.one_of(st.just("**"), st.text("ab.*?[]!", min_size=1, max_size=5).filter(lambda part: "**" not in part))
NAMES = st.text("ab.[]!", min_size=1, max_size=4).filter(lambda name: name not in {".", ".."})


@given(
    st.lists(SEGMENTS, min_size=1, max_size=5).map("/".join).filter(lambda glob: glob_fault(glob) is None),
    st.lists(NAMES, min_size=1, max_size=5).map("/".join),
)
def test_as_the_reference(glob: str, path: str) -> None:
    assert glob_matcher((glob,))(path) == reference(glob, path)
