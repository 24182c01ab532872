"""An environment of another tool as a table of a recipe, with a comment for each line that it has no key for."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import msgspec

from axletree.recipe.toml import shown
from axletree.recipe.writing import toml_key, toml_value

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_NOT_NAME = re.compile(r"[^a-z0-9._-]+")
_LOGIN = re.compile(r"://[^/?#\s]*@|/t/[^/\s]+/")
_TOKEN = re.compile(r"(?<=/t/)[^/\s]+")
_LONGEST = 200


class Note(msgspec.Struct, frozen=True, kw_only=True):
    """What was not carried over as it stands."""

    line: int | None
    """Line of the file; ``None`` for what it does not say."""
    text: str
    """What stands there, without secrets."""
    why: str
    """What became of it, or what to do instead."""


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """A value with the comments that belong to it."""

    text: str
    above: tuple[str, ...] = ()
    behind: str = ""


class Imported(msgspec.Struct, frozen=True, kw_only=True):
    """What a file says of an environment."""

    name: str
    python: str
    channels: tuple[Entry, ...]
    requires: tuple[Entry, ...] = ()
    wheels: tuple[Entry, ...] = ()
    requires_from: str | None = None
    notes: tuple[Note, ...] = ()


def without_secrets(text: str) -> str:
    """A text on one line, without logins and tokens of addresses, control characters and endless tails."""
    safe = _TOKEN.sub("***", shown(" ".join(text.split())))
    return safe if len(safe) <= _LONGEST else f"{safe[: _LONGEST - 3]}..."


def secret_in(text: str) -> bool:
    """Whether an address in a text has a login or a token of a conda server (``/t/TOKEN/``)."""
    return _LOGIN.search(text) is not None


def name_from(text: str) -> str:
    """A name of an environment, from one that another tool allows; empty if nothing of it can be kept."""
    return _NOT_NAME.sub("-", text.lower()).strip("._-")


def said(note: Note) -> str:
    """A note on one line."""
    where = f"line {note.line}, " if note.line is not None else ""
    return f"{where}`{note.text}`: {note.why}"


def recipe_table(imported: Imported, *, source: str) -> str:
    """The table ``[environments.NAME]``.

    Args:
        imported: What was read.
        source: The file that it was read from, as the user named it.
    """
    return "\n".join([*_lines(imported, source), ""])


def _lines(imported: Imported, source: str) -> Iterator[str]:
    yield f"# From {shown(source)}."
    yield from (f"# {said(note)}." for note in imported.notes)
    yield f"[environments.{toml_key(imported.name)}]"
    yield "axes = []"
    yield f"python = {toml_value(imported.python)}"
    yield 'provider = "conda"'
    yield from _list("channels", imported.channels)
    yield from _list("requires", imported.requires)
    if imported.wheels:
        yield from _list("wheels", imported.wheels)
    if imported.requires_from is not None:
        yield f"requires-from = {_value(imported.requires_from)}"


def _list(key: str, entries: Sequence[Entry]) -> Iterator[str]:
    line = f"{key} = [{', '.join(_value(entry.text) for entry in entries)}]"
    if len(line) <= 100 and not any(entry.above or entry.behind for entry in entries):
        yield line
        return
    yield f"{key} = ["
    for entry in entries:
        yield from (f"  # {without_secrets(comment)}" for comment in entry.above)
        yield f"  {_value(entry.text)},{f'  # {without_secrets(entry.behind)}' if entry.behind else ''}"
    yield "]"


def _value(text: str) -> str:
    """A text of a recipe that has no placeholders."""
    return toml_value(text.replace("{", "{{").replace("}", "}}"))
