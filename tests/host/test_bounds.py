"""The shipped table of what goes together, and its agreement with torch's own."""

from __future__ import annotations

from axletree.backends.bounds import numbers
from axletree.host.bounds import read_bounds


def test_bounds_of_what_is_not_in_the_table_are_not_known() -> None:
    bounds = read_bounds()
    assert bounds.of_cuda("99.1") is None
    assert bounds.of_cuda("12.4.131") == bounds.of_cuda("12.4")
    assert bounds.of_torch("1.13.1") is None
    newest = bounds.of_torch("2.14.1")
    assert newest is not None
    assert newest.cmake[0] == "3.27"
    assert bounds.of_torch("2.6.0") == bounds.of_torch("2.0")


def test_bounds_are_ranges() -> None:
    for release, bound in read_bounds().cuda.items():
        for low, high in (each for each in (bound.gcc, bound.clang, bound.archs) if each is not None):
            assert low < high, release
        assert numbers(bound.driver) > (400,)
