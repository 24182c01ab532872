"""Schemas of reports: what is written always is required, names that clash are told apart."""

from __future__ import annotations

from pathlib import Path

import jsonschema
import msgspec
import pytest

from axletree.report.envelope import encode_report, is_report
from axletree.report.schema import report_schema, reports_schema, structs_of


class Part(msgspec.Struct, frozen=True, omit_defaults=True):
    """A part, of which a file says only what is not as usual."""

    name: str
    note: str = ""


class Report(msgspec.Struct, frozen=True):
    """A report."""

    file: Path
    parts: tuple[Part, ...] = ()
    by_name: dict[str, Part] = {}
    note: str | None = None


def other() -> type[msgspec.Struct]:
    class Part(msgspec.Struct):
        """Another one of that name."""

        size: int

    return msgspec.defstruct("Other", [("part", Part | None, None)])


def test_fields_with_defaults_are_required_where_they_are_always_written() -> None:
    definitions = report_schema("try", Report)["$defs"]
    assert definitions["Report"]["required"] == ["file", "parts", "by_name", "note"]
    assert definitions["Part"]["required"] == ["name"]
    assert definitions["Report"]["properties"]["file"] == {"type": "string"}


def test_what_is_written_is_as_the_schema_says() -> None:
    line = msgspec.json.decode(encode_report("try", Report(file=Path("a"), parts=(Part("x"), Part("y", "z")))))
    for schema in (report_schema("try", Report), reports_schema({"try": Report, "else": other()})):
        validator = jsonschema.Draft202012Validator(schema)
        validator.validate(line)
        for wrong in ({**line, "command": "else"}, {**line, "schema": 2}, {**line, "result": {"file": "a"}}):
            with pytest.raises(jsonschema.ValidationError):
                validator.validate(wrong)


def test_structures_are_found_wherever_they_stand() -> None:
    assert structs_of([Report]) == {"Report": Report, "Part": Part}
    found = structs_of([Report, other()])
    assert set(found) > {"Report", "Other"}
    assert len(found) == 4


def test_a_report_is_told_from_an_event() -> None:
    assert is_report(encode_report("try", Report(file=Path("a"))).encode())
    assert not is_report(b'{"event":"run-finished","schema":1}')


@pytest.mark.parametrize("kind", [complex, type("Engine", (), {})])
def test_a_type_that_no_report_can_contain_is_named(kind: type) -> None:
    report = msgspec.defstruct("Odd", [("value", kind)])
    with pytest.raises(TypeError, match=f"a report cannot contain {kind.__name__}$"):
        report_schema("odd", report)
