"""What ``--set`` puts where any name is possible: a property or axis that nothing in the recipe reads."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from axletree.recipe.faults import Fault, suggestion
from axletree.recipe.placeholders import scan

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from axletree.recipe.faults import Path


def unread_faults(values: Mapping[str, Any], asked: Iterable[Path]) -> Iterator[Fault]:
    """Faults of keys that ``--set`` adds and that no other key reads.

    Args:
        values: the whole recipe, as a document.
        asked: properties that were set, as ``properties.AXIS.VALUE.NAME``, and axes that were added.
    """
    rest = {key: value for key, value in values.items() if key not in ("axes", "properties")}
    texts = set(_texts(rest))
    found = {each for text in texts for each in scan(text).placeholders}
    read = {(each.name, each.part) for each in found}
    for path in asked:
        axis = str(path[1])
        if path[0] == "properties":
            name = str(path[3])
            if (axis, name) not in read:
                known = sorted(each.part for each in found if each.name == axis and each.asks_property)
                yield Fault(
                    path=path,
                    message=f"nothing in the recipe reads {{{axis}.{name}}}",
                    hint=suggestion(name, known, f"properties of {axis} that it reads") if known else None,
                )
        elif axis not in texts and not any(reader == axis for reader, _ in read):
            yield Fault(path=path, message=f"nothing in the recipe depends on axis {axis!r}")


def _texts(value: object) -> Iterator[str]:
    """All texts of a document, and the names of keys: conditions name axes so."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield key
            yield from _texts(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _texts(inner)
