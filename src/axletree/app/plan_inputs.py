"""What planning reads for a recipe: interpreters, locks, the source, the files beside it."""

from __future__ import annotations

import os
from functools import partial
from typing import TYPE_CHECKING

import msgspec

from axletree import registry
from axletree.app.carried import carried_files
from axletree.app.conda_channels import conda_locks
from axletree.app.conda_inputs import conda_inputs
from axletree.app.host_libraries import host_libraries
from axletree.app.sources import extra_inputs, locked_environments, source_inputs
from axletree.binary.zip.deflate import COMPRESSOR
from axletree.core.errors import HostError
from axletree.host.interpreters import look_for_interpreters, stand_in
from axletree.host.shipped_data import shipped_digest
from axletree.package.libraries.build_paths import interpreter_folders
from axletree.package.libraries.policy import PLATFORM_POLICIES
from axletree.package.libraries.providers import LIBRARY_PROVIDERS
from axletree.package.wheel.info import GENERATOR
from axletree.plan.inputs import PlanInputs
from axletree.plan.relocation import graft_key
from axletree.recipe.part import used_environments

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from axletree.app.image_inputs import ImageInputs
    from axletree.app.recipes import LoadedRecipe
    from axletree.core.records import Interpreter
    from axletree.recipe.target import Target
    from axletree.store.store import Store


def find_pythons(
    loaded: LoadedRecipe,
    targets: Sequence[Target],
    store: Store,
    environ: Mapping[str, str],
    *,
    only_plan: bool,
    only_used: bool = False,
) -> dict[str, Interpreter]:
    """The Pythons of all environments.

    Args:
        loaded: the recipe.
        targets: its variants.
        store: where interpreters are remembered.
        environ: the user's variables.
        only_plan: whether others stand in for those that are missing.
        only_used: whether those of environments that no stage and no test uses may be missing.

    Raises:
        HostError: one is missing; told with the recipe that asks for it.
    """
    environments = [
        (each, not only_used or each.name in used_environments(target))
        for target in targets
        for each in target.environments
        if each.provider == "venv"
    ]
    look = partial(look_for_interpreters, environ=environ, cache=store.cache / "interpreters.json")
    versions = dict.fromkeys(environment.python for environment, _ in environments)
    needed = dict.fromkeys(environment.python for environment, is_needed in environments if is_needed)
    found, _ = look(versions)
    if needed.keys() <= found.keys():
        return found
    if only_plan:
        return {version: found.get(version) or stand_in(version) for version in versions}
    _, error = look(needed)
    assert error is not None  # noqa: S101 (one is missing)
    further = "; or build only other variants with -v or --skip" if len(targets) > 1 else ""
    raise HostError(
        *(
            msgspec.structs.replace(problem, file=str(loaded.path), hint=f"{problem.hint}{further}")
            for problem in error.problems
        )
    )


def plan_inputs(
    loaded: LoadedRecipe,
    targets: Sequence[Target],
    store: Store,
    interpreters: Mapping[str, Interpreter],
    clients: dict[str, str],
    images: ImageInputs,
    out: Path,
    *,
    only_plan: bool,
) -> PlanInputs:
    """Everything that planning reads of a recipe beforehand.

    Args:
        loaded: the recipe.
        targets: its variants, as far as they are planned.
        store: gets the files of folders.
        interpreters: Python version -> the interpreter.
        clients: versions of the clients that tests install with.
        images: what is known of its images.
        out: the output folder, which is no part of a source.
        only_plan: whether locks may be missing.

    Raises:
        RecipeError: a file, the source or a lock is missing or wrong.
    """
    paths = {patch.file for target in targets for patch in target.source.patches}
    paths |= {path for target in targets for test in target.tests for path in test.files}
    stages = [stage for target in targets for stage in target.stages]
    relocations = {graft_key(stage.relocate): stage.relocate for stage in stages if stage.relocate is not None}
    source = source_inputs(loaded, targets, store, out, only_plan=only_plan)
    return PlanInputs(
        source=source,
        extras=extra_inputs(loaded, targets, store, only_plan=only_plan),
        images=images.in_keys,
        environments=locked_environments(loaded, targets, interpreters, only_plan=only_plan),
        conda=conda_locks(loaded, targets, only_plan=only_plan),
        interpreters={
            version: interpreter_folders([interpreter.path, os.path.realpath(interpreter.path)])
            for version, interpreter in interpreters.items()
        },
        files=carried_files(loaded, sorted(paths), store),
        compressor=COMPRESSOR,
        generator=GENERATOR,
        driver_libraries=registry.driver_libraries(),
        policy=shipped_digest(PLATFORM_POLICIES),
        providers=shipped_digest(LIBRARY_PROVIDERS),
        **host_libraries(targets, relocations),
        clients=clients,
        **conda_inputs(targets),
    )
