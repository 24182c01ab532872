"""What was probably meant by an unknown name."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


def nearest(name: str, known: Iterable[str], *, cutoff: float = 0.6) -> str | None:
    """The known name most like ``name``; ``None`` if none is similar, from 0 to 1, by at least ``cutoff``."""
    return next(iter(similar(name, known, most=1, cutoff=cutoff)), None)


def similar(name: str, known: Iterable[str], *, most: int = 3, cutoff: float = 0.6) -> list[str]:
    """At most ``most`` known names like ``name``, the most similar one first.

    Names of the same letters in another order come first: ``pipy`` is ``pypi``, which difflib finds only half alike.
    """
    import difflib  # noqa: PLC0415 (only on error paths: start-up time)

    names = list(known)
    mixed_up = [each for each in names if sorted(each) == sorted(name)]
    return list(dict.fromkeys([*mixed_up, *difflib.get_close_matches(name, names, n=most, cutoff=cutoff)]))[:most]
