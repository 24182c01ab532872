"""What is installed in an environment: locked wheels by uv, or conda packages by py-rattler, solved and locked."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

import msgspec

from axletree import registry
from axletree.app.conda_channels import addresses
from axletree.app.conda_lock import LockingConda, lock_conda_environments
from axletree.app.lock_changes import in_environment
from axletree.app.lock_context import LockContext
from axletree.app.recipes import problem_at
from axletree.app.sources import lock_command, naming
from axletree.core.errors import HostError, Problem, RecipeError
from axletree.core.values import Digest
from axletree.environment.description import InstalledPackage
from axletree.execute.environments import conda_cache
from axletree.execute.stage_venvs import LOCK, UV_CACHE
from axletree.host.conda_prefix import PACKAGES, make_prefix
from axletree.host.fetch import download
from axletree.host.files import replace_file
from axletree.host.indexes import read_indexes
from axletree.host.interpreters import find_interpreter
from axletree.host.simple_api import find_file
from axletree.host.tools import SYSTEM_PATH
from axletree.host.venvs import create_venv
from axletree.recipe.conda_locks import CondaLock, render_conda_lock
from axletree.recipe.locks import REMAKE, LockedWheel, PyLock, beside, check_lock, make_lock, parse_lock, render_lock
from axletree.recipe.settings import Settings
from axletree.store.store import Store

if TYPE_CHECKING:
    from axletree.app.recipes import LoadedRecipe
    from axletree.core.records import Interpreter
    from axletree.recipe.conda_locks import LockedPackage
    from axletree.recipe.environments import TargetEnvironment
    from axletree.recipe.target import Target


class Means(msgspec.Struct, frozen=True, kw_only=True):
    """What installing uses."""

    store: Store
    """Has wheels, packages and caches."""
    settings: Settings
    """Say where wheels come from."""
    environ: Mapping[str, str]
    """The user's variables."""
    say: Callable[[str], None]
    """Told what is being done."""


def install(
    loaded: LoadedRecipe,
    target: Target,
    environment: TargetEnvironment,
    prefix: Path,
    means: Means,
    *,
    upgrade: bool,
) -> tuple[InstalledPackage, ...]:
    """Install what an environment requires into a prefix that does not exist yet.

    Raises:
        RecipeError: a lock is missing or wrong, or there is no solution.
        HostError: an interpreter or a file is missing.
        StageError: the installer fails.
    """
    if environment.packages:
        message = "the environment has packages of other recipes, which `axletree env` does not build"
        hint = "use it in a stage or a test, or define another environment without packages"
        raise RecipeError(problem_at(loaded, ("environments", environment.name, "packages"), message, hint=hint))
    if environment.provider == "system":
        return ()
    if environment.provider == "conda":
        return _conda(
            loaded,
            target,
            environment,
            prefix,
            means,
            upgrade=upgrade,
        )
    interpreter = find_interpreter(
        environment.python, environ=means.environ, cache=means.store.cache / "interpreters.json"
    )
    with naming(loaded, lock_command(loaded)):
        lock = _wheel_lock(loaded, environment, interpreter)
    with means.store.lease("env") as folder:
        (folder / LOCK).write_text(render_lock(beside(lock)), encoding="utf-8")
        _fetch(lock, folder, environment, means)
        means.say(f"installing {len(lock.wheels)} wheels")
        client = {"PATH": ":".join(SYSTEM_PATH), "HOME": str(folder), "LC_ALL": "C.UTF-8"}
        create_venv(
            prefix, interpreter=interpreter, uv_cache=means.store.cache / UV_CACHE, environ=client, lock_folder=folder
        )
    return tuple(InstalledPackage(name=each.name, version=each.version, sha256=each.sha256) for each in lock.wheels)


def _wheel_lock(loaded: LoadedRecipe, environment: TargetEnvironment, interpreter: Interpreter) -> PyLock:
    if not environment.requires:
        return make_lock((), python=environment.python, platform=interpreter.platform, wheels=())
    path = loaded.places.find(environment.lock)
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        message = f"environment {environment.name!r} has no lock for this variant"
        raise RecipeError(Problem(file=str(path), message=message, hint=REMAKE)) from None
    except (OSError, UnicodeDecodeError) as error:
        raise HostError(Problem(file=str(path), message=f"the file cannot be read: {error}")) from error
    lock = parse_lock(text, file=str(path))
    if problems := check_lock(lock, environment, file=str(path), platform=interpreter.platform):
        raise RecipeError(*problems)
    return lock


def _fetch(
    lock: PyLock | CondaLock,
    folder: Path,
    environment: TargetEnvironment,
    means: Means,
    *,
    known: Mapping[str, str] = MappingProxyType({}),
) -> None:
    """Have the files of a lock beside it: those of the store, the others from channels and the user's indexes.

    ``known`` are addresses of files that no index has, by digest.
    """
    extra = registry.torch_indexes(environment.axes)
    indexes = read_indexes(means.settings, means.environ, home=Path(means.environ.get("HOME", "/")), cwd=Path.cwd())
    files: list[tuple[Path, LockedWheel | LockedPackage]] = [(folder / each.filename, each) for each in lock.wheels]
    packages = lock.packages if isinstance(lock, CondaLock) else ()
    files += [(folder / PACKAGES / each.subdir / each.filename, each) for each in packages]
    for place, file in files:
        place.parent.mkdir(parents=True, exist_ok=True)
        digest = Digest(file.sha256)
        with means.store.lock(f"fetch-{digest}"):
            if not means.store.has_blob(digest):
                means.say(f"fetching {file.filename}")
                url = known.get(digest)
                if url is None:
                    url = find_file(file.filename, digest, indexes, extra=extra, offline=means.settings.offline).url
                partial = means.store.cache / "downloads"
                download(
                    url,
                    place,
                    sha256=digest,
                    size=file.size,
                    partial_folder=partial,
                    progress=None,
                    offline=means.settings.offline,
                )
                means.store.put_file(place, adopt=True)
        place.unlink(missing_ok=True)
        try:
            place.hardlink_to(means.store.blob_path(digest))
        except OSError:
            shutil.copyfile(means.store.blob_path(digest), place)


def _conda(
    loaded: LoadedRecipe,
    target: Target,
    environment: TargetEnvironment,
    prefix: Path,
    means: Means,
    *,
    upgrade: bool,
) -> tuple[InstalledPackage, ...]:
    """A conda prefix from its lock, which is made if there is none that fits."""
    lock = _conda_lock(loaded, target, environment, means, upgrade=upgrade)
    known = addresses(loaded, {environment.lock: lock})
    with means.store.lease("env") as folder:
        _fetch(lock, folder, environment, means, known=known)
        if lock.wheels:
            wheels = make_lock((), python=environment.python, platform=lock.platform, wheels=lock.wheels)
            (folder / LOCK).write_text(render_lock(beside(wheels)), encoding="utf-8")
        means.say(f"installing {len(lock.packages) + len(lock.wheels)} packages")
        make_prefix(
            prefix,
            lock,
            files=folder,
            cache=conda_cache(means.store),
            uv_cache=means.store.cache / UV_CACHE,
            environ={"PATH": ":".join(SYSTEM_PATH), "HOME": str(folder), "LC_ALL": "C.UTF-8"},
        )
    packages = [
        InstalledPackage(
            name=each.name,
            version=each.version,
            build=each.build,
            url=known[each.sha256],
            sha256=each.sha256,
            md5=each.md5,
        )
        for each in sorted(lock.packages, key=lambda each: each.name)
    ]
    wheels_there = (InstalledPackage(name=each.name, version=each.version, sha256=each.sha256) for each in lock.wheels)
    return (*packages, *wheels_there)


def _conda_lock(
    loaded: LoadedRecipe,
    target: Target,
    environment: TargetEnvironment,
    means: Means,
    *,
    upgrade: bool,
) -> CondaLock:
    """The lock of an environment, after those of its build environments; written where they did not fit."""
    home, cwd = Path(means.environ.get("HOME", "/")), Path.cwd()
    surroundings = LockContext(
        environ=means.environ, settings=means.settings, home=home, cwd=cwd, store=means.store.root
    )
    indexes = read_indexes(means.settings, means.environ, home=home, cwd=cwd)
    locking = LockingConda(surroundings=surroundings, indexes=indexes, upgrade=upgrade, note=means.say)
    needed = tuple(each for each in target.environments if each.name in {environment.name, *environment.builders})
    found: dict[str, CondaLock] = {}
    for each, before, lock in lock_conda_environments(
        loaded, [msgspec.structs.replace(target, environments=needed)], locking
    ):
        if not isinstance(lock, CondaLock):
            raise in_environment(lock, each, loaded)
        found[each.lock] = lock
        if lock != before:
            _write_lock(loaded.places.locks / each.lock, lock, means.say)
    return found[environment.lock]


def _write_lock(path: Path, lock: CondaLock, say: Callable[[str], None]) -> None:
    try:
        replace_file(path, render_conda_lock(lock).encode())
    except OSError as error:
        say(f"note: packages were not locked because {path} cannot be written: {error.strerror}")
