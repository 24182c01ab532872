"""JSON schemas of what commands report, derived from the types of the reports."""

from __future__ import annotations

from pathlib import PurePath
from typing import TYPE_CHECKING, Any

import msgspec

from axletree.recipe.schema import schema_document
from axletree.report.envelope import SCHEMA, Envelope

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

Structs = dict[str, type[msgspec.Struct]]


def report_schema(command: str, report: type[msgspec.Struct]) -> dict[str, Any]:
    """Schema of the line that a command prints with ``--json``."""
    (reference,), components = _components([report])
    body = {**_envelope(command, reference), "$defs": components}
    return schema_document(body, f"Axletree report: {command}", f"What `axletree {command} --json` prints.")


def reports_schema(reports: Mapping[str, type[msgspec.Struct]]) -> dict[str, Any]:
    """Schema of what any command prints with ``--json``.

    Args:
        reports: Command -> type of its report.
    """
    references, components = _components(reports.values())
    lines = [_envelope(command, reference) for command, reference in zip(reports, references, strict=True)]
    description = "What a command prints with `--json`; `command` is the name of the command."
    return schema_document({"oneOf": lines, "$defs": components}, "Axletree reports", description)


def structs_of(reports: Iterable[type[msgspec.Struct]]) -> Structs:
    """Name in the schema -> struct, of all that the reports are made of, in the order in which they are met."""
    met: dict[type[msgspec.Struct], None] = {}
    queue: list[object] = list(msgspec.inspect.multi_type_info(reports))
    for node in queue:  # grows while it is walked
        if isinstance(node, msgspec.inspect.StructType):
            if node.cls in met:
                continue
            met[node.cls] = None
        if isinstance(node, tuple):
            queue += node
        elif isinstance(node, msgspec.inspect.Type | msgspec.inspect.Field):
            queue += (getattr(node, field) for field in node.__struct_fields__)
    references, _ = msgspec.json.schema_components(met, schema_hook=_plain)
    return {each["$ref"].rpartition("/")[2]: cls for each, cls in zip(references, met, strict=True)}


def _components(reports: Iterable[type[msgspec.Struct]]) -> tuple[tuple[dict[str, Any], ...], dict[str, Any]]:
    """References to the schemas of reports, and all structures in them."""
    reports = list(reports)
    references, components = msgspec.json.schema_components(reports, schema_hook=_plain)
    for name, struct in structs_of(reports).items():
        if not struct.__struct_config__.omit_defaults:  # a field is written whatever is in it
            components[name]["required"] = list(components[name]["properties"])
    return references, components


def _envelope(command: str, result: dict[str, Any]) -> dict[str, Any]:
    shown = {"schema": {"const": SCHEMA}, "command": {"const": command}, "version": {"type": "string"}}
    return {
        "title": command,
        "type": "object",
        "properties": {**shown, "result": result},
        "required": [*msgspec.structs.asdict(Envelope(command=command, result=None))],
    }


def _plain(kind: type) -> dict[str, Any]:
    if issubclass(kind, PurePath):
        return {"type": "string"}
    raise TypeError(f"a report cannot contain {kind.__name__}")
