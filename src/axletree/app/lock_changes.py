"""What locking did: which files are new, and what they have that those before did not have."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING, Literal

import msgspec

from axletree.app.recipes import problem_at
from axletree.core.errors import HostError
from axletree.host.files import replace_file
from axletree.recipe.defaults import MADE_FROM

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from axletree.app.recipes import LoadedRecipe
    from axletree.core.errors import AxletreeError, Problem
    from axletree.recipe.environments import TargetEnvironment
    from axletree.recipe.locks import PyLock, SourceLock, SourceLocks


Outcome = Literal["written", "unchanged"]


class LockedFile(msgspec.Struct, frozen=True, kw_only=True):
    """A lock file."""

    path: str
    outcome: Outcome
    packages: int
    """Wheels and conda packages of an environment; sources, of the source's lock."""
    size: int | None
    """Bytes to download; ``None`` if unknown."""
    what: str
    """What it pins: the source's file or commit, the environment's name, or the stages."""
    changes: tuple[str, ...] = ()
    """What is new (``+ numpy 2.4.0``) and what is gone (``- numpy 2.3.5``)."""

    @property
    def pinned(self) -> str | None:
        """What each of its packages is; ``None`` where it pins the source or the stages."""
        name = self.path.rpartition("/")[2]
        return "wheel" if name.startswith("pylock.") else "package" if name.startswith("conda-lock.") else None


def in_environment(error: AxletreeError, environment: TargetEnvironment, loaded: LoadedRecipe) -> AxletreeError:
    """The same error, with the line of the environment that it is about, if it does not name a line itself."""
    at = problem_at(loaded, ("environments", environment.name), "")
    place = {name: getattr(at, name) for name in ("file", "line", "key", "excerpt")}
    return type(error)(
        *(each if each.line is not None else msgspec.structs.replace(each, **place) for each in error.problems)
    )


class LockedRecipe(msgspec.Struct, frozen=True, kw_only=True):
    """The locks of a recipe: report of ``lock``."""

    files: tuple[LockedFile, ...]
    missing: tuple[str, ...] = ()
    """Lock files that could not be written because this machine lacks something."""


class PartlyLockedError(HostError):
    """Some locks could not be made because this machine lacks something; the others are written (exit 3)."""

    def __init__(self, *problems: Problem, locked: LockedRecipe) -> None:
        """``locked`` is what there is."""
        super().__init__(*problems)
        self.locked = locked


def pins_of(lock: PyLock | None) -> list[str]:
    """What an environment's lock pins, a line each."""
    return [] if lock is None else [f"{wheel.name} {wheel.version}" for wheel in lock.wheels]


def source_pins(lock: SourceLocks | None) -> list[str]:
    """What the lock of a recipe's sources pins, a line each."""
    if lock is None:
        return []
    own = [] if lock.main is None else [_pin_of(lock.main)]
    return own + [f"{name}: {_pin_of(each)}" for name, each in lock.extras.items()]


def _pin_of(lock: SourceLock) -> str:
    if lock.commit is not None:
        return f"{lock.location} {lock.ref or ''} commit {lock.commit}".replace("  ", " ")
    return f"{lock.filename} sha256 {lock.sha256}"


def defaults_pins(text: str) -> list[str]:
    """What defaults fill in: their lines, without the head and what they were made from."""
    tables = text.partition(f"[{MADE_FROM}]")[0]
    return [line for line in tables.splitlines() if not line.startswith("# ")]


def lines_changed(before: Sequence[str], now: Sequence[str]) -> tuple[str, ...]:
    """Lines that went and came, with ``- `` and ``+ `` in front, in their order."""
    compared = difflib.SequenceMatcher(a=before, b=now, autojunk=False).get_opcodes()
    found: list[str] = []
    for what, from_, to, start, end in compared:
        if what != "equal":
            found += [f"- {line}" for line in before[from_:to] if line]
            found += [f"+ {line}" for line in now[start:end] if line]
    return tuple(found)


def diff_lines(files: Iterable[LockedFile]) -> Iterator[str]:
    """Locks that were written, as a diff; those that changed alike under one head."""
    groups: dict[tuple[str, ...], list[str]] = {}
    for file in files:
        if file.outcome == "written":
            groups.setdefault(file.changes, []).append(file.path)
    for changes, paths in groups.items():
        yield f"locked {', '.join(paths)}"
        yield from (f"  {line}" for line in changes)


def write_locks(folder: Path, texts: Mapping[str, str]) -> None:
    """Write locks, each at once.

    Raises:
        HostError: the folder cannot be written.
    """
    try:
        for name, text in texts.items():
            replace_file(folder / name, text.encode())
    except OSError as error:
        hint = "copy the recipe to a folder that you can write to, and lock it there"
        raise HostError(f"cannot write {error.filename or folder}: {error.strerror}", hint=hint) from error
