"""What is said of a stage or package later holds against the overrides that came before it.

An ``[[override]]`` changes a stage's keys for some variants. Whoever extends a recipe, or sets a key for one run, names
the stage's key and means what the stage gets, so their word is repeated behind each override that would undo it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

    from axletree.recipe.faults import Path

_OWNERS = {"stages": "stage", "packages": "package"}
_ADDED = {"stage": ("env", "config", "options", "expect"), "package": ("conda",)}
"""Tables that an override adds keys to."""
_REPLACED = {"stage": ("commands", "resources"), "package": ()}
"""Keys that an override replaces whole."""


def prevailing(overrides: object, path: Path, value: object) -> Iterator[dict[str, Any]]:
    """Overrides that keep a new value where earlier ones would replace it, for the same variants.

    Args:
        overrides: the earlier ones, as the document has them.
        path: the key that was written, such as ``("stages", "build", "env", "FORCE_CUDA")``.
        value: what was written.
    """
    owner = _OWNERS.get(str(path[0])) if len(path) > 2 else None
    if owner is None or not isinstance(overrides, list):
        return
    name, field = path[1], str(path[2])
    for override in overrides:
        theirs = override.get(field) if isinstance(override, dict) else None
        if theirs is None or not _names(override.get(owner), name):
            continue
        ours = _kept(owner, field, theirs, path[3:], value)
        if ours is not None:
            condition = {"when": override["when"]} if "when" in override else {}
            yield {**condition, owner: name, field: ours}


def _names(named: object, name: object) -> bool:
    return named == name or (isinstance(named, list) and name in named)


def _kept(owner: str, field: str, theirs: object, rest: Path, value: object) -> object | None:
    """The field of the override to repeat; ``None`` where the earlier one does not touch what was written."""
    if field in _REPLACED[owner]:
        return {**theirs, rest[0]: value} if rest and isinstance(theirs, dict) else None if rest else value
    if field not in _ADDED[owner] or not isinstance(theirs, dict):
        return None
    written = {rest[0]: value} if len(rest) == 1 else value if not rest and isinstance(value, dict) else {}
    return {key: each for key, each in written.items() if key in theirs and not isinstance(each, list)} or None
