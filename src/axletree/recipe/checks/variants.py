"""What can only be seen at the variants: texts once filled in, names that meet, a matrix without any variant."""

from __future__ import annotations

from typing import TYPE_CHECKING

from axletree.core.errors import RecipeError
from axletree.recipe.axes import matches, project
from axletree.recipe.checks.axes import expansion
from axletree.recipe.checks.packages import package_faults_at
from axletree.recipe.checks.properties import missing_property
from axletree.recipe.checks.texts import has_values, slots, values_at
from axletree.recipe.environments import conda_lock_name, lock_name
from axletree.recipe.faults import Fault, related
from axletree.recipe.importing import presence
from axletree.recipe.placeholders import fill, scan
from axletree.recipe.properties import properties_at

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from axletree.recipe.axes import Variant
    from axletree.recipe.checks.texts import Slot
    from axletree.recipe.faults import Path
    from axletree.recipe.model import Recipe, Test
    from axletree.recipe.properties import Library


def variant_faults(recipe: Recipe, known: Sequence[Fault], library: Library) -> Iterator[Fault]:
    """All faults that appear at some variant.

    ``known`` are the faults found so far: a text that has one is not looked at again, and nothing is where the axes
    themselves are in doubt. Where a data file is at fault, what its properties would be in texts is unknown.
    """
    doubtful: tuple[Path, ...] = (("axes",), ("matrix",), ("name",), ("version",))
    if any(related(fault.path, path) for fault in known for path in doubtful):
        return
    variants, faults = expansion(recipe)
    yield from faults
    if not variants:
        return
    clean = [slot for slot in slots(recipe) if not any(related(fault.path, slot.path) for fault in known)]
    for slot in clean:
        yield from _filled(recipe, slot, variants, library)
    yield from _same_locks(recipe, variants)
    yield from _trees_that_lack(recipe, variants, known)
    in_doubt = [fault.path for fault in known]
    for name, package in recipe.packages.items():
        known_stage = package.from_ is None or package.from_ in recipe.stages
        if known_stage and not any(related(path, ("packages", name)) for path in in_doubt):
            yield from package_faults_at(recipe, name, package, variants)
    for name, test in recipe.tests.items():
        if not any(related(path, ("tests", name, "files")) for path in in_doubt):
            yield from _same_files(recipe, name, test, variants)


def _filled(recipe: Recipe, slot: Slot, variants: Sequence[Variant], library: Library) -> Iterator[Fault]:
    """The properties that a text misses, else its first fault at any variant."""
    template = scan(slot.text)
    if not has_values(recipe, template, slot.given):
        return
    variants = [variant for variant in variants if slot.exists_at(variant.values)]
    asked = [placeholder for placeholder in dict.fromkeys(template.placeholders) if placeholder.asks_property]
    missing = [
        missing_property(recipe, placeholder, slot.path, variants, library.known.get(placeholder.name, {}))
        for placeholder in asked
    ]
    if any(missing):
        yield from filter(None, missing if library.complete else ())
        return
    read = {placeholder.name for placeholder in template.placeholders} & set(slot.axes)
    distinct = {tuple(project(variant.values, read).items()): variant for variant in reversed(variants)}
    for variant in reversed(distinct.values()):
        try:
            values = values_at(recipe, variant.values) | slot.given
            text = fill(template, values, properties_at(recipe, variant.values))
            messages = [slot.check(text)] if slot.check else []
        except RecipeError as error:
            messages = [problem.message for problem in error.problems]
        for message in filter(None, messages):
            at = f" (at {variant.id})" if read and len(variants) > 1 else ""
            yield Fault(path=slot.path, message=message + at)
            return


def _trees_that_lack(recipe: Recipe, variants: Sequence[Variant], known: Sequence[Fault]) -> Iterator[Fault]:
    """Stages that are nowhere, and relocations at a variant that does not have the tree."""
    for name, stage in recipe.stages.items():
        path: Path = ("stages", name)
        if any(related(fault.path, path) for fault in known):
            continue
        made = [variant for variant in variants if matches(stage.when, variant.values)]
        if not made:
            message = "the condition matches no variant"
            yield Fault(path=(*path, "when"), message=message, absent=tuple((axis, "*") for axis in stage.when))
        first = presence(recipe, stage.inputs[0]) if stage.action == "relocate" and stage.inputs else {}
        lacking = next((each for each in made if not matches(first, each.values)), None)
        if lacking is not None:
            message = f"variant {lacking.id} does not have stage {stage.inputs[0]!r}, which this stage relocates"
            hint = f"give this stage the same `when` as {stage.inputs[0]!r}"
            yield Fault(path=(*path, "inputs", 0), message=message, hint=hint)


def _same_locks(recipe: Recipe, variants: Sequence[Variant]) -> Iterator[Fault]:
    seen: dict[str, str] = {}
    for name, environment in recipe.environments.items():
        for variant in variants:
            lock = (conda_lock_name if environment.provider == "conda" else lock_name)(
                name, project(variant.values, environment.axes), recipe.axes
            )
            if seen.setdefault(lock, name) != name:
                message = f"environments {seen[lock]!r} and {name!r} have the same lock file {lock}"
                yield Fault(path=("environments", name), message=message, hint="rename one of them")
                return


def _same_files(recipe: Recipe, name: str, test: Test, variants: Sequence[Variant]) -> Iterator[Fault]:
    """Files of a test lie side by side where it runs: two of one name would be one."""
    templates = [scan(text) for text in test.files]
    if not all(has_values(recipe, template) for template in templates):
        return
    for variant in variants:
        try:
            values, properties = values_at(recipe, variant.values), properties_at(recipe, variant.values)
            files = [fill(template, values, properties) for template in templates]
        except RecipeError:
            return  # said where the text stands
        seen: dict[str, str] = {}
        for number, file in enumerate(files):
            base = file.rpartition("/")[2]
            if base in seen:
                message = (
                    f"files {seen[base]!r} and {file!r} have the same name, but the test copies both into one folder"
                )
                yield Fault(path=("tests", name, "files", number), message=message, hint="rename one of them")
                return
            seen[base] = file
