"""Recipes that a recipe imports: find and read them, and plan what is needed of each."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

import msgspec
from packaging.utils import canonicalize_name

from axletree.app.image_inputs import ImageInputs
from axletree.app.plan_inputs import find_pythons, plan_inputs
from axletree.app.planned_recipes import PlannedRecipe
from axletree.app.recipe_files import named_recipe
from axletree.app.recipes import LoadedRecipe, load_whole, problem_at, with_source
from axletree.app.refusals import refuse_secrets
from axletree.app.sources import lock_command, naming
from axletree.core.errors import LockError, RecipeError, UsageError
from axletree.core.records import Interpreter
from axletree.plan.imports import ImportedPart, PlanImports
from axletree.plan.steps import require_locks
from axletree.recipe.checks.importing import imported_faults
from axletree.recipe.documents import problems_of
from axletree.recipe.faults import Path as Key
from axletree.recipe.faults import suggestion
from axletree.recipe.imported import ImportGraph, import_targets
from axletree.recipe.overlay import is_file
from axletree.recipe.part import used_environments

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from axletree.plan.inputs import PlanInputs
    from axletree.recipe.imported import ImportedTarget
    from axletree.recipe.target import Target
    from axletree.store.store import Store


class LoadedImports(msgspec.Struct, frozen=True, kw_only=True):
    """A recipe with all recipes that it imports, directly or not."""

    recipes: dict[str, LoadedRecipe]
    """Name -> recipe: the one that is built first, each before those that it imports."""
    links: dict[str, dict[str, str]]
    """Name of a recipe -> name in its table ``recipes`` -> name of the recipe that it imports."""


class PlannedImports(msgspec.Struct, frozen=True, kw_only=True):
    """What is planned of imported recipes."""

    plan: PlanImports
    recipes: dict[str, PlannedRecipe]
    interpreters: dict[str, Interpreter]


def load_imports(loaded: LoadedRecipe, sources: Mapping[str, Path] | None = None) -> LoadedImports:
    """Read the recipes that a recipe imports, and compare them with what is said of them.

    Args:
        loaded: the recipe that is built.
        sources: name of an imported recipe -> folder that is built instead of its source.

    Raises:
        RecipeError: one does not exist, has faults or is not locked, they import each other in a cycle, two have the
            same name, or names and axes do not fit.
        UsageError: no imported recipe has a name in ``sources``, or its folder does not exist.
    """
    loader = _Loader()
    loader.visit(loaded, ())
    recipes = {name: loader.recipes[name] for name in reversed(loader.ended)}
    problems = []
    for name, each in recipes.items():
        others = {alias: recipes[other].recipe for alias, other in loader.links[name].items()}
        problems += problems_of(each.document, imported_faults(each.recipe, others))
    if problems:
        raise RecipeError(*problems)
    for name, folder in (sources or {}).items():
        if name not in recipes or name == loaded.recipe.name:
            hint = suggestion(name, recipes.keys() - {loaded.recipe.name}, "recipes that it imports")
            hint = hint or "to replace the recipe's own source, use --source DIR"
            raise UsageError(f"recipe {loaded.recipe.name} does not import a recipe named {name!r}", hint=hint)
        recipes[name] = with_source(recipes[name], folder)
    return LoadedImports(recipes=recipes, links=loader.links)


class _Loader:
    """Reads each imported recipe once, depth first."""

    def __init__(self) -> None:
        self.recipes: dict[str, LoadedRecipe] = {}
        self.links: dict[str, dict[str, str]] = {}
        self.ended: list[str] = []
        """Names, each behind those that it imports."""
        self._names: dict[Path, str] = {}
        self._first: dict[str, str] = {}
        """Name -> who imports it, and where."""

    def visit(self, loaded: LoadedRecipe, above: tuple[tuple[LoadedRecipe, str], ...]) -> None:
        name = loaded.recipe.name
        self.recipes[name] = loaded
        self._names[loaded.path.resolve()] = name
        links = self.links[name] = {}
        for alias in loaded.recipe.recipes:
            chain = (*above, (loaded, alias))
            path = _path_of(loaded, alias)
            _refuse_cycle(chain, path)
            known = self._names.get(path.resolve())
            if known is None:
                known = self._read(chain, path)
            links[alias] = known
        self.ended.append(name)

    def _read(self, chain: tuple[tuple[LoadedRecipe, str], ...], path: Path) -> str:
        loaded, alias = chain[-1]
        asked = loaded.recipe.recipes[alias].recipe
        with _locks_of_others():
            other = load_whole(path if is_file(asked) else asked)
        name = other.recipe.name
        if name in self.recipes:
            first = self._first.get(name, "the recipe that is built")
            message = f"two recipes are named {name!r}: {path}, and {self.recipes[name].path} ({first})"
            hint = "import the same file in both places, or rename one of the recipes"
            raise RecipeError(problem_at(loaded, ("recipes", alias, "recipe"), message, hint=hint))
        self._first[name] = f"imported by {_where(loaded, ('recipes', alias, 'recipe'))}"
        self.visit(other, chain)
        return name


def _path_of(loaded: LoadedRecipe, alias: str) -> Path:
    """The file of an imported recipe, which exists."""
    key = ("recipes", alias, "recipe")
    asked = loaded.recipe.recipes[alias].recipe
    place, missing = named_recipe(asked, loaded.path.parent)
    if missing is not None or place is None:
        message, hint = missing or ("", None)
        raise RecipeError(problem_at(loaded, key, message, hint=hint))
    return place


def _refuse_cycle(chain: tuple[tuple[LoadedRecipe, str], ...], path: Path) -> None:
    files = [each.path.resolve() for each, _ in chain]
    if path.resolve() not in files:
        return
    circle = chain[files.index(path.resolve()) :]
    loaded, alias = chain[-1]
    places = [_where(each, ("recipes", name, "recipe")) for each, name in circle]
    message = f"the recipes import each other in a cycle: {' -> '.join([*places, str(circle[0][0].path)])}"
    hint = "remove one of the imports"
    if len(circle) == 1:
        message = "the recipe imports itself"
        hint = f'remove [recipes.{alias}], and name its stages without a recipe, such as inputs = ["lib"]'
    raise RecipeError(problem_at(loaded, ("recipes", alias, "recipe"), message, hint=hint))


def _where(loaded: LoadedRecipe, key: Key) -> str:
    place = problem_at(loaded, key, "")
    return f"{place.file}, line {place.line}" if place.line is not None else str(place.file)


@contextmanager
def _locks_of_others() -> Iterator[None]:
    """Tell of locks of an imported recipe in a way that nobody takes for those of the recipe that is built.

    Raises:
        RecipeError: a lock is missing or out of date.
    """
    try:
        yield
    except LockError as error:
        raise RecipeError(*error.problems) from error


def plan_imports(
    imports: LoadedImports,
    targets: Sequence[Target],
    store: Store,
    out: Path,
    *,
    environ: Mapping[str, str],
    only_plan: bool,
) -> PlannedImports:
    """Find out what targets need of imported recipes, and read what planning these needs.

    Raises:
        RecipeError: an imported recipe does not have what a target needs, two recipes need it at different variants, or
            a lock of it is missing or out of date; its recipe is named.
        HostError: an interpreter is missing.
    """
    parts = _parts(imports, targets)
    found: dict[str, list[Target]] = {}
    for each in (part for needed in parts.values() for part in needed):
        found.setdefault(each.target.recipe, []).append(each.target)
    recipes: dict[str, PlannedRecipe] = {}
    inputs: dict[str, PlanInputs] = {}
    interpreters: dict[str, Interpreter] = {}
    for name, several in found.items():
        loaded = imports.recipes[name]
        relock = lock_command(loaded)
        _refuse_images(loaded, several)
        refuse_secrets(several, loaded)
        pythons = find_pythons(loaded, several, store, environ, only_plan=only_plan, only_used=True)
        interpreters |= pythons
        with _locks_of_others(), naming(loaded, relock):
            used = [_only_used(target) for target in several]
            inputs[name] = plan_inputs(loaded, used, store, pythons, {}, ImageInputs(), out, only_plan=only_plan)
            recipes[name] = PlannedRecipe(
                loaded=loaded, targets=tuple(several), relock=relock, conda=inputs[name].conda
            )
            for target in several:
                require_locks(target, inputs[name])
        refuse_doubles(loaded, used, inputs[name])
    plan = PlanImports(
        links=imports.links,
        parts={
            variant: tuple(_part(each, inputs[each.target.recipe], imports) for each in needed)
            for variant, needed in parts.items()
        },
    )
    return PlannedImports(plan=plan, recipes=recipes, interpreters=interpreters)


def refuse_doubles(loaded: LoadedRecipe, targets: Iterable[Target], inputs: PlanInputs) -> None:
    """Refuse environments whose lock has a distribution that they get from an imported recipe, too.

    Raises:
        RecipeError: there are any.
    """
    problems = {}
    for target in targets:
        for environment in target.environments:
            locked = _versions(environment.lock, inputs)
            for number, name in enumerate(environment.packages):
                package = canonicalize_name(name.partition("/")[2])
                if package in locked:
                    message = (
                        f"the environment gets {package} from a recipe, but its lock has {package} {locked[package]}"
                    )
                    hint = f"remove what requires {package} from its requires, then run `{lock_command(loaded)}`"
                    key = ("environments", environment.name, "packages", number)
                    problems[key] = problem_at(loaded, key, message, hint=hint)
    if problems:
        raise RecipeError(*problems.values())


def _versions(lock: str, inputs: PlanInputs) -> dict[str, str]:
    """What a lock of an environment has -> its version."""
    venv, conda = inputs.environments.get(lock), inputs.conda.get(lock)
    if conda is not None:
        return {each.name: each.version for each in conda.packages} | {each.name: each.version for each in conda.wheels}
    return {} if venv is None else {each.name: each.version for each in venv.lock.wheels}


def check_imports(imports: LoadedImports, targets: Sequence[Target]) -> None:
    """Refuse imports that lack what some targets of the built recipe need.

    Raises:
        RecipeError: they do.
    """
    _parts(imports, targets)


def _parts(imports: LoadedImports, targets: Sequence[Target]) -> dict[str, tuple[ImportedTarget, ...]]:
    if len(imports.recipes) == 1:
        return {}
    recipes = {name: loaded.recipe for name, loaded in imports.recipes.items()}
    graph = ImportGraph(recipes=recipes, links=imports.links)
    parts, faults = import_targets(graph, targets, lambda name, key: _where(imports.recipes[name], key))
    if faults:
        raise RecipeError(
            *(
                problem
                for each in faults
                for problem in problems_of(imports.recipes[each.recipe].document, [each.fault])
            )
        )
    return parts


def _part(each: ImportedTarget, inputs: PlanInputs, imports: LoadedImports) -> ImportedPart:
    return ImportedPart(part=each, inputs=inputs, axes=imports.recipes[each.target.recipe].recipe.axes)


def _only_used(target: Target) -> Target:
    """A target without the environments that nothing uses: their locks do not matter."""
    used = used_environments(target)
    return msgspec.structs.replace(
        target, environments=tuple(each for each in target.environments if each.name in used)
    )


def _refuse_images(loaded: LoadedRecipe, targets: Sequence[Target]) -> None:
    for target in targets:
        for stage in target.stages:
            if stage.image is not None:
                message = f"stage {stage.name!r} runs in an image, which an imported recipe cannot do"
                hint = "choose a variant of it without an image: map its axes in the recipe that imports it"
                raise RecipeError(problem_at(loaded, ("stages", stage.name, "image"), message, hint=hint))
