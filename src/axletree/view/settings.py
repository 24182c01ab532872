"""The settings, each with where its value comes from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from axletree.view.tables import printable, render_table

if TYPE_CHECKING:
    from collections.abc import Callable

    from axletree.recipe.settings import Loaded

JSON_SCHEMA = 1


def settings_document(loaded: Loaded, *, user_file: str, redact: Callable[[str], str]) -> dict[str, Any]:
    """All settings as JSON has them; ``redact`` takes the credentials out of addresses."""
    values = msgspec.to_builtins(loaded.settings)
    rows = [
        {"key": key, "value": _without(values[key], redact), "from": list(places)}
        for key, places in loaded.origins.items()
    ]
    return {"schema": JSON_SCHEMA, "file": user_file, "settings": rows}


def settings_text(document: dict[str, Any], *, width: int) -> str:
    """A table, and where the user's own file is."""
    rows = [[row["key"], _shown(row["value"]), ", ".join(row["from"])] for row in document["settings"]]
    table = render_table(["SETTING", "VALUE", "FROM"], rows, width=width)
    return printable(f"{table}\nyour own settings are in {document['file']}")


def _without(value: Any, redact: Callable[[str], str]) -> Any:
    if isinstance(value, str):
        return redact(value)
    return [redact(each) for each in value] if isinstance(value, tuple) else value


def _shown(value: Any) -> str:
    match value:
        case None | []:
            return "-"
        case bool():
            return "true" if value else "false"
        case list():
            return " ".join(value)
        case _:
            return str(value)
