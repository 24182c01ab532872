"""A recipe that extends another: the two documents become one.

Tables merge key by key; any other value replaces the base's, lists too. ``[[override]]`` and ``[[patches]]`` come
behind the base's. ``remove`` takes keys of the base away first. A path of the base stays relative to the base.
"""

from __future__ import annotations

import posixpath
from typing import TYPE_CHECKING, Any

from axletree.core.errors import RecipeError
from axletree.core.trees import is_safe_path
from axletree.recipe.documents import problems_of
from axletree.recipe.editing import Draft
from axletree.recipe.faults import Fault, dotted, suggestion
from axletree.recipe.keys import read_key

if TYPE_CHECKING:
    from collections.abc import Iterator

    from axletree.recipe.documents import Document, Place
    from axletree.recipe.faults import Path

SHIPPED = "@shipped"
"""First part of a path that belongs to a recipe that ships with Axletree."""
_ADDED = ("override", "patches")
_OWN = ("extends", "remove")


def base_of(document: Document) -> str | None:
    """What a recipe extends: the name of one that ships, or the path of a file, relative to it.

    Raises:
        RecipeError: it is no text, or a path that leaves the recipe's folder.
    """
    base = document.values.get("extends")
    if base is None:
        return None
    fault = None
    if not isinstance(base, str):
        fault = Fault(path=("extends",), message="expected a string: the name or the path of a recipe")
    elif is_file(base) and not is_safe_path(base.removeprefix("./")):
        message = f"{base!r} must be a relative path inside the recipe's folder, with '/' and without '..'"
        fault = Fault(path=("extends",), message=message, hint="move the recipe to the folder of its base, or above it")
    if fault is not None:
        raise RecipeError(*problems_of(document, [fault]))
    return str(base)


def is_file(base: str) -> bool:
    """Whether it is a path, not the name of a recipe that ships."""
    return base.endswith(".toml") or "/" in base


def extend(base: Document, own: Document, *, folder: str) -> Document:
    """A recipe together with what it extends.

    Args:
        base: the recipe that is extended, which extends none itself any more.
        own: the recipe that extends it.
        folder: the base's folder, relative to the recipe, empty where that is the same; :data:`SHIPPED` if it ships.

    Raises:
        RecipeError: ``remove`` is wrong.
    """
    draft = Draft(base)
    faults = list(_remove(draft, own.values.get("remove", [])))
    if faults:
        raise RecipeError(*problems_of(own, faults))
    _rebase(draft.values, folder)
    items = {key: own.values[key] for key in _ADDED if isinstance(own.values.get(key), list)}
    items = {key: each for key, each in items.items() if isinstance(draft.values.get(key, []), list)}
    _merge(draft, {key: value for key, value in own.values.items() if key not in {*_OWN, *items}}, (), own)
    for key, each in items.items():
        for number, item in enumerate(each):
            inner = _places_in(own, (key, number))
            draft.append(key, item, inner.pop((), own.places[(key,)]), inner)
    return draft.done(filename=own.filename, texts={**own.texts, **base.texts})


def written_path(path: str) -> str:
    """A path of a document as the recipe that it belongs to names it."""
    return path.removeprefix(f"{SHIPPED}/")


def _remove(draft: Draft, names: object) -> Iterator[Fault]:
    if not isinstance(names, list):
        yield Fault(
            path=("remove",), message="expected a list of keys", hint='for example, ["stages.build.env.FORCE_CUDA"]'
        )
        return
    for number, name in enumerate(names):
        path = read_key(name) if isinstance(name, str) else None
        if path is None:
            yield Fault(
                path=("remove", number),
                message=f"{name!r} is not a valid key (expected one such as 'stages.build.env')",
            )
            continue
        table: object = draft.values
        for part in path[:-1]:
            table = table.get(part) if isinstance(table, dict) else None
        if isinstance(table, dict) and path[-1] in table:
            draft.drop(path)
        else:
            keys = table if isinstance(table, dict) else draft.values
            near = suggestion(str(path[-1]), keys, "available keys") if isinstance(table, dict) else None
            yield Fault(path=("remove", number), message=f"the base recipe does not set {dotted(path)}", hint=near)


def _merge(draft: Draft, own: dict[str, Any], path: Path, document: Document) -> None:
    """Put what a recipe says over its base's: key by key where both have a table."""
    for key, value in own.items():
        at: Path = (*path, key)
        if isinstance(value, dict) and isinstance(draft.table(path).get(key), dict):
            _merge(draft, value, at, document)
            continue
        places = {(*at, *inner): place for inner, place in _places_in(document, at).items()}
        draft.put(at, value, places)
        draft.prevail(at, value, places.get(at) or next(iter(places.values())))


def _places_in(document: Document, path: Path) -> dict[Path, Place]:
    """Places of a value and all inside it, relative to it."""
    size = len(path)
    return {each[size:]: place for each, place in document.places.items() if each[:size] == path}


def _rebase(values: dict[str, Any], folder: str) -> None:
    """Make paths that are relative to the base relative to the recipe that extends it."""
    if not folder:
        return
    _rebase_list(values, "data", folder)
    for patch in _tables(values.get("patches")):
        _rebase_key(patch, "file", folder)
    source = values.get("source")
    if isinstance(source, dict):
        _rebase_key(source, "path", folder)
        if "://" not in str(source.get("wheel")):
            _rebase_key(source, "wheel", folder)
    for extra in _tables(values.get("sources")):
        _rebase_key(extra, "path", folder)
    for test in _tables(values.get("tests")):
        _rebase_list(test, "files", folder)
    for table in _tables(values.get("recipes")):
        if isinstance(table.get("recipe"), str) and is_file(table["recipe"]):
            _rebase_key(table, "recipe", folder)
    for environment in _tables(values.get("environments")):
        _rebase_key(environment, "requires-from", folder)
        channels = environment.get("channels")
        if isinstance(channels, list):
            environment["channels"] = [_channel(each, folder) for each in channels]


def _tables(values: object) -> Iterator[dict[str, Any]]:
    inner = values.values() if isinstance(values, dict) else values if isinstance(values, list) else ()
    yield from (each for each in inner if isinstance(each, dict))


def _rebase_list(table: dict[str, Any], key: str, folder: str) -> None:
    if isinstance(table.get(key), list):
        table[key] = [_rebased(each, folder) for each in table[key]]


def _rebase_key(table: dict[str, Any], key: str, folder: str) -> None:
    if key in table:
        table[key] = _rebased(table[key], folder)


def _rebased(path: object, folder: str) -> object:
    """A path in another folder; one that is absolute, already of a shipped recipe, or no path stays as it is."""
    if not isinstance(path, str) or not path or path.startswith(("/", f"{SHIPPED}/")):
        return path
    return f"{folder}/{path}"


def _channel(channel: object, folder: str) -> object:
    if isinstance(channel, str) and channel.startswith(("./", "../")):
        return f"./{posixpath.join(folder, channel)}" if folder != SHIPPED else f"{SHIPPED}/{channel}"
    return channel
