"""Results of work that was done at once, or one error that tells everything that went wrong."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from axletree.core.errors import AxletreeError, HostError, IntegrityError

if TYPE_CHECKING:
    from collections.abc import Iterable
    from concurrent.futures import Future

T = TypeVar("T")


def all_results(pending: Iterable[Future[T]]) -> list[T]:
    """What all of some work gave, in its order; waits for it.

    Raises:
        HostError: some of it failed so. All deliberate errors are told.
        IntegrityError: the same, where none is of the host.
        Exception: an error that is none of ours comes before those.
    """
    work = list(pending)
    errors = [error for done in work if (error := done.exception()) is not None]
    told = [error for error in errors if isinstance(error, AxletreeError)]
    for error in errors:
        if error not in told:
            raise error
    if told:
        kind = HostError if any(isinstance(error, HostError) for error in told) else IntegrityError
        raise kind(*(problem for error in told for problem in error.problems))
    return [done.result() for done in work]
