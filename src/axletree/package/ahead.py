"""Let a thread of its own make what is wanted next."""

from __future__ import annotations

from collections import deque
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Generator
    from concurrent.futures import Future

T = TypeVar("T")


def made_ahead(items: Generator[T, None, None], *, most: int) -> Generator[T, None, None]:
    """The same items in the same order, of which a thread makes up to ``most`` before they are asked for.

    It pays where making them is mostly work that needs no Python: hashing, unpacking, reading. Whoever may stop before
    the end closes the generator, so that the thread ends then and ``items`` is closed.

    Raises:
        Exception: what ``items`` raises, when its turn comes.
    """
    pool = ThreadPoolExecutor(max_workers=1)
    waiting: deque[Future[list[T]]] = deque()
    try:
        waiting.extend(pool.submit(_next, items) for _ in range(most))
        while found := waiting.popleft().result():
            waiting.append(pool.submit(_next, items))
            yield found[0]
    finally:
        pool.shutdown(cancel_futures=True)
        items.close()


def _next(items: Generator[T, None, None]) -> list[T]:
    """The next item, in a list that is empty at the end."""
    for item in items:
        return [item]
    return []
