"""Change a document: values and their places together, so that a fault still finds where its value was written."""

from __future__ import annotations

import copy
import fnmatch
from typing import TYPE_CHECKING, Any

import msgspec

from axletree.recipe.checks.sources import KINDS, ONLY_FOR
from axletree.recipe.prevailing import prevailing

if TYPE_CHECKING:
    from axletree.recipe.documents import Document, Place
    from axletree.recipe.faults import Path


class Draft:
    """A copy of a document that is being changed."""

    def __init__(self, document: Document) -> None:
        """The document itself stays as it is."""
        self._before = document
        self.values: dict[str, Any] = copy.deepcopy(document.values)
        self.places = dict(document.places)

    def table(self, path: Path) -> dict[str, Any]:
        """The table at a path, made where there is none."""
        found = self.values
        for part in path:
            inner = found.get(str(part))
            if not isinstance(inner, dict):
                inner = found[str(part)] = {}
            found = inner
        return found

    def put(self, path: Path, value: object, places: dict[Path, Place]) -> None:
        """Set a key, which keeps its place among the others; ``places`` are those of the value and all inside it."""
        self._forget(path)
        if path[:1] == ("source",) and len(path) == 2:
            self._change_source(str(path[1]))
        self.table(path[:-1])[str(path[-1])] = copy.deepcopy(value)
        self.places |= places

    def drop(self, path: Path) -> None:
        """Remove a key, if it is there."""
        self.table(path[:-1]).pop(str(path[-1]), None)
        self._forget(path)

    def _forget(self, path: Path) -> None:
        self.places = {each: place for each, place in self.places.items() if each[: len(path)] != path}

    def append(self, key: str, item: object, place: Place, inner: dict[Path, Place] | None = None) -> None:
        """Add an item to a list of tables; ``inner`` are places relative to the item."""
        items = self.values.setdefault(key, [])
        at: Path = (key, len(items))
        items.append(copy.deepcopy(item))
        self.places |= {at: place} | {(*at, *path): found for path, found in (inner or {}).items()}

    def prevail(self, path: Path, value: object, place: Place) -> None:
        """Keep what was written at a path from being undone by the overrides that are there."""
        for override in tuple(prevailing(self.values.get("override"), path, value)):
            self.append("override", override, place, {path[2:]: place})

    def _change_source(self, key: str) -> None:
        """A source of another kind than before has nothing of the old one."""
        source = self.table(("source",))
        if key not in KINDS or key in source or not any(kind in source for kind in KINDS):
            return
        for other in (*KINDS, *ONLY_FOR):
            if other in KINDS or key not in ONLY_FOR[other] or other == "sha256":
                self.drop(("source", other))

    def done(self, **changes: Any) -> Document:
        """The document that came of it; ``changes`` are fields that differ beside values and places."""
        dropped = _dropped(self._before, self.values)
        return msgspec.structs.replace(self._before, values=self.values, places=self.places, dropped=dropped, **changes)


def is_dropped(document: Document, axis: str, wanted: str) -> bool:
    """Whether a base has a value on an axis, or one that matches a pattern, which the document has not."""
    return any(fnmatch.fnmatchcase(str(value), wanted) for value in document.dropped.get(axis, ()))


def _dropped(before: Document, after: dict[str, Any]) -> dict[str, tuple[str, ...]]:
    """Axis -> values that it had at some time and has no more."""
    earlier, now = before.values.get("axes"), after.get("axes")
    if not isinstance(earlier, dict) or not isinstance(now, dict):
        return before.dropped
    return {
        axis: tuple(value for value in (*before.dropped.get(axis, ()), *values) if value not in now[axis])
        for axis, values in earlier.items()
        if isinstance(values, list) and isinstance(now.get(axis), list)
    }
