"""Bring the wheels of a locked environment into the store, and prove that they install."""

from __future__ import annotations

from importlib.metadata import MetadataPathFinder
from typing import TYPE_CHECKING

from packaging.utils import parse_wheel_filename

from axletree.core.errors import Problem, StageError
from axletree.core.setting import LOCK as LOCK_COMMAND
from axletree.core.trees import Entry, make_tree
from axletree.core.values import Digest, canonical_json
from axletree.execute.actions.fetch import fetch_blob
from axletree.execute.context import Outcome
from axletree.execute.lacking import lacking_requirements
from axletree.execute.stage_venvs import DESCRIPTION, LOCK, ensure_environment
from axletree.plan.actions.environment import EnvironmentFacts
from axletree.plan.actions.fetch import FileSource
from axletree.plan.imports import WHEEL
from axletree.recipe.locks import LockedWheel, make_lock, render_lock

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from axletree.execute.context import ActionContext
    from axletree.plan.actions.environment import EnvironmentParameters
    from axletree.recipe.locks import PyLock


def run(context: ActionContext[EnvironmentParameters]) -> Outcome:
    """Fetch what is missing, store the tree of lock and wheels, and make the virtual environment from it.

    Wheels of imported recipes lie in the tree and in its lock like any other.

    Raises:
        HostError: a wheel cannot be had.
        IntegrityError: a wheel is not the locked one.
        StageError: the environment cannot be made, or lacks what a wheel of an imported recipe requires.
    """
    parameters = context.parameters
    imported = {_locked(entry): entry for entry in _imported(context)}
    wheels = (*parameters.wheels, *imported)
    entries = [*_wheels(context), *imported.values()]
    lock = render_lock(_lock(parameters, wheels)).encode()
    description = canonical_json({"version": parameters.version, "python": parameters.python})
    for path, data in ((LOCK, lock), (DESCRIPTION, description)):
        entries.append(Entry(path=path, blob=context.store.put_bytes(data), size=len(data)))
    tree = context.store.put_tree(make_tree(entries))
    venv = ensure_environment(context, tree)
    _check_requirements(imported, venv)
    facts = EnvironmentFacts(
        packages=tuple((wheel.name, wheel.version) for wheel in wheels),
        size=sum(wheel.size for wheel in wheels),
        python=parameters.python,
    )
    return Outcome(tree=tree, facts=facts)


def _lock(parameters: EnvironmentParameters, wheels: Iterable[LockedWheel]) -> PyLock:
    """The lock of the wheels. What was required of the resolver is not in it: another way to the same is the same."""
    return make_lock((), python=parameters.version, platform=parameters.platform, wheels=wheels)


def _imported(context: ActionContext[EnvironmentParameters]) -> Iterator[Entry]:
    """Wheels of imported recipes."""
    for name in context.request.inputs:
        if name.startswith(WHEEL):
            yield from (entry for entry in context.tree(name).entries if entry.path.endswith(".whl"))


def _locked(wheel: Entry) -> LockedWheel:
    assert wheel.blob is not None  # noqa: S101 (a wheel is a file)
    name, version, *_ = parse_wheel_filename(wheel.path)
    return LockedWheel(name=name, version=str(version), filename=wheel.path, size=wheel.size, sha256=wheel.blob)


def _check_requirements(wheels: Iterable[LockedWheel], venv: Path) -> None:
    """The lock was made without the wheels of imported recipes, so it need not have what these require."""
    problems = [
        Problem(
            message=f"{wheel.name} {wheel.version} requires {requirement}, which the environment does not have",
            hint=f"add it to the environment's requires and run `{LOCK_COMMAND}`, or to its packages",
        )
        for wheel in wheels
        for folder in venv.glob("lib/python*/site-packages")
        for dist in MetadataPathFinder.find_distributions(
            MetadataPathFinder.Context(name=wheel.name, path=[str(folder)])
        )
        for requirement in lacking_requirements(dist.requires or (), venv)
    ]
    if problems:
        raise StageError(*problems)


def _wheels(context: ActionContext[EnvironmentParameters]) -> Iterator[Entry]:
    """Fetch the wheels that the store lacks, with one progress over all of them."""
    wheels = context.parameters.wheels
    missing = [wheel for wheel in wheels if not context.store.has_blob(Digest(wheel.sha256))]
    total = sum(wheel.size for wheel in missing)
    done = 0
    for wheel in wheels:
        digest = Digest(wheel.sha256)
        if wheel in missing:
            wanted = FileSource(filename=wheel.filename, sha256=digest, size=wheel.size)
            digest = fetch_blob(context, wanted, before=done, total=total)
            done += wheel.size
        yield Entry(path=wheel.filename, blob=digest, size=wheel.size)
