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
    """A folder in a search order, with who put it there."""

    path: str
    by: str
    """``CPATH``, ``LD_LIBRARY_PATH``, ``the compiler itself``, an environment's layer."""


class Choice(msgspec.Struct, frozen=True, kw_only=True):
    """A header or library that a tool chose, beside the one that it should have chosen."""

    name: str
    """``hip/hip_version.h``, ``libstdc++.so.6``."""
    actual: str
    expected: str
    by: str
    """Who put the actual file's folder into the order."""
    actual_version: str | None = None
    """Of libstdc++: the newest symbol version that it has, ``GLIBCXX_3.4.28``."""
    expected_version: str | None = None


class Proof(msgspec.Struct, frozen=True, kw_only=True):
    """What one compiler, with its linker and the loader, was seen to do."""

    compiler: str
    """As it is called: ``g++``."""
    path: str
    kind: Literal["gcc", "clang", "nvcc", "hipcc"]
    version: str
    include: tuple[Origin, ...] = ()
    """Where it looks for headers."""
    headers: tuple[Choice, ...] = ()
    """Headers of the probe, and those that are in more than one folder of the order."""
    linked: tuple[Choice, ...] = ()
    loaded: tuple[Choice, ...] = ()
    moved: tuple[str, ...] = ()
    """Folders that were asked for in front, and that the compiler left at its own place for them."""
    trouble: tuple[str, ...] = ()
    """Steps that did not work, in the tool's own words."""


class Verified(msgspec.Struct, frozen=True, kw_only=True):
    """All that was seen in an environment."""

    environment: str
    """Its folder; ``system`` where none is active."""
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
