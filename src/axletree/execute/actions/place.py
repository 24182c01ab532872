"""Put the recipe's other sources into its source: trees become one, no file is written."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from axletree.core.errors import StageError
from axletree.core.trees import make_tree
from axletree.execute.context import Outcome

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from axletree.core.trees import Entry
    from axletree.execute.context import ActionContext
    from axletree.plan.actions.place import PlaceParameters


def run(context: ActionContext[PlaceParameters]) -> Outcome:
    """Put each source at its place; an empty folder there, as a submodule leaves one, makes room.

    Raises:
        StageError: the source has files at a place, or above it.
    """
    whole = list(context.tree("source").entries)
    for name, into in context.parameters.folders.items():
        entries = context.tree(f"source:{name}").entries
        whole = _with(whole, [_moved(entry, f"{into}/{entry.path}") for entry in entries], name, into, context)
    for name, into in context.parameters.files.items():
        (entry,) = context.tree(f"source:{name}").entries
        whole = _with(whole, [_moved(entry, into)], name, into, context)
    return Outcome(tree=context.store.put_tree(make_tree(whole)))


def _moved(entry: Entry, path: str) -> Entry:
    return msgspec.structs.replace(entry, path=path)


def _with(
    whole: Sequence[Entry], more: Sequence[Entry], name: str, into: str, context: ActionContext[PlaceParameters]
) -> list[Entry]:
    """Entries with those of one more source.

    Raises:
        StageError: its place is taken.
    """
    taken = taken_by(whole, into)
    if taken is not None:
        key = f"sources.{name}.into"
        setting = context.request.local.setting
        place = key if setting is None else setting.place(key)
        raise StageError(
            f"source {name!r} cannot be put into {into} ({place}): the recipe's source already contains {taken}",
            hint="choose another folder for `into`, or remove that path from the source",
        )
    return [entry for entry in whole if not _is_room(entry, into)] + list(more)


def taken_by(entries: Iterable[Entry], into: str) -> str | None:
    """The first path of a tree that stands in the way of something at ``into``."""
    for entry in entries:
        below = f"{entry.path}/".startswith(f"{into}/")
        above = f"{into}/".startswith(f"{entry.path}/")
        if (below or above) and not _is_room(entry, into):
            return entry.path
    return None


def _is_room(entry: Entry, into: str) -> bool:
    """Whether it is an empty folder that the place lies in, or is."""
    return entry.kind == "directory" and f"{into}/".startswith(f"{entry.path}/")
