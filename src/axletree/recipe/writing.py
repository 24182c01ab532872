"""Values -> TOML text."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from axletree.recipe.faults import Path

_BARE = re.compile(r"[A-Za-z0-9_-]+")


def toml_value(value: object) -> str:
    """A value as TOML writes it on one line."""
    match value:
        case bool():
            return "true" if value else "false"
        case dict():
            pairs = ", ".join(f"{toml_key(key)} = {toml_value(part)}" for key, part in value.items())
            return f"{{ {pairs} }}" if pairs else "{}"
        case list() | tuple():
            return "[" + ", ".join(toml_value(each) for each in value) + "]"
        case str():
            return "".join(
                char if char.isprintable() else _escape(char) for char in json.dumps(value, ensure_ascii=False)
            )
        case _:
            return str(value)


def _escape(char: str) -> str:
    number = ord(char)
    return f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}"


def toml_key(key: str) -> str:
    """A key, quoted where it must be."""
    return key if _BARE.fullmatch(key) else toml_value(key)


def toml_document(values: Mapping[str, Any], comments: Mapping[Path, str]) -> str:
    """A recipe's document as text: plain keys first, then a table at a time.

    Args:
        values: The document.
        comments: Path -> what is said of it.
    """
    lines = list(_pairs({key: value for key, value in values.items() if not _is_table(value)}, (), comments))
    for key, value in values.items():
        if _is_table(value):
            lines += _tables(value, (key,), comments)
    return "\n".join(lines).strip("\n") + "\n"


def _is_table(value: object) -> bool:
    return isinstance(value, dict) or (isinstance(value, list) and bool(value) and isinstance(value[0], dict))


def _tables(value: Any, path: Path, comments: Mapping[Path, str]) -> Iterator[str]:
    header = ".".join(toml_key(str(part)) for part in path)
    if isinstance(value, list):
        for number, table in enumerate(value):
            yield from ("", f"[[{header}]]", *_pairs(table, (*path, number), comments))
    elif len(path) == 1 and value and all(isinstance(each, dict) for each in value.values()):
        for key, table in value.items():
            yield from _tables(table, (*path, key), comments)
    else:
        yield from ("", f"[{header}]", *_pairs(value, path, comments))


def _pairs(table: Mapping[str, Any], path: Path, comments: Mapping[Path, str]) -> Iterator[str]:
    for key, value in table.items():
        comment = comments.get((*path, key), "")
        yield f"{toml_key(key)} = {toml_value(value)}" + (f"  # {comment}" if comment else "")
