"""Lock conda environments: solve them, and resolve their pip half, together."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import msgspec
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from axletree.app.conda_channels import channel_places, file_address, machine_subdir, virtual_packages
from axletree.app.lock_context import LockContext
from axletree.app.source_lock import read_lock_file
from axletree.core.errors import AxletreeError, HostError, Problem, RecipeError, StageError
from axletree.host.conda_install import Solved, require_rattler, solve_and_install
from axletree.host.indexes import IndexSettings
from axletree.host.interpreters import find_interpreter
from axletree.host.resolve import resolve_environment
from axletree.host.shipped_data import read_shipped
from axletree.host.tools import SYSTEM_PATH
from axletree.package.conda.requires import CONDA_NAMES
from axletree.recipe.axes import variant_id
from axletree.recipe.conda_locks import (
    CondaLock,
    Exports,
    LockedPackage,
    check_conda_lock,
    exports_of,
    is_folder,
    parse_conda_lock,
    python_of,
    spec_name,
    wanted,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from axletree.app.recipes import LoadedRecipe
    from axletree.recipe.environments import TargetEnvironment
    from axletree.recipe.locks import PyLock
    from axletree.recipe.target import Target

_CLIENT = ("HOME", "SSL_CERT_FILE", "HTTPS_PROXY", "HTTP_PROXY", "NO_PROXY", "https_proxy", "http_proxy", "no_proxy")
_UNSOLVABLE = "SolverError: "
_HINT = "change the requirements, or add a channel that has the missing packages"


class LockingConda(msgspec.Struct, frozen=True, kw_only=True):
    """How conda environments are locked."""

    surroundings: LockContext
    indexes: IndexSettings
    upgrade: bool
    note: Callable[[str], None]


def lock_conda_environments(
    loaded: LoadedRecipe, targets: Sequence[Target], locking: LockingConda
) -> Iterator[tuple[TargetEnvironment, CondaLock | None, CondaLock | AxletreeError]]:
    """Lock the conda environments of some targets, each after those whose run exports it gets.

    Yields:
        The environment, the lock before, and the lock now or why there is none. An environment whose build environment
        has none is not tried.
    """
    locks: dict[str, CondaLock] = {}
    for environment, built_by in in_solving_order(targets):
        if any(each.lock not in locks for each in built_by):
            continue
        before = read_lock_file(loaded.places.find(environment.lock), parse_conda_lock)
        try:
            lock = lock_conda(loaded, environment, [locks[each.lock] for each in built_by], locking)
        except AxletreeError as error:
            yield environment, before, error
            continue
        locks[environment.lock] = lock
        yield environment, before, lock


def in_solving_order(targets: Sequence[Target]) -> Iterator[tuple[TargetEnvironment, tuple[TargetEnvironment, ...]]]:
    """The distinct conda environments, each with its build environments, after them."""
    found = {
        environment.lock: (environment, builders(environment, target))
        for target in targets
        for environment in target.environments
        if environment.provider == "conda"
    }
    yield from sorted(found.values(), key=lambda pair: bool(pair[1]))


def builders(environment: TargetEnvironment, target: Target) -> tuple[TargetEnvironment, ...]:
    """The environments whose programs build what links against an environment."""
    return tuple(each for each in target.environments if each.name in environment.builders)


def exported_by(locks: Sequence[CondaLock]) -> tuple[str, ...]:
    """What build environments add to the requirements of their host environment."""
    return tuple(dict.fromkeys(text for lock in locks for text in exports_of(lock, "strong")))


def lock_conda(
    loaded: LoadedRecipe, environment: TargetEnvironment, built_by: Sequence[CondaLock], locking: LockingConda
) -> CondaLock:
    """The lock of a conda environment: the one that there is if it fits, unless it is to be upgraded; else a new one.

    Args:
        loaded: the recipe.
        environment: of a variant.
        built_by: locks of its build environments.
        locking: how.

    Raises:
        RecipeError: what is required cannot be had together, or a channel does not exist.
        HostError: py-rattler is missing, or a channel cannot be read.
    """
    require_rattler(f"environment {environment.name!r} needs")
    path = loaded.places.find(environment.lock)
    previous = None if locking.upgrade else read_lock_file(path, parse_conda_lock)
    exported, subdir = exported_by(built_by), machine_subdir()
    if previous is not None and not check_conda_lock(
        previous, environment, file=str(path), platform=subdir, exported=exported
    ):
        return previous
    label = variant_id(environment.axes, loaded.recipe.axes)
    locking.note(f"solving {environment.name} for {label}" if label else f"solving {environment.name}")
    solved = _solve(loaded, environment, (*wanted(environment), *exported), locking)
    packages = tuple(_locked(each, environment, loaded) for each in solved)
    if environment.python and python_of(packages) != environment.python:
        message = f"the packages include Python {python_of(packages)}, but the environment is for {environment.python}"
        raise RecipeError(message, hint=f'write "python {environment.python}.*" in requires, or remove python there')
    lock = CondaLock(
        platform=subdir,
        channels=environment.channels,
        requires=wanted(environment),
        exported=exported,
        wheel_requires=environment.wheels,
        packages=packages,
    )
    if not environment.wheels:
        return lock
    return msgspec.structs.replace(lock, wheels=_wheels(environment, packages, locking).wheels)


def _solve(
    loaded: LoadedRecipe, environment: TargetEnvironment, specs: Sequence[str], locking: LockingConda
) -> tuple[Solved, ...]:
    surroundings = locking.surroundings
    channels = channel_places(environment, loaded)
    remote = [each for each in environment.channels if not is_folder(each) and not each.startswith("file:")]
    if remote and surroundings.settings.offline:
        message = f"cannot read channel {remote[0]} with --offline"
        raise HostError(message, hint="lock once without --offline, or use a channel that is a folder")
    cache = surroundings.cache / "conda"
    cache.mkdir(parents=True, exist_ok=True)
    try:
        return solve_and_install(
            None,
            specs,
            channels=channels,
            subdir=machine_subdir(),
            cache=cache,
            virtual=virtual_packages(environment),
            environ=client_variables(surroundings.environ),
            exports=True,
        )
    except StageError as error:
        text = str(error)
        if _UNSOLVABLE in text:
            reason = text.partition(_UNSOLVABLE)[2].removeprefix("Cannot solve the request because of: ").strip()
            raise RecipeError(f"the requirements cannot be satisfied: {reason}", hint=_HINT) from None
        where = ", ".join(environment.channels)
        raise HostError(f"cannot solve with channels {where}: {text}") from None


def client_variables(environ: Mapping[str, str]) -> dict[str, str]:
    """Variables for py-rattler where it asks channels: the user's proxies and certificates, nothing else."""
    given = {name: environ[name] for name in _CLIENT if name in environ}
    return {"PATH": ":".join(SYSTEM_PATH), "LC_ALL": "C.UTF-8", **given}


def _locked(solved: Solved, environment: TargetEnvironment, loaded: LoadedRecipe) -> LockedPackage:
    if not solved.sha256 or solved.size is None:
        message = f"the channel gives no SHA-256 or size for {solved.filename}, so it cannot be locked"
        raise RecipeError(message, hint="index the channel again, or use another channel")
    channel = next(
        (
            text
            for text in environment.channels
            if is_folder(text) and solved.url == file_address(loaded, text, solved.subdir, solved.filename)
        ),
        "",
    )
    exports = solved.run_exports
    return LockedPackage(
        name=solved.name,
        version=solved.version,
        build=solved.build,
        build_number=solved.build_number,
        subdir=solved.subdir,
        filename=solved.filename,
        channel=channel,
        url="" if channel else solved.url,
        size=solved.size,
        sha256=solved.sha256,
        md5=solved.md5,
        depends=solved.depends,
        constrains=solved.constrains,
        noarch=solved.noarch,
        site_packages=solved.site_packages,
        run_exports=Exports(weak=exports.weak, strong=exports.strong) if exports.weak or exports.strong else None,
    )


def _wheels(environment: TargetEnvironment, packages: Sequence[LockedPackage], locking: LockingConda) -> PyLock:
    """The pip half, for the Python of the prefix; what conda brings is there already, so nothing replaces it."""
    python = python_of(packages)
    if python is None:
        message = "wheels need a Python, but the conda packages do not include one"
        raise RecipeError(message, hint='add "python" to requires')
    brought = distributions_of(packages)
    problems = [
        Problem(
            message=f"wheel {name} would replace conda package {package.name} {package.version}",
            hint="remove one of the two requirements",
        )
        for text in environment.wheels
        for name in [canonicalize_name(Requirement(text).name)]
        if (package := brought.get(name)) is not None
    ]
    if problems:
        raise RecipeError(*problems)
    surroundings = locking.surroundings
    interpreter = find_interpreter(python, environ=surroundings.environ, cache=surroundings.cache / "interpreters.json")
    locking.note(f"resolving the wheels of {environment.name} for Python {python}")
    return resolve_environment(
        environment.wheels,
        interpreter,
        locking.indexes,
        python=python,
        environ=surroundings.environ,
        excludes=sorted(brought),
        keep=surroundings.downloads,
        offline=surroundings.settings.offline,
        note=locking.note,
    )


def distributions_of(packages: Sequence[LockedPackage]) -> dict[str, LockedPackage]:
    """Distribution (normalised) -> the conda package that has it, as far as names tell."""
    distributions: dict[str, list[str]] = {}
    for distribution, names in read_shipped(CONDA_NAMES).items():
        if len(names) == 1 and "[" not in distribution:
            distributions.setdefault(spec_name(names[0]), []).append(distribution)
    return {
        distribution: package
        for package in packages
        if any(spec_name(text) in {"python", "python_abi"} for text in package.depends) and package.name != "python"
        for distribution in (canonicalize_name(package.name), *distributions.get(package.name, ()))
    }
