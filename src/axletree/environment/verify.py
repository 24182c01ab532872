"""What tools looked at beside what they should have looked at: facts for the rules of an environment.

Expected is the environment's own order, then what the tool takes with no variable set. Paths are real ones (links
followed), so that a folder under two names is one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

Way = Literal["include", "link", "run"]


class Origin(msgspec.Struct, frozen=True, kw_only=True):
    """A folder in a search order, and what added it."""

    path: str
    by: str
    """``CPATH``, ``LD_LIBRARY_PATH``, ``the compiler itself``, an environment's layer."""


class Choice(msgspec.Struct, frozen=True, kw_only=True):
    """A header or library that a tool used, and the one that it should have used."""

    name: str
    """``hip/hip_version.h``, ``libstdc++.so.6``."""
    actual: str
    expected: str
    by: str
    """What added the folder of the used file to the order."""
    actual_version: str | None = None
    """For libstdc++: its newest symbol version, ``GLIBCXX_3.4.28``."""
    expected_version: str | None = None


class Proof(msgspec.Struct, frozen=True, kw_only=True):
    """The files that one compiler, its linker and the loader used."""

    compiler: str
    """As it is called: ``g++``."""
    path: str
    kind: Literal["gcc", "clang", "nvcc", "hipcc"]
    version: str
    include: tuple[Origin, ...] = ()
    """Where it searches for headers."""
    headers: tuple[Choice, ...] = ()
    """Headers of the probe, and those that are in several folders of the order."""
    linked: tuple[Choice, ...] = ()
    loaded: tuple[Choice, ...] = ()
    moved: tuple[str, ...] = ()
    """Folders that should come first, but that the compiler left in its own place."""
    trouble: tuple[str, ...] = ()
    """Failed steps, with the output of the tool."""


class Verified(msgspec.Struct, frozen=True, kw_only=True):
    """All that was seen in an environment."""

    environment: str
    """Its folder; ``system`` if none is active."""
    include: tuple[str, ...] = ()
    """Folders in the order that the environment wants, real paths."""
    link: tuple[str, ...] = ()
    run: tuple[str, ...] = ()
    proofs: tuple[Proof, ...] = ()


def merged(wanted: Sequence[str], own: Sequence[str]) -> tuple[str, ...]:
    """The order that is expected: what the environment wants, then what the tool has itself."""
    return tuple(dict.fromkeys([*wanted, *own]))


def inversions(expected: Sequence[str], actual: Sequence[str]) -> Iterator[tuple[str, str]]:
    """(early, late): folders that a tool looks into in another order than is expected.

    ``early`` comes first though ``late`` should, or though it should not be there at all.
    """
    rank = {path: number for number, path in enumerate(expected)}
    for number, early in enumerate(actual):
        for late in actual[number + 1 :]:
            if late in rank and rank.get(early, len(rank)) > rank[late]:
                yield early, late


def shadowed(choices: Sequence[Choice]) -> tuple[Choice, ...]:
    """Those that are not as expected."""
    return tuple(choice for choice in choices if choice.actual != choice.expected)
