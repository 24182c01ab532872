"""Find and read recipes: files of the user, and those that ship with Axletree."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from axletree.app.audit_rules import refuse_unknown_rules
from axletree.app.defaults import find_defaults
from axletree.app.lock_places import LockPlaces, lock_places
from axletree.app.recipe_files import file_beside, find_recipe, is_name, named_recipe, read_text, shipped_recipes
from axletree.core.errors import AxletreeError, HostError, LockError, Problem, RecipeError, UsageError
from axletree.recipe import faults
from axletree.recipe.axes import expand
from axletree.recipe.defaults import Defaults, edited_problems, fill, stand_in
from axletree.recipe.documents import Document, problem_of, problems_of, read_document
from axletree.recipe.environments import Environment, with_requirements
from axletree.recipe.faults import Fault
from axletree.recipe.locks import REMAKE
from axletree.recipe.model import Recipe
from axletree.recipe.only_environments import has_only_environments, stood_in
from axletree.recipe.overlay import SHIPPED, base_of, extend, is_file
from axletree.recipe.parse import parse_document
from axletree.recipe.properties import DataFile, data_names
from axletree.recipe.requirements import parse_requirements
from axletree.recipe.sets import apply_sets, normal_sets
from axletree.recipe.source_tables import Source
from axletree.recipe.toml import table_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from axletree.recipe.presets import Preset

_MOST_BASES = 16


class LoadedRecipe(msgspec.Struct, frozen=True, kw_only=True):
    """A recipe and where it lies. :meth:`file` finds what it names."""

    recipe: Recipe
    path: Path
    document: Document = Document(filename="")
    """What it was read from, with its defaults."""
    sets: tuple[str, ...] = ()
    """What ``--set`` changed in it, in its normal form."""
    places: LockPlaces
    asked: str
    """What a command calls it: its path, or the name of one that ships with Axletree."""
    stated: Document = Document(filename="")
    """The document without its defaults."""
    defaults: Defaults | None = None
    """What fills it in; ``None`` if it states its stages."""
    lacking: tuple[Problem, ...] = ()
    """Why its stages are not known yet: then ``recipe`` has stand-ins, and nothing can be planned."""

    @property
    def words(self) -> tuple[str, ...]:
        """The recipe, as a command line names it again."""
        return (self.asked, *(word for text in self.sets for word in ("--set", text)))

    @property
    def only_environments(self) -> bool:
        """Whether it is for ``axletree env`` alone: its name, version and source are stand-ins."""
        return has_only_environments(self.stated.values)

    @property
    def source_folder(self) -> Path | None:
        """The folder that it builds, if it builds one."""
        return _source_folder(self.path, self.stated)

    def file(self, name: str) -> Path:
        """A file or folder that the recipe names, relative to where it was written."""
        return file_beside(self.path.parent, name)


class ShippedRecipe(msgspec.Struct, frozen=True, kw_only=True):
    """A recipe that ships with Axletree."""

    name: str
    version: str
    summary: str
    variants: int


class ShippedRecipes(msgspec.Struct, frozen=True, kw_only=True):
    """All shipped recipes, by name: report of ``recipes``."""

    recipes: tuple[ShippedRecipe, ...]


def load_recipe(name_or_path: str | Path, sets: Sequence[str] = ()) -> LoadedRecipe:
    """Read a recipe: a path to a ``.toml`` file, or the name of one that ships with Axletree.

    Args:
        name_or_path: which one.
        sets: changes of it for this call, ``KEY=VALUE`` each.

    Raises:
        UsageError: there is no such recipe, or no such key; the nearest names are given.
        RecipeError: it has faults, all of which are given.
        HostError: the file cannot be read.
    """
    path, named = find_recipe(name_or_path), is_name(name_or_path)
    return load_file(path, sets, asked=str(name_or_path) if named else str(path), named=named)


def load_file(path: Path, sets: Sequence[str] = (), *, asked: str, named: bool) -> LoadedRecipe:
    """Read the file of a recipe: see :func:`load_recipe`.

    Args:
        path: its file.
        sets: changes of it.
        asked: what a command calls it.
        named: whether that is the name of one that ships.
    """
    places = lock_places(path, normal_sets(sets), named=named)
    stated = _stated(path, places, sets)
    defaults, lacking = find_defaults(stated, places, folder=_source_folder(path, stated))
    found: dict[str, Any] = {"path": path, "sets": normal_sets(sets), "places": places, "asked": asked}
    try:
        return _loaded(stated, defaults=defaults, lacking=lacking, **found)
    except RecipeError as error:
        wrong = edited_problems(defaults, error.problems) if defaults is not None else ()
        if not wrong:
            raise
        try:
            return _loaded(stated, defaults=stand_in(stated.values), lacking=wrong, **found)
        except RecipeError as own:  # not only the defaults are wrong
            raise (own if defaults is not None and defaults.edited else error) from None


def with_defaults(loaded: LoadedRecipe, defaults: Defaults) -> LoadedRecipe:
    """The recipe with other defaults, which are current.

    Raises:
        RecipeError: it has faults with these.
    """
    return _loaded(
        loaded.stated,
        path=loaded.path,
        sets=loaded.sets,
        places=loaded.places,
        asked=loaded.asked,
        defaults=defaults,
        lacking=(),
    )


def load_whole(name_or_path: str | Path, sets: Sequence[str] = ()) -> LoadedRecipe:
    """As :func:`load_recipe`, for what needs to know the stages and environments.

    Raises:
        LockError: they are not locked, or not as they must be now.
    """
    return require_whole(load_recipe(name_or_path, sets))


def require_whole(loaded: LoadedRecipe) -> LoadedRecipe:
    """The recipe, if its stages are known; raises what :func:`load_whole` raises."""
    if loaded.lacking:
        raise LockError(*lacking_problems(loaded))
    return loaded


def lacking_problems(loaded: LoadedRecipe) -> tuple[Problem, ...]:
    """Why its stages are not known, with the command that locks them."""
    command = f"run `{shlex.join(['axletree', 'lock', *loaded.words])}`"
    return tuple(
        msgspec.structs.replace(each, hint=(each.hint or REMAKE).replace(REMAKE, command)) for each in loaded.lacking
    )


def _loaded(stated: Document, *, path: Path, defaults: Defaults | None, **fields: Any) -> LoadedRecipe:
    document = stood_in(fill(stated, defaults), stem=path.stem)
    data = [_data_file(path.parent, name) for name in data_names(document.values)]
    recipe = parse_document(document, data=data)
    refuse_unknown_rules(recipe, document)
    environments = {
        name: with_requirements(each, _required(path.parent, document, name, each))
        for name, each in recipe.environments.items()
    }
    recipe = msgspec.structs.replace(recipe, environments=environments)
    return LoadedRecipe(recipe=recipe, path=path, document=document, stated=stated, defaults=defaults, **fields)


def _required(folder: Path, document: Document, name: str, environment: Environment) -> tuple[str, ...]:
    """Requirements of the file that an environment names; none if it names none.

    Raises:
        RecipeError: the file cannot be read, or has lines that are none.
    """
    if environment.requires_from is None:
        return ()
    path = file_beside(folder, environment.requires_from)
    try:
        return parse_requirements(read_text(path), file=str(path))
    except HostError as error:
        reason = error.problems[0].message.removeprefix("the file cannot be read: ")
        message = f"cannot read {environment.requires_from}: {reason}"
        fault = Fault(
            path=("environments", name, "requires-from"),
            message=message,
            hint=f"paths are relative to the recipe: {path.absolute()}",
        )
        raise RecipeError(problem_of(document, fault)) from error


def _source_folder(path: Path, document: Document) -> Path | None:
    """The folder that a recipe builds, if it builds one."""
    place = table_of(document.values, "source").get("path")
    return file_beside(path.parent, place) if isinstance(place, str) else None


def files_of(path: Path, sets: Sequence[str] = ()) -> tuple[Path, ...]:
    """All files that a recipe is read from: its own, those it extends, data, requirements, locks; also its imports."""
    found: dict[Path, None] = {}
    queue = [(path, tuple(sets), False)]
    while queue:
        recipe, changes, named = queue.pop(0)
        if recipe in found:
            continue
        places = lock_places(recipe, normal_sets(changes), named=named)
        document = _stated(recipe, places, changes)
        data = (file_beside(recipe.parent, name) for name in data_names(document.values))
        required = (file_beside(recipe.parent, name) for name in _requirements_files(document))
        found |= dict.fromkeys([recipe, *map(Path, document.texts), *data, *required, *places.files()])
        for table in table_of(document.values, "recipes").values():
            name = str(table.get("recipe")) if isinstance(table, dict) else ""
            place, missing = named_recipe(name, recipe.parent)
            if place is not None and missing is None:
                queue.append((place, (), not is_file(name)))
    return tuple(found)


def _requirements_files(document: Document) -> Iterator[str]:
    for each in table_of(document.values, "environments").values():
        if isinstance(each, dict) and isinstance(each.get("requires-from"), str):
            yield each["requires-from"]


def _stated(path: Path, places: LockPlaces, sets: Sequence[str]) -> Document:
    """What a recipe says, without its defaults, but with what ``--set`` changes."""
    own = _document(path)
    defaults = find_defaults(own, places, folder=_source_folder(path, own))[0] if sets else None
    return apply_sets(own, sets, defaults)


def _document(path: Path, above: tuple[Path, ...] = ()) -> Document:
    """A recipe with all that it extends."""
    own = read_document(read_text(path), str(path))
    base = base_of(own)
    if base is None:
        return own
    chain = (*above, path)
    for fault in _wrong_base(base, chain):
        raise RecipeError(*problems_of(own, [fault]))
    place = path.parent / base if is_file(base) else shipped_recipes()[base]
    folder = Path(base).parent.as_posix() if is_file(base) else SHIPPED
    return extend(_document(place, chain), own, folder="" if folder == "." else folder)


def _wrong_base(base: str, chain: tuple[Path, ...]) -> Iterator[Fault]:
    place, missing = named_recipe(base, chain[-1].parent)
    if place is None or missing is not None:
        message, hint = missing or ("", None)
        yield Fault(path=("extends",), message=message, hint=hint)
    elif place.resolve() in (each.resolve() for each in chain):
        circle = " -> ".join(map(str, (*chain, place)))
        yield Fault(path=("extends",), message=f"the recipe extends itself: {circle}")
    elif len(chain) == _MOST_BASES:
        yield Fault(path=("extends",), message=f"the recipe extends a chain of more than {_MOST_BASES} recipes")


def _data_file(folder: Path, name: str) -> DataFile:
    """A data file of a recipe, with its content or why it has none."""
    path = file_beside(folder, name)
    try:
        return DataFile(name=name, filename=str(path), text=read_text(path))
    except AxletreeError as error:
        problem = error.problems[0]
        where = f" (line {problem.line})" if problem.line is not None else ""
        return DataFile(
            name=name, filename=str(path), trouble=problem.message.removeprefix("the file cannot be read: ") + where
        )


def with_source(loaded: LoadedRecipe, folder: Path) -> LoadedRecipe:
    """The recipe with a folder, such as a checkout of your own, instead of its source; patches still apply.

    Other sources are put into it as into the recipe's source, except where the folder already has them.

    Raises:
        UsageError: there is no such folder.
    """
    if not folder.is_dir():
        raise UsageError(
            f"source folder does not exist: {folder}", hint="run `axletree source sync` to create one from the recipe"
        )
    source = Source(path=str(folder.absolute()), exclude=loaded.recipe.source.exclude)
    extras = {
        name: msgspec.structs.replace(extra, into=None) if extra.into and _has_files(folder / extra.into) else extra
        for name, extra in loaded.recipe.sources.items()
    }
    return msgspec.structs.replace(loaded, recipe=msgspec.structs.replace(loaded.recipe, source=source, sources=extras))


def _has_files(path: Path) -> bool:
    return any(path.iterdir()) if path.is_dir() else path.exists()


def problem_at(loaded: LoadedRecipe, path: faults.Path, message: str, *, hint: str | None = None) -> Problem:
    """A problem of what a valid recipe asks for, with the place in the file that asks for it.

    Nobody edits defaults: where these ask for it, it is the key in the recipe's file.
    """
    found = problem_of(loaded.document, Fault(path=path, message=message, hint=hint))
    if loaded.defaults is None or found.file != loaded.defaults.filename:
        return found
    return msgspec.structs.replace(found, file=str(loaded.path), line=None, excerpt=None)


def preset_of(recipe: Recipe, name: str) -> Preset:
    """A preset of a recipe.

    Raises:
        UsageError: it has no such preset; its own are given.
    """
    if name not in recipe.presets:
        hint = (
            faults.suggestion(name, recipe.presets, "its presets")
            or "the recipe has no presets; a data file can add them"
        )
        raise UsageError(f"recipe {recipe.name} has no preset {name!r}", hint=hint)
    return recipe.presets[name]


def list_recipes() -> ShippedRecipes:
    """All recipes that ship with Axletree, by name."""
    loaded = [load_recipe(path) for path in shipped_recipes().values()]
    return ShippedRecipes(
        recipes=tuple(
            ShippedRecipe(
                name=each.path.stem,
                version=each.recipe.version,
                summary=each.recipe.summary,
                variants=len(expand(each.recipe)),
            )
            for each in loaded
        )
    )
