"""Globs of SDK files: what each takes and leaves, and the same as a reference that tries segment by segment."""

from __future__ import annotations

from fnmatch import translate
from functools import cache
from re import fullmatch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from axletree.package.sdk.globs import glob_fault, glob_matcher


@pytest.mark.parametrize(
    ("glob", "taken", "left"),
    [
        ("lib/lib?.so", ("lib/libz.so",), ("lib/libabc.so", "lib/lib.so", "lib/lib/.so")),
        ("**", ("x", "x/y", "x/y/z", "a\nb"), ()),
        ("*", ("x", ".x"), ("x/y",)),
        ("*.so", ("a.so",), ("lib/a.so", "a.sox", "axso")),
        ("**/*.so", ("a.so", "lib/a.so", "x/y/a.so"), ("a.so/x",)),
        ("lib/**", ("lib", "lib/a", "lib/x/y"), ("libx", "x/lib", "libx/y")),
        ("lib/**/a", ("lib/a", "lib/x/a", "lib/x/y/a"), ("lib/xa", "lib", "lib/a/b")),
        ("**/cmake/**", ("cmake", "cmake/x", "lib/cmake", "lib/cmake/hip/x"), ("cmakes/x", "lib/xcmake/y")),
        ("**/**/a", ("a", "x/a"), ("a/b",)),
        ("a/**/**", ("a", "a/b", "a/b/c"), ("ab",)),
        ("a/**/b/**/c", ("a/b/c", "a/x/b/y/z/c"), ("a/c", "a/b/x")),
        ("a[1].(x)+", ("a[1].(x)+",), ("a1.x",)),
        (".build-id/**/*.debug", (".build-id/x.debug", ".build-id/ab/c.debug"), ("x/.build-id/a.debug",)),
        ("include/hip?", ("include/hip2",), ("include/hip", "include/hip/x", "include/hip22")),
    ],
)
def test_what_a_glob_takes(glob: str, taken: tuple[str, ...], left: tuple[str, ...]) -> None:
    assert glob_fault(glob) is None
    matches = glob_matcher((glob,))
    assert [path for path in taken if not matches(path)] == []
    assert [path for path in left if matches(path)] == []


@pytest.mark.parametrize(
    "glob", ["", "/usr", "a//b", "a/", "../a", "a/./b", "a\\b", "a**", "lib/**.so", "***", "x/a**b/y"]
)
def test_what_is_no_glob(glob: str) -> None:
    assert glob_fault(glob) is not None


def test_no_glob_takes_nothing_and_several_take_what_one_takes() -> None:
    assert not glob_matcher(())("x")
    matches = glob_matcher(("a", "b/*"))
    assert [path for path in ("a", "b", "b/c", "c") if matches(path)] == ["a", "b/c"]


def reference(glob: str, path: str) -> bool:
    """Segments by recursion, each by the standard library's own translation."""
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


SEGMENTS = st.one_of(st.just("**"), st.text("ab.*?", min_size=1, max_size=4).filter(lambda part: "**" not in part))
NAMES = st.text("ab.", min_size=1, max_size=4).filter(lambda name: name not in {".", ".."})


@given(
    st.lists(SEGMENTS, min_size=1, max_size=5).map("/".join).filter(lambda glob: glob_fault(glob) is None),
    st.lists(NAMES, min_size=1, max_size=5).map("/".join),
)
def test_as_the_reference(glob: str, path: str) -> None:
    assert glob_matcher((glob,))(path) == reference(glob, path)
