"""What commands print with ``--json``, held against the schema that Axletree publishes of it."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

import jsonschema

from axletree.cli.main import cli
from axletree.cli.reporting import report_types
from axletree.report.schema import reports_schema


def result_of(output: str | bytes) -> Any:
    """The report in a command's output, whose last line it is, once it proves to be as the schema says."""
    envelope = json.loads(output.splitlines()[-1])
    check_envelope(envelope)
    return envelope["result"]


def events_of(output: str | bytes) -> list[dict[str, Any]]:
    """The events of ``build --json``. Its report, which only a run that was killed lacks, is the last line."""
    lines = [json.loads(line) for line in output.splitlines()]
    if lines and "event" not in lines[-1]:
        check_envelope(lines.pop())
    assert all("event" in line for line in lines), "a report is not the last line"
    return lines


def check_envelope(envelope: Any) -> None:
    """Fail where it is not as the schema says, or has a field of which the schema knows nothing."""
    command = envelope.get("command")
    assert command in _validators(), f"no command {command!r} reports"
    _validators()[command].validate(envelope)


@cache
def _validators() -> dict[str, jsonschema.Draft202012Validator]:
    schema = reports_schema(report_types(cli))
    jsonschema.Draft202012Validator.check_schema(schema)
    closed = _closed(schema)
    lines = {line["title"]: {**line, "$defs": closed["$defs"]} for line in closed["oneOf"]}
    return {command: jsonschema.Draft202012Validator(line) for command, line in lines.items()}


def _closed(node: Any) -> Any:
    """A schema that allows no other fields. Readers must bear new ones, so what is published does allow them."""
    if isinstance(node, list):
        return [_closed(each) for each in node]
    if not isinstance(node, dict):
        return node
    closed = {key: _closed(value) for key, value in node.items()}
    return {"additionalProperties": False, **closed} if isinstance(node.get("properties"), dict) else closed
