"""Values at random of the structures that actions declare, and the structures that they are made of."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
from hypothesis import strategies as st
from msgspec import inspect

if TYPE_CHECKING:
    from collections.abc import Iterator

_TEXTS = st.one_of(st.just(""), st.text(max_size=4))


def structs_in(kind: type[msgspec.Struct]) -> set[type[msgspec.Struct]]:
    """A structure and all that its fields can hold, however deep."""
    found: set[type[msgspec.Struct]] = set()
    pending = [inspect.type_info(kind)]
    while pending:
        info = pending.pop()
        if isinstance(info, inspect.StructType):
            if info.cls in found:
                continue
            found.add(info.cls)
        pending.extend(_parts(info))
    return found


def _parts(info: inspect.Type) -> Iterator[inspect.Type]:
    match info:
        case inspect.StructType(fields=fields):
            yield from (field.type for field in fields)
        case inspect.Metadata(type=inner):
            yield inner
        case inspect.UnionType(types=types) | inspect.TupleType(item_types=types):
            yield from types
        case inspect.VarTupleType(item_type=item):
            yield item
        case inspect.DictType(key_type=key, value_type=value):
            yield from (key, value)
        case _:
            return


def values_of(kind: type[msgspec.Struct]) -> st.SearchStrategy[Any]:
    """Values of a structure; fields with a default are left out, or given, at times just what the default is."""
    return _values(inspect.type_info(kind))


def _values(info: inspect.Type) -> st.SearchStrategy[Any]:
    match info:
        case inspect.StructType(cls=cls, fields=fields):
            needed = {field.name: _values(field.type) for field in fields if field.required}
            free = {field.name: _values(field.type) for field in fields if not field.required}
            return st.fixed_dictionaries(needed, optional=free).map(lambda given: cls(**given))
        case inspect.Metadata(type=inner):
            return _values(inner)
        case inspect.UnionType(types=types):
            return st.one_of(*map(_values, types))
        case inspect.TupleType(item_types=types):
            return st.tuples(*map(_values, types))
        case inspect.VarTupleType(item_type=item):
            return st.lists(_values(item), max_size=2).map(tuple)
        case inspect.DictType(key_type=key, value_type=value):
            return st.dictionaries(_values(key), _values(value), max_size=2)
        case inspect.LiteralType(values=values):
            return st.sampled_from(values)
        case inspect.StrType():
            return _TEXTS
        case inspect.IntType(ge=least):
            return st.integers(least or 0, 2**62)
        case inspect.BoolType():
            return st.booleans()
        case inspect.NoneType():
            return st.none()
        case _:
            raise TypeError(f"nothing makes a value of {info}")
