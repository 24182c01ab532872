"""What a recipe that states no stage leaves to the project: its defaults, and how they fill it in.

``axletree lock`` reads them off the project and writes them into the recipe's companion folder, as tables of a recipe.
Document -> :func:`fill` -> parse: what the recipe says itself takes precedence, key by key.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import msgspec
from packaging.utils import canonicalize_name

from axletree.core.errors import Problem, RecipeError, render_problem
from axletree.core.values import canonical_json, digest_of
from axletree.recipe.base import Table
from axletree.recipe.documents import Place
from axletree.recipe.locate import locate, source_lines
from axletree.recipe.locks import REMAKE
from axletree.recipe.toml import decode_toml, table_of, tables_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from axletree.recipe.documents import Document
    from axletree.recipe.faults import Path


DEFAULTS_LOCK = "defaults.lock.toml"
"""Name of the file in a recipe's companion folder that has its defaults."""
DEFAULTS = 1
"""Version of the defaults: raised whenever they become others for the same project."""
MADE_FROM = "made-from"
_SEEN = ("python", "gpu", "torch")
"""Axes that defaults use."""
DERIVED = ("build", "test")
"""Environments that defaults have."""
REMAKE_DEFAULTS = f"{REMAKE} to write it again; change keys in the recipe instead, which take precedence"
_NAME = re.compile(r"\s*([A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)(?![{A-Za-z0-9._-])")


class MadeFrom(Table, frozen=True, kw_only=True, omit_defaults=True):
    """What decides the defaults: if it changes, they are out of date."""

    defaults: int
    """:data:`DEFAULTS` of the Axletree that made them."""
    axes: dict[str, tuple[str, ...]]
    """Those of the recipe that they use."""
    source: str = ""
    """Digest of the archive, or the commit; empty for a folder."""
    files: dict[str, str] = msgspec.field(default_factory=dict)
    """Of a folder: files that say how it is built -> digest; ``absent`` where there is none."""
    tables: str = ""
    """:func:`digest_of_tables` of the other tables when they were written; empty in files of earlier versions."""


class Defaults(msgspec.Struct, frozen=True, kw_only=True):
    """Tables that fill in a recipe."""

    tables: dict[str, Any]
    made_from: MadeFrom | None = None
    """``None`` where they stand in for some that were not made yet."""
    text: str = ""
    filename: str = ""
    """How problems name the file."""
    edited: bool = False
    """Whether somebody changed the tables after ``axletree lock`` wrote them."""


def is_short(values: Mapping[str, Any]) -> bool:
    """Whether a recipe leaves its stages to the defaults: it has Pythons and a source, but no stage with an action.

    One with environments of other names is for ``axletree env``, and a finished wheel is not built.
    """
    tables = dict(values)
    stages, source = table_of(tables, "stages"), table_of(tables, "source")
    if any(isinstance(stage, dict) and "action" in stage for stage in stages.values()):
        return False
    return (
        bool(source)
        and "wheel" not in source
        and "python" in table_of(tables, "axes")
        and table_of(tables, "environments").keys() <= {*DERIVED}
    )


def axes_seen(values: Mapping[str, Any]) -> dict[str, tuple[str, ...]]:
    """The axes of a recipe that its defaults use, with their values; what is none is left out."""
    axes = table_of(dict(values), "axes")
    return {
        axis: tuple(str(value) for value in axes[axis])
        for axis in _SEEN
        if isinstance(axes.get(axis), list) and axes[axis]
    }


def parse_defaults(text: str, *, filename: str) -> Defaults:
    """Read the defaults of a recipe.

    Raises:
        RecipeError: it is no TOML, or nothing that ``axletree lock`` wrote.
    """
    try:
        tables = decode_toml(text, filename)
    except RecipeError as error:
        raise RecipeError(*(as_altered(each) for each in error.problems)) from error
    version = table_of(tables, MADE_FROM).get("defaults")
    try:
        made_from = msgspec.convert(tables.pop(MADE_FROM, None), MadeFrom)
    except msgspec.ValidationError as error:
        problem = as_altered(Problem(message=str(error), file=filename, key=MADE_FROM))
        if isinstance(version, int) and version != DEFAULTS:
            message = f"the lock is out of date: {_other_version(version)}"
            problem = Problem(message=message, file=filename, hint=REMAKE)
        raise RecipeError(problem) from error
    edited = made_from.tables not in ("", digest_of_tables(tables))
    return Defaults(tables=tables, made_from=made_from, text=text, filename=filename, edited=edited)


def digest_of_tables(tables: Mapping[str, Any]) -> str:
    """What tells whether somebody changed defaults; comments and the form of the text do not count."""
    return digest_of(canonical_json(dict(tables)))[:16]


def as_altered(problem: Problem) -> Problem:
    """A problem that is in the file of the defaults because somebody edited it."""
    message = f"the file was edited after `axletree lock` wrote it: {problem.message}"
    return msgspec.structs.replace(problem, message=message, hint=REMAKE_DEFAULTS)


def edited_problems(defaults: Defaults, problems: Iterable[Problem]) -> tuple[Problem, ...]:
    """Why a recipe can't be read with its defaults, if those are to blame; nothing where the recipe itself is.

    Args:
        defaults: Its defaults.
        problems: Of the recipe with these. What is wrong in the recipe's own lines may follow from an edit, too.
    """
    found = tuple(problems)
    own = [each for each in found if each.file == defaults.filename]
    if not defaults.edited:
        return tuple(msgspec.structs.replace(each, hint=REMAKE) for each in own)
    if own:
        return tuple(map(as_altered, own))
    told = render_problem(msgspec.structs.replace(found[0], hint=None, excerpt=None))
    return (as_altered(Problem(message=f"the recipe does not match these defaults: {told}", file=defaults.filename)),)


def changes(made: MadeFrom, now: MadeFrom) -> tuple[str, ...]:
    """What is different from what defaults were made from, as parts of sentences; nothing where they are current."""
    found = []
    if made.defaults != now.defaults:
        found.append(_other_version(made.defaults, now.defaults))
    for axis in {**made.axes, **now.axes}:
        before, after = made.axes.get(axis, ()), now.axes.get(axis, ())
        if before != after:
            found.append(f"axes.{axis} is {_shown(after)}, was {_shown(before)}")
    if made.source != now.source:
        found.append(f"the source is {_pin(now.source)}, was {_pin(made.source)}")
    found += [f"{file} changed" for file in now.files if made.files.get(file) != now.files[file]]
    return tuple(found)


def _other_version(version: int, now: int = DEFAULTS) -> str:
    age = "a newer" if version > now else "an older"
    return f"it was written by {age} Axletree (version {version} of the defaults, here {now})"


def comments_of(defaults: Defaults, values: Mapping[str, Any]) -> dict[Path, str]:
    """What defaults say of where their keys come from, without keys that the recipe says itself."""
    lines = source_lines(defaults.text)
    found: dict[Path, str] = {}
    for path, line in locate(defaults.text).items():
        if (len(path) > 1 and isinstance(path[-1], int)) or _stated(values, path):
            continue
        comment = _comment(lines, line - 1)
        if comment:
            found[path] = comment
    return found


def _stated(values: Any, path: Path) -> bool:
    """Whether a document has a key."""
    for part in path:
        if not isinstance(values, dict) or part not in values:
            return False
        values = values[part]
    return True


def _comment(lines: Sequence[str], at: int) -> str:
    """The comment behind a line that has a key, else the one above it."""
    line = lines[at]
    for place in (match.start() for match in re.finditer("  # ", line)):
        if tables_of(line[:place]):  # not inside a text
            return line[place + 4 :]
    above = at
    while above > 0 and lines[above - 1].startswith("# "):
        above -= 1
    return " ".join(each[2:] for each in lines[above:at])


def stand_in(values: Mapping[str, Any], *, name: str = "") -> Defaults:
    """What stands in for defaults that were not made yet, so that the rest of a recipe can be checked.

    ``name`` is what its package was called earlier: it counts where the recipe names none.
    """
    name = _name_of(values, name)
    axes = list(axes_seen(values))
    environment = {"axes": axes}
    root = "/".join(f"{{{axis}}}" for axis in axes if axis != "python") or "."
    tables: dict[str, Any] = {
        "name": name,
        "environments": {"build": environment, "test": environment},
        "stages": {"build": {"action": "build", "axes": axes, "environment": "build"}},
        "packages": {name: {"from": "build", "index": root}},
        "tests": {"imports": {"packages": [name], "imports": [re.sub(r"\W", "_", name)]}},
    }
    if "pypi" not in table_of(dict(values), "source"):
        tables["version"] = "0.dev0"
    return Defaults(tables=tables)


def fill(document: Document, defaults: Defaults | None) -> Document:
    """A recipe's document with its defaults.

    Tables are joined, and so are requirements, of which the recipe's replace those on the same distribution, and
    overrides, of which the recipe's come last. Of all other keys the recipe's value counts, also against an override of
    the defaults.
    """
    if defaults is None:
        return document
    moved: dict[Path, tuple[bool, Path]] = {}
    tables, said = _giving_way(defaults.tables, document.values)
    joined = _joined(tables, document.values, (), moved)
    idle = [name for name, test in table_of(joined, "tests").items() if _is_idle(test)]
    unsaid = [name for name in idle if not _stated(document.values, ("tests", name))]
    if unsaid:
        joined["tests"] = {name: test for name, test in joined["tests"].items() if name not in unsaid}
    places = _places(document, defaults, moved)
    places |= {path: msgspec.structs.replace(places[own], there=own) for path, own in said.items() if own in places}
    return msgspec.structs.replace(
        document,
        values=joined,
        places=places,
        texts=document.texts | ({defaults.filename: defaults.text} if defaults.text else {}),
    )


def _giving_way(defaults: dict[str, Any], own: dict[str, Any]) -> tuple[dict[str, Any], dict[Path, Path]]:
    """Defaults whose overrides have the recipe's values of what it says of a stage, and where these are from."""
    overrides: list[Any] = []
    said: dict[Path, Path] = {}
    for number, override in enumerate(_overrides(defaults)):
        name = str(override.get("stage"))
        stage = table_of(table_of(own, "stages"), name)
        changed = dict(override)
        for field, theirs in override.items():
            ours = table_of(stage, field)
            both = [key for key in theirs if key in ours] if isinstance(theirs, dict) else []
            if both:
                changed[field] = theirs | {key: ours[key] for key in both}
                said |= {("override", number, field, key): ("stages", name, field, key) for key in both}
        overrides.append(changed)
    return (defaults | {"override": overrides} if said else defaults), said


def _overrides(defaults: dict[str, Any]) -> list[dict[str, Any]]:
    found = defaults.get("override")
    return found if isinstance(found, list) and all(isinstance(each, dict) for each in found) else []


def _places(document: Document, defaults: Defaults, moved: Mapping[Path, tuple[bool, Path]]) -> dict[Path, Place]:
    """Where the values of a filled document are written; ``moved`` has the items of lists that were joined."""
    theirs = {path: Place(defaults.filename, line) for path, line in locate(defaults.text).items()}
    lists = {path[:-1] for path in moved}
    places = {
        path: place
        for path, place in (theirs | document.places).items()
        if not any(path[:size] in lists for size in range(1, len(path)))
    }
    for path, (in_defaults, source) in moved.items():
        written, size = theirs if in_defaults else document.places, len(source)
        places |= {
            (*path, *each[size:]): msgspec.structs.replace(place, there=place.there or each)
            for each, place in written.items()
            if each[:size] == source
        }
    return places


def _is_idle(test: object) -> bool:
    """Whether a test tries nothing: the defaults have one for a project whose modules are not known."""
    return isinstance(test, dict) and test.keys().isdisjoint(("imports", "commands"))


def _joined(
    defaults: dict[str, Any], own: dict[str, Any], path: Path, moved: dict[Path, tuple[bool, Path]]
) -> dict[str, Any]:
    """Two tables; keys of the recipe come first, in its order."""
    result = {**own, **{key: value for key, value in defaults.items() if key not in own}}
    for key in own.keys() & defaults.keys():
        place, ours, theirs = (*path, key), own[key], defaults[key]
        if isinstance(ours, dict) and isinstance(theirs, dict):
            result[key] = _joined(theirs, ours, place, moved)
        elif isinstance(ours, list) and isinstance(theirs, list) and _is_added(place):
            kept = _kept(theirs, ours) if key == "requires" else list(range(len(theirs)))
            result[key] = [*(theirs[number] for number in kept), *ours]
            moved |= {(*place, at): (True, (*place, number)) for at, number in enumerate(kept)}
            moved |= {(*place, len(kept) + number): (False, (*place, number)) for number in range(len(ours))}
    return result


def _is_added(path: Path) -> bool:
    match path:
        case ("override",) | ("environments" | "packages", _, "requires"):
            return True
        case _:
            return False


def _kept(defaults: list[Any], own: Iterable[Any]) -> list[int]:
    """Positions of the requirements on distributions that the recipe's own say nothing of."""
    named = {_distribution(text) for text in own} - {""}
    return [number for number, text in enumerate(defaults) if _distribution(text) not in named]


def _distribution(requirement: object) -> str:
    """The normalised name of what is required; empty where a placeholder is part of it, or it is no text."""
    found = _NAME.match(requirement) if isinstance(requirement, str) else None
    return canonicalize_name(found[1]) if found else ""


def _name_of(values: Mapping[str, Any], earlier: str) -> str:
    """A name for the only package of a recipe whose project was not read yet: the likeliest that it says."""
    tables = dict(values)
    tests = [test.get("packages") for test in table_of(tables, "tests").values() if isinstance(test, dict)]
    said = [
        *table_of(tables, "packages"),
        *(each for packages in tests if isinstance(packages, list) for each in packages),
        earlier,
        table_of(tables, "source").get("pypi"),
        values.get("name"),
    ]
    return next((canonicalize_name(each) for each in said if isinstance(each, str) and each), "project")


def _shown(values: tuple[str, ...]) -> str:
    return ", ".join(values) or "absent"


def _pin(source: str) -> str:
    return source[:12] or "a folder"
