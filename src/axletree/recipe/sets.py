"""``--set KEY=VALUE``: one change of a recipe's document, for one call.

A value is what TOML makes of it, else the text itself. The key's type decides where both are possible: a key that
takes text gets the text as it was typed (``--set axes.python=3.10`` is not the number 3.1), and a key that takes a list
gets a list of one where the value is none.
"""

from __future__ import annotations

import fnmatch
import tomllib
from functools import cache
from typing import TYPE_CHECKING, Any

from msgspec import inspect

from axletree.core.errors import Problem, UsageError
from axletree.core.near import nearest
from axletree.recipe.defaults import fill
from axletree.recipe.documents import Place
from axletree.recipe.editing import Draft
from axletree.recipe.faults import Fault, Path, dotted, suggestion, visible
from axletree.recipe.keys import split_setting
from axletree.recipe.model import Recipe

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from axletree.recipe.defaults import Defaults
    from axletree.recipe.documents import Document

OPTION = "--set"
_NOT_SET = ("extends", "remove", "schema")
_NOT_LOCKED = ("stages", "packages", "tests")
"""Tables that decide nothing of what is locked."""


class _Refused(Exception):  # noqa: N818 (never leaves this module)
    """A key that cannot be set; the fault says why."""

    def __init__(self, message: str, hint: str | None = None) -> None:
        self.fault = Fault(path=(), message=message, hint=hint)


def apply_sets(document: Document, sets: Sequence[str], defaults: Defaults | None = None) -> Document:
    """A document with the keys that ``--set`` names, the last word on each counts.

    Args:
        document: The recipe's, without defaults.
        sets: ``KEY=VALUE`` each.
        defaults: What fills it in: their stages, environments, packages and tests can be named as well.

    Raises:
        UsageError: a text is not KEY=VALUE, or names no key of a recipe; all such are named, with the nearest key.
    """
    if not sets:
        return document
    draft, problems, asked = Draft(document), list[Problem](), list[Path]()
    filled = None if defaults is None else fill(document, defaults).values
    for text in sets:
        setting = split_setting(text)
        if setting is None:
            message = f"{visible(text)!r} is not KEY=VALUE"
            hint = "for example --set version=2.1.3 or --set stages.build.env.FORCE_CUDA=1"
            problems.append(Problem(file=OPTION, message=message, hint=hint))
            continue
        written, key, value = setting
        place = f"{OPTION} {visible(written)}"
        try:
            for path in _meant(key, draft.values):
                made = _fitting(_kind_at(path, filled or draft.values), value)
                where = Place(place, path=path)
                draft.put(path, made, {path: where})
                draft.prevail(path, made, where)
                asked += _asked(path, made, document.values)
        except _Refused as refused:
            problems.append(Problem(file=place, message=refused.fault.message, hint=refused.fault.hint))
    if problems:
        raise UsageError(*problems)
    return draft.done(asked=tuple(asked))


def normal_sets(sets: Iterable[str]) -> tuple[str, ...]:
    """The same change in one order, without what a later word replaces: two calls that mean the same are equal."""
    last: dict[Path, str] = {}
    for text in sets:
        setting = split_setting(text)
        if setting is not None:
            _, path, value = setting
            last.pop(path, None)
            last[path] = f"{dotted(path)}={value}"
    return tuple(last[path] for path in sorted(last, key=dotted))


def decides_locks(text: str) -> bool:
    """Whether a change decides what is locked: the source, the environments, or the defaults."""
    setting = split_setting(text)
    return setting is not None and setting[1][0] not in _NOT_LOCKED


def _meant(key: Path, values: dict[str, Any]) -> list[Path]:
    """The keys that are meant: one, or a property of each value of an axis that matches."""
    axes = values.get("axes")
    axes = axes if isinstance(axes, dict) else {}
    if len(key) == 2 and key[0] in axes and key[0] not in _fields(_root()):
        key = ("properties", key[0], "*", key[1])
    if key[0] != "properties" or len(key) != 4:
        return [key]
    _, axis, wanted, name = key
    if axis not in axes:
        raise _Refused(f"the recipe has no axis {axis!r}", suggestion(str(axis), axes, "its axes"))
    listed = axes[axis] if isinstance(axes[axis], list) else []
    found = [each for each in listed if isinstance(each, str) and fnmatch.fnmatchcase(each, str(wanted))]
    if not found:
        raise _Refused(f"axis {axis!r} has no value {wanted!r}", suggestion(str(wanted), listed, "its values"))
    return [("properties", axis, each, name) for each in found]


def _asked(path: Path, made: object, before: dict[str, Any]) -> list[Path]:
    """What a change adds where any name can be put: properties, also whole tables of them, and axes."""
    if path[:1] == ("axes",):
        axes = before.get("axes")
        added = [path[1]] if len(path) > 1 else list(made) if isinstance(made, dict) else []
        return [("axes", axis) for axis in added if not isinstance(axes, dict) or axis not in axes]
    if path[:1] != ("properties",):
        return []
    found: list[tuple[Path, object]] = [(path, made)]
    for _ in range(4 - len(path)):
        found = [((*at, key), inner) for at, table in found if isinstance(table, dict) for key, inner in table.items()]
    return [at for at, _ in found]


def _kind_at(path: Path, values: dict[str, Any]) -> inspect.Type:
    """The type of a key of a recipe."""
    kind: inspect.Type = _root()
    here: object = values
    for number, part in enumerate(path):
        around = path[:number]
        match kind:
            case inspect.StructType():
                fields = _fields(kind)
                if part not in fields or (not around and part in _NOT_SET):
                    raise _unknown(path, around, str(part), fields, values)
                kind = _bare(fields[str(part)])
            case inspect.DictType():
                kind = _bare(kind.value_type)
                known = here if isinstance(here, dict) else {}
                if isinstance(kind, inspect.StructType) and part not in known and number + 1 < len(path):
                    what = dotted((*around, part))
                    raise _Refused(f"the recipe has no {what}", suggestion(str(part), known, f"its {dotted(around)}"))
            case inspect.VarTupleType():
                raise _Refused(
                    f"{dotted(around)} is a list, which can be set only as a whole", f"--set '{dotted(around)}=[...]'"
                )
            case _:
                raise _Refused(f"{dotted(around)} is a single value and has no keys")
        here = here.get(part) if isinstance(here, dict) else None
    return kind


def _unknown(path: Path, around: Path, part: str, fields: Iterable[str], values: dict[str, Any]) -> _Refused:
    known = [field for field in fields if around or field not in _NOT_SET]
    if around:
        return _Refused(f"{dotted(around)} has no key {part!r}", suggestion(part, known, "valid keys"))
    axes = values.get("axes")
    axis = nearest(part, axes) if isinstance(axes, dict) and len(path) == 2 else None
    hint = f"did you mean {axis}.{path[1]}?" if axis is not None else suggestion(part, known, "valid keys")
    return _Refused(f"a recipe has no key {part!r}", hint)


def _fitting(kind: inspect.Type, text: str) -> object:
    """The value that a text means for a key of a type; one that does not fit is told by the check of the document."""
    found = _read(text)
    options = kind.types if isinstance(kind, inspect.UnionType) else (kind,)
    wanted = [_bare(option) for option in options if not isinstance(option, inspect.NoneType)]
    lists = next((option for option in wanted if isinstance(option, inspect.VarTupleType)), None)
    if lists is not None and isinstance(found, list):
        return found
    if any(isinstance(option, inspect.StrType) or _is_word(option) for option in wanted):
        return found if isinstance(found, str) else text
    if lists is not None:
        return [_fitting(_bare(lists.item_type), text)]
    return text if found is None else found


def _read(text: str) -> object:
    """What TOML makes of a value; ``None`` where that is nothing."""
    try:
        values = tomllib.loads(f"value = {text}")
    except (ValueError, RecursionError):
        return None
    return values["value"] if len(values) == 1 else None


def _is_word(kind: inspect.Type) -> bool:
    return isinstance(kind, inspect.LiteralType) and all(isinstance(value, str) for value in kind.values)


@cache
def _root() -> inspect.StructType:
    kind = inspect.type_info(Recipe)
    assert isinstance(kind, inspect.StructType)  # noqa: S101 (a recipe is a table)
    return kind


def _fields(kind: inspect.StructType) -> dict[str, inspect.Type]:
    return {field.encode_name: field.type for field in kind.fields}


def _bare(kind: inspect.Type) -> inspect.Type:
    """A type without its description, and without the ``None`` of a key that may be left out."""
    if isinstance(kind, inspect.Metadata):
        return _bare(kind.type)
    if isinstance(kind, inspect.UnionType):
        options = [option for option in kind.types if not isinstance(option, inspect.NoneType)]
        return _bare(options[0]) if len(options) == 1 else kind
    return kind
