"""Data files that ship with Axletree, or with what it depends on: which they are, and what understands them.

Whoever understands a file declares it beside its reader. The disk is the business of ``host/shipped_data``.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterable, Mapping
from typing import Generic, Protocol, TypeVar

import msgspec

from axletree.core.errors import IntegrityError, Problem

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

TABLES = "axletree.backends/data"
"""Where tables of names, providers, sizes and bounds lie."""


class Shipped(msgspec.Struct, Generic[T_co], frozen=True, kw_only=True):
    """Data that ships as one file or several."""

    folder: str = TABLES
    """Package, and folder in it."""
    patterns: tuple[str, ...]
    """Names of the files, or patterns of several: what comes first is read first."""
    optional: tuple[str, ...] = ()
    """More, which may be missing."""
    decode: Callable[[Mapping[str, bytes]], T_co]
    """What the files say: name -> content, in order."""


class Decoder(Protocol[T_co]):
    """Reads one file; raises an IntegrityError that has its name."""

    def __call__(self, data: bytes, *, file: str) -> T_co:
        """What the file says."""


def read_table(data: bytes, kind: type[T], *, file: str, wrong: str) -> T:
    """A file of TOML as one value; keys of tables may be numbers.

    Raises:
        IntegrityError: it is not in that form; the message begins with ``wrong``.
    """
    try:
        return msgspec.convert(tomllib.loads(data.decode("utf-8")), kind, str_keys=True)
    except (ValueError, msgspec.ValidationError) as error:
        raise IntegrityError(Problem(file=file, message=f"{wrong}: {error}")) from error


def shipped_file(name: str, decode: Decoder[T]) -> Shipped[T]:
    """One table."""
    return Shipped(patterns=(name,), decode=lambda files: decode(files[name], file=name))


def shipped_list(pattern: str, decode: Decoder[Iterable[T]], *, folder: str = TABLES) -> Shipped[tuple[T, ...]]:
    """A list in several files, in the order of the files' names. An error of it has the problems of all files."""

    def decode_all(files: Mapping[str, bytes]) -> tuple[T, ...]:
        found: list[T] = []
        problems: list[Problem] = []
        for name, data in files.items():
            try:
                found += decode(data, file=name)
            except IntegrityError as error:
                problems += error.problems
        if problems:
            raise IntegrityError(*problems)
        return tuple(found)

    return Shipped(folder=folder, patterns=(pattern,), decode=decode_all)
