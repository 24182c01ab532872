"""A thread that makes items ahead: the same items, errors in their place, and an end when nobody wants more."""

from __future__ import annotations

import threading
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from axletree.package.ahead import made_ahead

if TYPE_CHECKING:
    from collections.abc import Generator


def _numbers(count: int, made: list[int], closed: list[bool]) -> Generator[int, None, None]:
    try:
        for number in range(count):
            made.append(number)
            yield number
    finally:
        closed.append(True)


@pytest.mark.parametrize("most", [1, 2, 8])
@pytest.mark.parametrize("count", [0, 1, 7, 8, 9, 100])
def test_all_items_come_in_order(count: int, most: int) -> None:
    closed: list[bool] = []
    assert list(made_ahead(_numbers(count, [], closed), most=most)) == list(range(count))
    assert closed == [True]


def test_no_more_than_asked_for_is_made_ahead() -> None:
    made: list[int] = []
    with closing(made_ahead(_numbers(100, made, []), most=3)) as items:
        assert next(items) == 0
        assert len(made) <= 4


def test_an_error_comes_after_the_items_before_it() -> None:
    def failing() -> Generator[int, None, None]:
        yield 1
        yield 2
        message = "damaged"
        raise ValueError(message)

    found: list[int] = []
    with pytest.raises(ValueError, match="damaged"):
        found.extend(made_ahead(failing(), most=4))
    assert found == [1, 2]


def test_who_stops_early_ends_the_thread_and_closes_what_it_read() -> None:
    closed: list[bool] = []
    before = threading.active_count()
    with closing(made_ahead(_numbers(1000, [], closed), most=4)) as items:
        assert next(items) == 0
    assert closed == [True]
    assert threading.active_count() == before
