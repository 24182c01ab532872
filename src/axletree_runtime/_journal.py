"""What an expanded devel tree says of itself: the mark that makes it count, and the list of what was made.

Both files lie in the tree and come into being with it, by the same rename. The mark is small: whether the tree is what
the installed packages ask for is told from it and a few ``stat`` calls. While a tree is changed in place, the list has
the old and the new, and the mark is the last thing to be written: who finds a mark that does not fit looks at all
members.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from ._devel_payload import Member

if TYPE_CHECKING:
    from pathlib import Path

MARK = "_devel.json"
MEMBERS = "_devel_members.json"
SCHEMA = 1


@dataclass(frozen=True)
class Mark:
    """Of which payload and packages a tree was made."""

    sdk: str
    version: str
    site: str
    """The site directory whose packages it mirrors."""
    size: int
    mtime: int
    """Of the payload, nanoseconds."""
    digest: str
    """Of the payload, as RECORD has it; empty where that is unknown."""
    mode: str
    """How files of the other packages were put into it: hardlink, symlink, copy, reflink."""
    asked: str = "auto"
    """The mode that was asked for."""
    symlinks: bool = True
    """Whether symbolic links could be made."""
    settled: bool = False
    """Whether all that belongs to making it was done, too: RECORD says no more than it has to."""
    packages: dict[str, list[int]] = field(default_factory=dict)
    """Platform folder -> inode, time and size of its ``_sdk.json``: another one after each installation."""
    schema: int = SCHEMA


@dataclass(frozen=True)
class Members:
    """The payload's listing, and what lies in the tree."""

    payload: tuple[Member, ...]
    made: dict[str, list[Any] | str]
    """Path -> size and time (seconds) of a file and the platform folder that it was taken from, or text of a link."""


def read_mark(root: Path) -> Mark | None:
    """The mark of a tree; None where there is none that this version understands."""
    raw = _read(root / MARK)
    if raw is None or raw.get("schema") != SCHEMA:
        return None
    try:
        return Mark(**raw)
    except TypeError:
        return None


def write_mark(root: Path, mark: Mark, beside: Path) -> None:
    """Write it anew, or not at all; ``beside`` is where it is before it is renamed."""
    _write(root / MARK, asdict(mark), beside)


def read_members(root: Path) -> Members | None:
    """The list of a tree; None where it is missing or damaged."""
    raw = _read(root / MEMBERS)
    try:
        return None if raw is None else Members(tuple(Member(*each) for each in raw["payload"]), dict(raw["made"]))
    except (KeyError, TypeError, ValueError):
        return None


def write_members(root: Path, members: Members, beside: Path) -> None:
    """Write it anew, or not at all; ``beside`` is where it is before it is renamed."""
    _write(root / MEMBERS, {"payload": members.payload, "made": members.made}, beside)


def _read(path: Path) -> dict[str, Any] | None:
    try:
        raw = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return None
    return raw if isinstance(raw, dict) else None


def _write(path: Path, content: dict[str, Any], beside: Path) -> None:
    beside.write_text(json.dumps(content, separators=(",", ":"), sort_keys=True), encoding="utf-8")
    beside.replace(path)
