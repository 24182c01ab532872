"""Channels of conda environments, and the locks that a plan is made from."""

from __future__ import annotations

import platform
from typing import TYPE_CHECKING

from axletree.app.recipes import problem_at
from axletree.app.sources import read_lock
from axletree.backends.cuda import cuda_release
from axletree.core.errors import LockError, Problem, RecipeError
from axletree.host.conda_install import require_rattler
from axletree.package.conda.platforms import conda_subdir
from axletree.recipe.conda_locks import (
    CondaLock,
    check_conda_lock,
    exports_of,
    is_folder,
    parse_conda_lock,
)
from axletree.recipe.part import used_environments

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from axletree.app.recipes import LoadedRecipe
    from axletree.recipe.environments import TargetEnvironment
    from axletree.recipe.target import Target


def machine_subdir() -> str:
    """Conda's name of this machine's platform."""
    return conda_subdir(f"linux_{platform.machine()}")


def channel_places(environment: TargetEnvironment, loaded: LoadedRecipe) -> tuple[str, ...]:
    """Channels of an environment; a folder, which is relative to the recipe, becomes an address.

    Raises:
        RecipeError: a folder does not exist.
    """
    for number, text in enumerate(environment.channels):
        if is_folder(text) and not loaded.file(text).is_dir():
            message = f"the channel does not exist: {text}"
            hint = f"paths are relative to the recipe: {loaded.file(text).absolute()}"
            path = ("environments", environment.name, "channels", number)
            raise RecipeError(problem_at(loaded, path, message, hint=hint))
    return channel_addresses(environment, loaded)


def channel_addresses(environment: TargetEnvironment, loaded: LoadedRecipe) -> tuple[str, ...]:
    """The same, whether the folders exist or not."""
    return tuple(loaded.file(text).resolve().as_uri() if is_folder(text) else text for text in environment.channels)


def file_address(loaded: LoadedRecipe, channel: str, subdir: str, filename: str) -> str:
    """Address of a package in a channel that is a folder."""
    return (loaded.file(channel).resolve() / subdir / filename).as_uri()


def virtual_packages(environment: TargetEnvironment) -> dict[str, str]:
    """What a client is told of the system: one without a GPU can make environments for one that has it."""
    release = cuda_release(environment.axes.get("gpu", ""))
    return {} if release is None else {"__cuda": release}


def conda_locks(loaded: LoadedRecipe, targets: Iterable[Target], *, only_plan: bool = False) -> dict[str, CondaLock]:
    """The locks of conda environments that exist, by file name.

    ``only_plan`` takes an empty one, of no platform, for what is missing.

    Raises:
        RecipeError: a lock can't be read, or is none of its environment.
        HostError: a stage or a test has such an environment, but py-rattler is not installed.
    """
    found: dict[str, CondaLock] = {}
    problems: dict[Problem, None] = {}
    for target in targets:
        conda = {each.name: each for each in target.environments if each.provider == "conda"}
        for name in conda.keys() & used_environments(target) if not only_plan else ():
            require_rattler(f"environment {name!r} needs")
        for environment in sorted(conda.values(), key=lambda each: bool(each.builders)):
            path = loaded.places.find(environment.lock)
            if environment.lock in found:
                continue
            if not path.exists():
                if only_plan:
                    found[environment.lock] = CondaLock(platform="", channels=(), requires=(), packages=())
                continue
            lock = parse_conda_lock(read_lock(path, loaded), file=str(path))
            locks = [found[conda[name].lock] for name in environment.builders if conda[name].lock in found]
            exported = dict.fromkeys(text for each in locks for text in exports_of(each, "strong"))
            if len(locks) == len(environment.builders) and all(each.platform for each in locks):
                wrong = check_conda_lock(
                    lock, environment, file=str(path), platform=machine_subdir(), exported=tuple(exported)
                )
                problems |= dict.fromkeys(wrong)
            found[environment.lock] = lock
    if problems:
        raise LockError(*problems)
    return found


def addresses(loaded: LoadedRecipe, locks: Mapping[str, CondaLock]) -> dict[str, str]:
    """Digest of a locked package -> address of its file."""
    return {
        package.sha256: file_address(loaded, package.channel, package.subdir, package.filename)
        if package.channel
        else package.url
        for lock in locks.values()
        for package in lock.packages
    }
