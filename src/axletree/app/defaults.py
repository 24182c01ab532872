"""The defaults of a recipe that states no stage: read from its companion folder, and whether they are still right."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

import msgspec

from axletree.core.errors import Problem, RecipeError
from axletree.recipe.defaults import (
    DEFAULTS,
    DEFAULTS_LOCK,
    MadeFrom,
    axes_seen,
    changes,
    is_short,
    parse_defaults,
    stand_in,
)
from axletree.recipe.locks import REMAKE, SOURCE_LOCK, parse_source

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from axletree.app.lock_places import LockPlaces
    from axletree.recipe.defaults import Defaults
    from axletree.recipe.documents import Document
    from axletree.recipe.locks import SourceLock

MEASURED = ("pyproject.toml", "setup.py", "setup.cfg", "CMakeLists.txt", "meson.build", "Cargo.toml")
"""Files of a source folder that decide its defaults, beside the one that has its version."""
NOT_LOCKED = "the stages are not locked"
_ABSENT = "absent"


def find_defaults(
    document: Document, places: LockPlaces, *, folder: Path | None
) -> tuple[Defaults | None, tuple[Problem, ...]]:
    """The defaults of a recipe, and why they can't be built with; no defaults where it states its stages.

    Args:
        document: The recipe's, without defaults.
        places: Where its locks are.
        folder: The folder that it builds, if it builds one.
    """
    values = document.values
    if not is_short(values):
        return None, ()
    file, instead = places.find(DEFAULTS_LOCK), stand_in(values)
    try:
        defaults = parse_defaults(file.read_text(encoding="utf-8"), filename=str(file))
    except FileNotFoundError:
        message = f"{NOT_LOCKED}: {file} does not exist"
        return instead, (Problem(file=document.filename, message=message, hint=REMAKE),)
    except (OSError, UnicodeDecodeError) as error:
        return instead, (Problem(file=str(file), message=f"the file cannot be read: {error}", hint=REMAKE),)
    except RecipeError as error:
        return instead, error.problems
    made = defaults.made_from
    assert made is not None  # noqa: S101 (of what was parsed)
    source = "" if folder is not None else pin_of(_source_lock(places)) or made.source
    found = changes(made, made_from(values, folder, source=source, files=made.files))
    if not found:
        return defaults, ()
    known = {key: defaults.tables[key] for key in ("name", "version") if key in defaults.tables}
    instead = stand_in(values, name=str(known.get("name", "")))
    stale = msgspec.structs.replace(instead, tables=instead.tables | known)
    return stale, tuple(
        Problem(message=f"the lock is out of date: {each}", file=str(file), hint=REMAKE) for each in found
    )


def made_from(values: Mapping[str, Any], folder: Path | None, *, source: str, files: Iterable[str] = ()) -> MadeFrom:
    """What decides a recipe's defaults now.

    Args:
        values: The recipe's document.
        folder: The folder that it builds, if it builds one.
        source: What pins its source otherwise.
        files: Of a source folder, files that count beside :data:`MEASURED`.
    """
    names = dict.fromkeys((*MEASURED, *files))
    digests = {} if folder is None else {name: _digest(folder / name) for name in names}
    kept = {name: digest for name, digest in digests.items() if digest != _ABSENT or name in files}
    return MadeFrom(defaults=DEFAULTS, axes=axes_seen(values), source=source, files=kept)


def pin_of(lock: SourceLock | None) -> str:
    """What identifies a pinned source; empty where there is no lock."""
    return "" if lock is None else lock.sha256 or lock.commit or ""


def _source_lock(places: LockPlaces) -> SourceLock | None:
    """The source's lock, if there is one that can be read: a build says what is wrong with it."""
    file = places.find(SOURCE_LOCK)
    try:
        return parse_source(file.read_text(encoding="utf-8"), file=str(file))
    except (OSError, UnicodeDecodeError, RecipeError):
        return None


def _digest(file: Path) -> str:
    try:
        return hashlib.sha256(file.read_bytes()).hexdigest()[:16]
    except OSError:
        return _ABSENT
