"""Facts of a host as text: a table a group, each fact with where it came from."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from axletree.check.host.part import UNLIMITED, FactGroup
from axletree.view.tables import render_table

if TYPE_CHECKING:
    from collections.abc import Iterator

    from axletree.check.host.facts import HostFacts

Row = tuple[str, str, str]


def facts_lines(facts: HostFacts, *, width: int) -> Iterator[str]:
    """Groups under their names.

    Args:
        facts: what is known.
        width: columns of the terminal.
    """
    yield f"collected {facts.taken or 'at an unknown time'} by axletree {facts.axletree or '(unknown version)'}"
    for group in facts.__struct_fields__:
        if group not in {"sources", "taken", "axletree"} and (rows := list(_rows(group, facts, ""))):
            yield ""
            yield render_table([group.upper(), "VALUE", "SOURCE"], rows, width=width)


def _rows(field: str, part: FactGroup, prefix: str) -> Iterator[Row]:
    """A field of a part; of parts in it, their fields."""
    value, source = getattr(part, field), part.sources.get(field, "")
    if isinstance(value, FactGroup):
        yield from _inner(value, prefix)
    elif isinstance(value, tuple) and any(isinstance(each, FactGroup) for each in value):
        for number, each in enumerate(value, 1):
            yield from _inner(each, f"{prefix}{field} {number}: ")
    elif value is not None or source:
        yield f"{prefix}{field}", _shown(value), source


def _inner(part: FactGroup, prefix: str) -> Iterator[Row]:
    for field in part.__struct_fields__:
        if field != "sources":
            below = f"{prefix}{field}: " if isinstance(getattr(part, field), FactGroup) else prefix
            yield from _rows(field, part, below)


def _shown(value: object) -> str:
    match value:
        case None:
            return "unknown"
        case bool():
            return "yes" if value else "no"
        case int() | float() if value == UNLIMITED:
            return "unlimited"
        case tuple():
            return ", ".join(map(_shown, value)) or "none"
        case dict():
            return ", ".join(f"{key}={_shown(each)}" for key, each in value.items()) or "none"
        case msgspec.Struct():
            return _shown(msgspec.structs.asdict(value))
        case _:
            return str(value)
