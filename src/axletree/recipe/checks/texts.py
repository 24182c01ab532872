"""Texts with placeholders: what they read, and what they are at each variant."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

import msgspec

from axletree.recipe.axes import axes_of_test, has_package, matches
from axletree.recipe.checks import values as check
from axletree.recipe.checks.axes import add_hint
from axletree.recipe.checks.graph import changed_by, seen_by, seen_by_all
from axletree.recipe.checks.images import image_message
from axletree.recipe.checks.properties import unknown_property
from axletree.recipe.checks.relocation import absolute_message
from axletree.recipe.environments import has_python
from axletree.recipe.faults import Fault, Path, suggestion
from axletree.recipe.placeholders import ALWAYS, scan

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

    from axletree.recipe.conda import CondaTable
    from axletree.recipe.model import Package, Recipe, Stage, Test
    from axletree.recipe.override import Override
    from axletree.recipe.placeholders import Template
    from axletree.recipe.properties import Library
    from axletree.recipe.relocation import RelocateTable

Check = Callable[[str], str | None]
Presence = Callable[[dict[str, str]], bool]


def _everywhere(_: dict[str, str]) -> bool:
    return True


class Slot(msgspec.Struct, frozen=True, kw_only=True):
    """A text of a recipe that may hold placeholders."""

    path: Path
    text: str
    axes: tuple[str, ...] = ()
    """Axes that it may read."""
    declared_at: Path | None = None
    """The key that lists them; ``None`` where no axis can be read."""
    check: Check | None = None
    """Says what is wrong with the text once it is filled in."""
    given: dict[str, str] = {}
    """What it may read beside axes, with a value to try it with."""
    exists_at: Presence = _everywhere
    """Whether there is such a text at a variant, by its values."""


def values_at(recipe: Recipe, values: Mapping[str, str]) -> dict[str, str]:
    """What texts can read at a variant."""
    return {**values, "name": recipe.name, "version": recipe.version}


def has_values(recipe: Recipe, template: Template, given: Collection[str] = ()) -> bool:
    """Whether a text reads existing axes only; if not, that is told where they are declared."""
    return all(placeholder.name in (*recipe.axes, *ALWAYS, *given) for placeholder in template.placeholders)


def slots(recipe: Recipe) -> Iterator[Slot]:
    """All texts of a recipe that may hold placeholders."""
    yield from _source_slots(recipe)
    for name, table in recipe.recipes.items():
        for slot in _each(("recipes", name, "axes"), table.axes, tuple(recipe.axes), ("axes",)):
            yield msgspec.structs.replace(slot, exists_at=partial(matches, table.when))
    for name, environment in recipe.environments.items():
        path: Path = ("environments", name)
        seen = seen_by(recipe, "environment", name)
        requirement = check.requirement_message if environment.provider == "venv" else None
        yield from _each((*path, "requires"), environment.requires, *seen, requirement)
        if has_python(environment):
            yield _one((*path, "python"), environment.python, *seen, check.python_message)
        yield from _each((*path, "wheels"), environment.wheels, *seen, check.requirement_message)
        yield from _each((*path, "channels"), environment.channels, *seen)
        if environment.toolkit is not None:
            yield _one((*path, "toolkit"), environment.toolkit, *seen)
    for name, stage in recipe.stages.items():
        for slot in _stage_slots(recipe, name, stage):
            yield msgspec.structs.replace(slot, exists_at=partial(matches, stage.when))
    for name, package in recipe.packages.items():
        for slot in _package_slots(recipe, name, package):
            yield msgspec.structs.replace(slot, exists_at=partial(has_package, recipe, package))
    for name, test in recipe.tests.items():
        for slot in _test_slots(recipe, name, test):
            yield msgspec.structs.replace(slot, exists_at=partial(_has_test, recipe, test))
    for number, override in enumerate(recipe.override):
        for slot in _override_slots(recipe, ("override", number), override):
            yield msgspec.structs.replace(slot, exists_at=partial(_overrides, recipe, override))


def _has_test(recipe: Recipe, test: Test, values: dict[str, str]) -> bool:
    packages = [recipe.packages[name] for name in test.packages if name in recipe.packages]
    return any(has_package(recipe, package, values) for package in packages)


def _overrides(recipe: Recipe, override: Override, values: dict[str, str]) -> bool:
    if not matches(override.when, values):
        return False
    present = [
        *(matches(recipe.stages[name].when, values) for name in override.stages if name in recipe.stages),
        *(has_package(recipe, recipe.packages[name], values) for name in override.packages if name in recipe.packages),
    ]
    return any(present) or not present


def _one(path: Path, text: str, axes: tuple[str, ...], declared_at: Path | None, check: Check | None = None) -> Slot:
    return Slot(path=path, text=text, axes=axes, declared_at=declared_at, check=check)


def _each(
    path: Path,
    texts: Iterable[str] | dict[str, str],
    axes: tuple[str, ...],
    declared_at: Path | None,
    check: Check | None = None,
) -> Iterator[Slot]:
    for key, text in texts.items() if isinstance(texts, dict) else enumerate(texts):
        yield _one((*path, key), text, axes, declared_at, check)


def _source_slots(recipe: Recipe) -> Iterator[Slot]:
    for key in ("url", "git", "path", "wheel", "ref"):
        text = getattr(recipe.source, key)
        if text is not None:
            yield Slot(path=("source", key), text=text)
    for number, patch in enumerate(recipe.patches):
        yield Slot(path=("patches", number, "file"), text=patch.file, check=check.inside_message)
    for name, extra in recipe.sources.items():
        for key in ("url", "git", "path", "version", "ref"):
            text = getattr(extra, key)
            if text is not None:
                yield Slot(path=("sources", name, key), text=text)
        if extra.into is not None:
            yield Slot(path=("sources", name, "into"), text=extra.into, check=check.inside_message)
    for name, table in recipe.checkouts.items():
        for key in ("git", "ref"):
            text = getattr(table, key)
            if text is not None:
                yield Slot(path=("checkouts", name, key), text=text)
        for key in ("pin", "folder"):
            text = getattr(table, key)
            if text is not None:
                yield Slot(path=("checkouts", name, key), text=text, check=check.inside_message)


def _stage_slots(recipe: Recipe, name: str, stage: Stage) -> Iterator[Slot]:
    path: Path = ("stages", name)
    seen = seen_by(recipe, "stage", name)
    if stage.image is not None:
        yield _one((*path, "image"), stage.image, *seen, image_message(recipe))
    yield _one((*path, "directory"), stage.directory, *seen, check.folder_message)
    yield from _each((*path, "commands"), stage.commands, *seen)
    yield from _each((*path, "config"), stage.config, *seen)
    yield from _each((*path, "targets"), stage.targets, *seen)
    yield from _each((*path, "options"), stage.options, *seen)
    yield from _each((*path, "expect"), stage.expect, *seen)
    yield _one((*path, "prefix"), stage.prefix, *seen, check.prefix_message)
    yield from _each((*path, "files"), stage.files, *seen)
    yield from _each((*path, "env"), stage.env, *seen)
    if stage.relocate is not None:
        yield from _relocate_slots((*path, "relocate"), stage.relocate, *seen)


def _relocate_slots(path: Path, table: RelocateTable, axes: tuple[str, ...], declared_at: Path) -> Iterator[Slot]:
    yield from _each((*path, "place"), table.place, axes, declared_at, check.folder_message)
    yield from _each((*path, "link"), table.link, axes, declared_at, check.folder_message)
    yield from _each((*path, "drop"), table.drop, axes, declared_at)
    yield from _each((*path, "single"), table.single, axes, declared_at)
    if table.graft_to is not None:
        yield _one((*path, "graft-to"), table.graft_to, axes, declared_at, check.inside_message)
    yield from _each((*path, "graft-from"), table.graft_from, axes, declared_at, absolute_message)


def _package_slots(recipe: Recipe, name: str, package: Package) -> Iterator[Slot]:
    path: Path = ("packages", name)
    seen = seen_by(recipe, "package", name)
    optional: tuple[tuple[str, str | None, Check], ...] = (
        ("local", package.local, check.label_message),
        ("summary", package.summary, check.line_message),
        ("requires-python", package.requires_python, check.specifier_message),
        ("prefix", package.prefix, check.prefix_message),
        ("index", package.index, check.folder_message),
    )
    for key, text, message in optional:
        if text is not None:
            yield _one((*path, key), text, *seen, message)
    yield from _each((*path, "files"), package.files, *seen)
    yield from _each((*path, "exclude"), package.exclude, *seen)
    yield from _each((*path, "requires"), package.requires, *seen, check.requirement_message)
    yield from _conda_slots((*path, "conda"), package.conda, *seen)


def _conda_slots(path: Path, table: CondaTable, axes: tuple[str, ...], declared_at: Path | None) -> Iterator[Slot]:
    """Texts of a package's conda table, or of an override's."""
    number = table.build_number
    plain: tuple[tuple[str, str | None, Check], ...] = (
        ("name", table.name, check.conda_name_message),
        ("build-number", number if isinstance(number, str) else None, check.number_message),
        ("prefix", table.prefix, check.prefix_message),
    )
    for key, text, message in plain:
        if text is not None:
            yield _one((*path, key), text, axes, declared_at, message)
    if table.build is not None:
        given = {"hash": "h0123456", "number": "0" if isinstance(number, str) else str(number)}
        one = _one((*path, "build"), table.build, axes, declared_at, check.build_message)
        yield msgspec.structs.replace(one, given=given)
    yield from _each((*path, "activate"), table.activate, axes, declared_at, check.line_message)
    lists: dict[tuple[str, ...], tuple[tuple[str, ...], Check]] = {
        ("depends",): (table.depends, check.spec_message),
        ("constrains",): (table.constrains, check.spec_message),
        ("run-exports", "weak"): (table.run_exports.weak, check.spec_message),
        ("run-exports", "strong"): (table.run_exports.strong, check.spec_message),
        ("track-features",): (table.track_features, check.conda_name_message),
        ("ignore-run-exports",): (table.ignore_run_exports, check.conda_name_message),
    }
    for keys, (texts, message) in lists.items():
        for slot in _each((*path, *keys), texts, axes, declared_at, message):
            yield msgspec.structs.replace(slot, given={"pin": ">=1.0,<1.1.0a0"})


def _test_slots(recipe: Recipe, name: str, test: Test) -> Iterator[Slot]:
    path: Path = ("tests", name)
    seen = (axes_of_test(recipe, test), (*path, "axes"))
    if test.image is not None:
        yield _one((*path, "image"), test.image, *seen, image_message(recipe))
    yield from _each((*path, "imports"), test.imports, *seen)
    yield from _each((*path, "files"), test.files, *seen, check.inside_message)
    yield from _each((*path, "commands"), test.commands, *seen)


def _override_slots(recipe: Recipe, path: Path, override: Override) -> Iterator[Slot]:
    for kind, names in changed_by(override).items():
        if names:
            seen = seen_by_all(recipe, kind, names)
            yield from _each((*path, "env"), override.env, *seen)
            yield from _each((*path, "config"), override.config, *seen)
            yield from _each((*path, "options"), override.options, *seen)
            yield from _each((*path, "expect"), override.expect, *seen)
            yield from _each((*path, "commands"), override.commands or (), *seen)
            yield from _each((*path, "requires"), override.requires, *seen, check.requirement_message)
            if override.conda is not None:
                yield from _conda_slots((*path, "conda"), override.conda, *seen)
            return


def placeholder_faults(recipe: Recipe, library: Library) -> Iterator[Fault]:
    """All faults of placeholders as they are written; where a data file is at fault, any property may exist."""
    for slot in slots(recipe):
        template = scan(slot.text)
        for message in template.faults:
            yield Fault(path=slot.path, message=message)
        for placeholder in dict.fromkeys(template.placeholders):
            name = placeholder.name
            if name in (*ALWAYS, *slot.axes, *slot.given):
                known = {} if name in slot.given else library.known.get(name, {})
                may_exist = not library.complete and name in recipe.axes
                if placeholder.asks_property and placeholder.part not in known and not may_exist:
                    yield unknown_property(recipe, placeholder, slot.path, known)
                continue
            if name not in recipe.axes:
                hint = suggestion(name, [*recipe.axes, *ALWAYS, *slot.given], "available names")
                message = f"{placeholder} uses unknown axis {name!r}"
                yield Fault(path=slot.path, message=message, hint=hint, needs=(("axes", name),))
            elif slot.declared_at is None:
                message = f"{placeholder} uses axis {name!r}, but all variants share one source"
                yield Fault(path=slot.path, message=message, hint="only {name} and {version} are available here")
            else:
                message = f"{placeholder} uses axis {name!r}, which is not declared here"
                hint = add_hint([name], slot.declared_at)
                yield Fault(path=slot.path, message=message, hint=hint, needs=(slot.declared_at,))
