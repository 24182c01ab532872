"""Bring the wheels and conda packages of a locked environment into the store, and prove that they install."""

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
from axletree.execute.environments import CONDA_LOCK, ensure_environment
from axletree.execute.lacking import lacking_requirements
from axletree.execute.stage_venvs import DESCRIPTION, LOCK
from axletree.host.conda_prefix import PACKAGES
from axletree.plan.actions.environment import EnvironmentFacts
from axletree.plan.actions.fetch import FileSource
from axletree.plan.imports import WHEEL
from axletree.recipe.conda_locks import CondaLock, render_conda_lock
from axletree.recipe.locks import LockedWheel, make_lock, render_lock

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from axletree.execute.context import ActionContext
    from axletree.plan.actions.environment import EnvironmentParameters
    from axletree.recipe.conda_locks import LockedPackage


def run(context: ActionContext[EnvironmentParameters]) -> Outcome:
    """Fetch what is missing, store the tree of locks and files, and make the environment from it.

    Wheels of imported recipes lie in the tree and in its lock like any other.

    Raises:
        HostError: a wheel cannot be had.
        IntegrityError: a wheel is not the locked one.
        StageError: the environment cannot be made, or lacks what a wheel of an imported recipe requires.
    """
    parameters = context.parameters
    imported = {_locked(entry): entry for entry in _imported(context)}
    wheels = (*parameters.wheels, *imported)
    entries = [*_files(context), *imported.values()]
    members = dict(_texts(parameters, wheels))
    for path, data in members.items():
        entries.append(Entry(path=path, blob=context.store.put_bytes(data), size=len(data)))
    tree = context.store.put_tree(make_tree(entries))
    venv = ensure_environment(context, tree)
    _check_requirements(imported, venv)
    facts = EnvironmentFacts(
        packages=(
            *((package.name, package.version) for package in parameters.conda),
            *((wheel.name, wheel.version) for wheel in wheels),
        ),
        size=sum(package.size for package in parameters.conda) + sum(wheel.size for wheel in wheels),
        python=parameters.python,
    )
    return Outcome(tree=tree, facts=facts)


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


def _texts(parameters: EnvironmentParameters, wheels: Sequence[LockedWheel]) -> Iterator[tuple[str, bytes]]:
    """What the tree has beside the files. What was required is not in it: another way to the same is the same."""
    described: dict[str, object] = {"version": parameters.version, "python": parameters.python}
    if parameters.conda:
        described["conda"] = True
        conda = CondaLock(
            platform=parameters.platform,
            channels=(),
            requires=(),
            packages=parameters.conda,
            wheels=tuple(wheels),
        )
        yield CONDA_LOCK, render_conda_lock(conda).encode()
    if not parameters.conda or wheels:
        lock = make_lock((), python=parameters.version, platform=parameters.platform, wheels=wheels)
        yield LOCK, render_lock(lock).encode()
    yield DESCRIPTION, canonical_json(described)


def _files(context: ActionContext[EnvironmentParameters]) -> Iterator[Entry]:
    """Fetch the files that the store lacks, with one progress over all of them."""
    parameters = context.parameters
    named: list[tuple[str, LockedWheel | LockedPackage]] = [(each.filename, each) for each in parameters.wheels]
    named += [(f"{PACKAGES}/{each.subdir}/{each.filename}", each) for each in parameters.conda]
    missing = [each for _, each in named if not context.store.has_blob(Digest(each.sha256))]
    total = sum(each.size for each in missing)
    done = 0
    for path, each in named:
        digest = Digest(each.sha256)
        if each in missing:
            url = context.request.local.addresses.get(digest)
            wanted = FileSource(filename=each.filename, sha256=digest, size=each.size, url=url)
            digest = fetch_blob(context, wanted, before=done, total=total)
            done += each.size
        yield Entry(path=path, blob=digest, size=each.size)
