"""The partition of a tree: total and disjoint, or an error that lists the paths."""

from __future__ import annotations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from axletree.core.errors import IntegrityError
from axletree.core.globs import glob_fault
from axletree.package.partition import Claim, partition

PATHS = (
    "torch/__init__.py",
    "torch/lib/libtorch.so",
    "torch/lib/libtorch_cuda.so",
    "torch/include/ATen/ATen.h",
    "torch/include/c10/c10.h",
    "README.md",
)


def claims(**files: str | tuple[str, ...]) -> dict[str, Claim]:
    """``name=pattern``; a leading ``-`` excludes."""
    found = {}
    for name, texts in files.items():
        patterns = (texts,) if isinstance(texts, str) else texts
        found[name] = Claim(
            files=tuple(text for text in patterns if text[0] != "-"),
            exclude=tuple(text[1:] for text in patterns if text[0] == "-"),
        )
    return found


def test_one_package_takes_all() -> None:
    assert partition(PATHS, claims(all="**")) == {"all": PATHS}


def test_parts_in_the_order_of_the_tree() -> None:
    parts = partition(PATHS, claims(cuda="**/*_cuda.so", devel="**/*.h", rest=("**", "-**/*_cuda.so", "-**/*.h")))
    assert parts == {
        "cuda": ("torch/lib/libtorch_cuda.so",),
        "devel": ("torch/include/ATen/ATen.h", "torch/include/c10/c10.h"),
        "rest": ("torch/__init__.py", "torch/lib/libtorch.so", "README.md"),
    }


def test_what_is_excluded_and_not_taken_is_dropped() -> None:
    assert partition(PATHS, claims(a=("**", "-**/*.h", "-README.md")))["a"] == PATHS[:3]


def test_a_package_may_get_nothing() -> None:
    assert partition(PATHS, claims(a="**", b="nowhere/**"))["b"] == ()


def test_every_fault_is_told_with_its_paths() -> None:
    with pytest.raises(IntegrityError) as caught:
        partition(PATHS, claims(a="torch/lib/*", b="torch/**/*.so", c="**/*.py"))
    assert [problem.message for problem in caught.value.problems] == [
        "packages a and b claim the same files: torch/lib/libtorch.so, torch/lib/libtorch_cuda.so",
        "no package claims torch/include/ATen/ATen.h, torch/include/c10/c10.h, README.md",
    ]


def test_of_many_paths_the_first_are_shown() -> None:
    with pytest.raises(IntegrityError, match="f7 and 92 more"):
        partition([f"f{number}" for number in range(100)], claims(a="other"))


@pytest.mark.parametrize(
    ("pattern", "inside", "outside"),
    [
        ("*", ["a", "a.b"], ["a/b"]),
        ("*.so", ["a.so", ".so"], ["a/b.so", "a.sox", "axso"]),
        ("**", ["a", "a/b/c", "a\nb"], []),
        ("**/*.so", ["a.so", "x/a.so", "x/y/a.so"], ["a.so/b"]),
        ("lib/**", ["lib", "lib/a", "lib/x/y"], ["libx/a", "x/lib/a"]),
        ("lib/**/a", ["lib/a", "lib/x/a", "lib/x/y/a"], ["lib/xa", "lib/x/b"]),
        ("a?c", ["abc"], ["a/c", "ac", "abbc"]),
        ("a[12].(x)+", ["a1.(x)+"], ["a[1].(x)+", "a1xx(x)"]),
        ("include", ["include"], ["include/a"]),
    ],
)
def test_patterns(pattern: str, inside: list[str], outside: list[str]) -> None:
    for path in inside:
        assert partition([path], claims(a=pattern)) == {"a": (path,)}
    for path in outside:
        with pytest.raises(IntegrityError):
            partition([path], claims(a=pattern))


NAMES = st.sampled_from(["a", "b", "ab", "a.so", "b.h"])
TREES = st.lists(st.lists(NAMES, min_size=1, max_size=3).map("/".join), unique=True, max_size=12)
PATTERNS = (
    st.lists(st.sampled_from(["*", "**", "**/", "?", "a", "b", ".so", "/", "*.h"]), min_size=1, max_size=4)
    .map("".join)
    .filter(lambda pattern: glob_fault(pattern) is None)
)
CLAIMS = st.dictionaries(
    st.sampled_from("xyz"),
    st.builds(
        Claim,
        files=st.lists(PATTERNS, min_size=1, max_size=2).map(tuple),
        exclude=st.lists(PATTERNS, max_size=2).map(tuple),
    ),
    min_size=1,
)


@given(TREES, CLAIMS)
def test_each_path_is_in_one_package_or_dropped_or_told(paths: list[str], given_claims: dict[str, Claim]) -> None:
    try:
        parts = partition(paths, given_claims)
    except IntegrityError as error:
        assert error.problems  # noqa: PT017
        return
    taken = [path for part in parts.values() for path in part]
    assert len(taken) == len(set(taken))
    assert set(taken) <= set(paths)
    assert list(parts) == list(given_claims)


@given(TREES, CLAIMS, st.integers(0, 11))
def test_a_path_goes_where_it_goes_whatever_is_beside_it(
    paths: list[str], given_claims: dict[str, Claim], number: int
) -> None:
    assume(paths)
    path = paths[number % len(paths)]
    try:
        parts = partition(paths, given_claims)
    except IntegrityError:
        return
    alone = partition([path], given_claims)
    assert {name for name, part in parts.items() if path in part} == {name for name, part in alone.items() if part}
