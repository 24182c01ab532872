"""Compare a parsed TOML document with the recipe's types, and go on after each fault.

msgspec stops at the first fault; a recipe's author wants all of them. So this walk follows the same type information
that msgspec validates with, and returns a repaired copy beside the faults: unknown keys dropped (or read as the key
that was probably meant), wrong values replaced by a stand-in. The repaired copy always converts, so that the checks of
meaning can run on the rest; what they say about a replaced value is filtered out afterwards.
"""

from __future__ import annotations

import re
from typing import Any

import msgspec
from msgspec import inspect

from axletree.core.near import nearest
from axletree.recipe.faults import Fault, Path, suggestion, visible

_TOO_LARGE = 2**63  # TOML's integers have 64 bits, Python's any number
_MISSING = "missing required key"
_STAND_IN = "x"  # matches the pattern of every name that is required

Mapping = dict[str, Any]


def check_structure(data: Mapping, model: type) -> tuple[list[Fault], Mapping]:
    """All structural faults of a document against a msgspec structure, and a copy without any."""
    faults: list[Fault] = []
    repaired = _check(inspect.type_info(model), data, (), faults)
    assert isinstance(repaired, dict)  # noqa: S101 (a structure is repaired to a table)
    return faults, repaired


def _check(kind: inspect.Type, value: object, path: Path, faults: list[Fault], expects: str | None = None) -> object:
    """Report what is wrong with a value and everything inside it; return it or what stands in for it."""
    match kind:
        case inspect.Metadata():
            return _check(kind.type, value, path, faults, (kind.extra or {}).get("expects", expects))
        case inspect.StructType() if isinstance(value, dict):
            return _check_struct(kind, value, path, faults)
        case inspect.DictType() if isinstance(value, dict):
            return _check_dict(kind, value, path, faults)
        case inspect.VarTupleType() if isinstance(value, list):
            return _check_list(kind, value, path, faults)
        case inspect.UnionType():
            return _check_union(kind, value, path, faults)
        case inspect.LiteralType():
            return _check_literal(kind, value, path, faults)
        case inspect.StrType() if isinstance(value, str):
            if kind.pattern is None or re.fullmatch(kind.pattern, value):
                return value
            expected = expects or f"a text of the form {kind.pattern}"
            faults.append(Fault(path=path, message=f"{value!r} is not {expected}"))
            return _stand_in(kind)
        case inspect.IntType() if isinstance(value, int) and not isinstance(value, bool):
            if (kind.ge or 0) <= value < _TOO_LARGE:
                return value
            least = kind.ge or 0
            faults.append(
                Fault(path=path, message=f"expected a whole number of at least {least}, found {_name(value)}")
            )
            return _stand_in(kind)
        case inspect.BoolType() if isinstance(value, bool):
            return value
    faults.append(_wrong_type(kind, value, path))
    return _stand_in(kind)


def _wrong_type(kind: inspect.Type, value: object, path: Path) -> Fault:
    wanted = _bare(kind)
    hint = None
    if isinstance(wanted, inspect.VarTupleType) and isinstance(value, str):
        hint = f"write {[value]!r}".replace("'", '"')
    elif isinstance(wanted, inspect.StrType) and isinstance(value, int | float) and not isinstance(value, bool):
        hint = f'write "{value}" with quotes'
    elif isinstance(wanted, inspect.BoolType) and value in {"true", "false"}:
        hint = f"write {value}, without quotes"
    return Fault(path=path, message=f"expected {_describe(kind)}, found {_name(value)}", hint=hint)


def _check_struct(kind: inspect.StructType, value: Mapping, path: Path, faults: list[Fault]) -> Mapping:
    fields = {field.encode_name: field for field in kind.fields}
    repaired: Mapping = {}
    for key, inner in value.items():
        field = fields.get(key)
        if field is None:
            faults.append(Fault(path=(*path, key), message="unknown key", hint=suggestion(key, fields, "valid keys")))
            meant = nearest(key, [name for name in fields if name not in value and name not in repaired])
            if meant is None:
                continue
            field = fields[meant]
        before = len(faults)
        repaired[field.encode_name] = _check(field.type, inner, (*path, key), faults)
        if len(faults) > before and not field.required and not isinstance(inner, dict | list):
            del repaired[field.encode_name]  # the default is a better stand-in
    for name, field in fields.items():
        if name not in repaired and field.required:
            faults.append(Fault(path=(*path, name), message=_MISSING, hint=_to_set(name, field.type)))
            repaired[name] = _stand_in(field.type)
    return repaired


def _to_set(name: str, kind: inspect.Type) -> str:
    """What to do about a key that is missing, with the description beside the field of the model."""
    known = kind.extra_json_schema if isinstance(kind, inspect.Metadata) else None
    meaning = str((known or {}).get("description", "")).removesuffix(".")
    if not meaning:
        return f"set `{name}`"
    return f"set `{name}`; {meaning}" if meaning[0] == "`" else f"set `{name}`: {meaning[0].lower()}{meaning[1:]}"


def _misspelt(tables: Mapping, path: Path, found: list[Fault]) -> list[Fault]:
    """Faults of a table that lacks keys which a table with a similar name has: its name is probably misspelt."""
    lacking = {fault.path[-1] for fault in found if fault.message == _MISSING and fault.path[:-1] == path}
    key = path[-1]
    whole = [name for name, each in tables.items() if name != key and isinstance(each, dict) and lacking <= each.keys()]
    meant = nearest(str(key), whole) if lacking else None
    if meant is None:
        return found
    hint = f"did you mean {meant!r}?"
    return [msgspec.structs.replace(each, hint=hint) if each.path[-1] in lacking else each for each in found]


def _check_dict(kind: inspect.DictType, value: Mapping, path: Path, faults: list[Fault]) -> Mapping:
    repaired: Mapping = {}
    for key, inner in value.items():
        before = len(faults)
        _check(kind.key_type, key, (*path, key), faults)
        checked = _check(kind.value_type, inner, (*path, key), faults)
        faults[before:] = _misspelt(value, (*path, key), faults[before:])
        if len(faults) == before or _is_name(kind.key_type, key):
            repaired[key] = checked
    return repaired


def _is_name(kind: inspect.Type, key: str) -> bool:
    bare = _bare(kind)
    return not isinstance(bare, inspect.StrType) or bare.pattern is None or bool(re.fullmatch(bare.pattern, key))


def _check_list(kind: inspect.VarTupleType, value: list[Any], path: Path, faults: list[Fault]) -> list[Any]:
    if len(value) < (kind.min_length or 0):
        faults.append(
            Fault(path=path, message="the list is empty", hint=f"use {_describe(kind)} with at least one item")
        )
        return [_stand_in(kind.item_type)]
    return [_check(kind.item_type, item, (*path, number), faults) for number, item in enumerate(value)]


def _check_union(kind: inspect.UnionType, value: object, path: Path, faults: list[Fault]) -> object:
    options = [option for option in kind.types if not isinstance(option, inspect.NoneType)]
    fitting = [option for option in options if _fits(option, value)]
    if fitting or len(options) == 1:
        return _check((fitting or options)[0], value, path, faults)
    faults.append(Fault(path=path, message=f"expected {_describe(kind)}, found {_name(value)}"))
    return _stand_in(kind)


def _fits(kind: inspect.Type, value: object) -> bool:
    bare = _bare(kind)
    return (
        (isinstance(bare, inspect.StrType) and isinstance(value, str))
        or (isinstance(bare, inspect.VarTupleType) and isinstance(value, list))
        or (isinstance(bare, inspect.IntType) and isinstance(value, int) and not isinstance(value, bool))
    )


def _check_literal(kind: inspect.LiteralType, value: object, path: Path, faults: list[Fault]) -> object:
    if any(type(value) is type(allowed) and value == allowed for allowed in kind.values):
        return value
    shown = repr(value) if isinstance(value, str | int) and not isinstance(value, bool) else _name(value)
    faults.append(Fault(path=path, message=f"unexpected value {visible(shown)}", hint=f"use {_describe(kind)}"))
    return _stand_in(kind)


def _bare(kind: inspect.Type) -> inspect.Type:
    return _bare(kind.type) if isinstance(kind, inspect.Metadata) else kind


def _stand_in(kind: inspect.Type) -> object:
    """The plainest value of a type."""
    match _bare(kind):
        case inspect.StructType() as struct:
            return {field.encode_name: _stand_in(field.type) for field in struct.fields if field.required}
        case inspect.VarTupleType() as items:
            return [_stand_in(items.item_type)] * (items.min_length or 0)
        case inspect.DictType():
            return {}
        case inspect.UnionType() as union:
            return _stand_in(union.types[0])
        case inspect.LiteralType() as literal:
            return literal.values[0]
        case inspect.IntType() as number:
            return number.ge or 0
        case inspect.BoolType():
            return False
        case _:
            return _STAND_IN


def _describe(kind: inspect.Type) -> str:
    """What a type asks for, as a message says it."""
    match _bare(kind):
        case inspect.StructType() | inspect.DictType():
            return "a table"
        case inspect.VarTupleType() as items:
            return {"a string": "a list of strings", "a table": "a list of tables"}.get(
                _describe(items.item_type), f"a list ({_describe(items.item_type)} each)"
            )
        case inspect.UnionType() as union:
            return " or ".join(_describe(option) for option in union.types if not isinstance(option, inspect.NoneType))
        case inspect.LiteralType() as literal:
            return " or ".join(f'"{value}"' if isinstance(value, str) else str(value) for value in literal.values)
        case inspect.IntType():
            return "a whole number"
        case inspect.BoolType():
            return "true or false"
        case _:
            return "a string"


def _name(value: object) -> str:
    """What a TOML value is, as a message says it."""
    match value:
        case bool():
            return "true" if value else "false"
        case int():
            return f"the number {value}" if abs(value) < 10**12 else "a number"
        case float():
            return f"the number {value}"
        case str():
            return f"the string {value[:40]!r}"
        case list():
            return "a list"
        case dict():
            return "a table"
        case _:
            return "a date or time"
