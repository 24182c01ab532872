"""What is installed in an environment: locked wheels by uv, or conda packages by py-rattler, solved and locked."""

from __future__ import annotations

import importlib.util
import platform
import shutil
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from axletree import registry
from axletree.app.recipes import problem_at
from axletree.app.sources import lock_command, naming
from axletree.core.errors import HostError, IntegrityError, Problem, RecipeError
from axletree.core.values import Digest
from axletree.environment.description import InstalledPackage
from axletree.environment.match_spec import with_python
from axletree.execute.stage_venvs import LOCK, UV_CACHE
from axletree.host.conda_install import solve_and_install
from axletree.host.fetch import download
from axletree.host.files import replace_file
from axletree.host.indexes import read_indexes
from axletree.host.interpreters import find_interpreter
from axletree.host.simple_api import find_file
from axletree.host.tools import SYSTEM_PATH
from axletree.host.venvs import create_venv
from axletree.package.conda.platforms import conda_subdir
from axletree.recipe.conda_locks import CondaLock, LockedPackage, conda_lock_name, parse_conda_lock, render_conda_lock
from axletree.recipe.locks import REMAKE, PyLock, beside, check_lock, make_lock, parse_lock, render_lock
from axletree.recipe.overlay import SHIPPED

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from axletree.app.recipes import LoadedRecipe
    from axletree.core.records import Interpreter
    from axletree.host.conda_install import Solved
    from axletree.recipe.settings import Settings
    from axletree.recipe.target import TargetEnvironment
    from axletree.store.store import Store

    Say = Callable[[str], None]

_CLIENT = ("HOME", "SSL_CERT_FILE", "HTTPS_PROXY", "HTTP_PROXY", "NO_PROXY", "https_proxy", "http_proxy", "no_proxy")


def install(
    loaded: LoadedRecipe,
    environment: TargetEnvironment,
    prefix: Path,
    *,
    store: Store,
    settings: Settings,
    environ: Mapping[str, str],
    upgrade: bool,
    say: Say,
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
        return _conda(loaded, environment, prefix, store=store, environ=environ, upgrade=upgrade, say=say)
    interpreter = find_interpreter(environment.python, environ=environ, cache=store.cache / "interpreters.json")
    with naming(loaded, lock_command(loaded)):
        lock = _wheel_lock(loaded, environment, interpreter)
    with store.lease("env") as folder:
        (folder / LOCK).write_text(render_lock(beside(lock)), encoding="utf-8")
        _fetch(lock, folder, environment, store=store, settings=settings, environ=environ, say=say)
        say(f"installing {len(lock.wheels)} wheels")
        client = {"PATH": ":".join(SYSTEM_PATH), "HOME": str(folder), "LC_ALL": "C.UTF-8"}
        create_venv(
            prefix, interpreter=interpreter, uv_cache=store.cache / UV_CACHE, environ=client, lock_folder=folder
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
    lock: PyLock,
    folder: Path,
    environment: TargetEnvironment,
    *,
    store: Store,
    settings: Settings,
    environ: Mapping[str, str],
    say: Say,
) -> None:
    """Have the wheels beside their lock: those of the store, the others from the user's indexes."""
    backend = registry.backend_of(environment.axes.get("gpu", ""))
    extra = [backend.torch_index(environment.axes["gpu"])] if backend is not None else []
    indexes = read_indexes(settings, environ, home=Path(environ.get("HOME", "/")), cwd=Path.cwd())
    for wheel in lock.wheels:
        place = folder / wheel.filename
        digest = Digest(wheel.sha256)
        with store.lock(f"fetch-{digest}"):
            if not store.has_blob(digest):
                say(f"fetching {wheel.filename}")
                url = find_file(wheel.filename, digest, indexes, extra=extra, offline=settings.offline).url
                partial = store.cache / "downloads"
                download(
                    url,
                    place,
                    sha256=digest,
                    size=wheel.size,
                    partial_folder=partial,
                    progress=None,
                    offline=settings.offline,
                )
                store.put_file(place, adopt=True)
        place.unlink(missing_ok=True)
        try:
            place.hardlink_to(store.blob_path(digest))
        except OSError:
            shutil.copyfile(store.blob_path(digest), place)


def _conda(
    loaded: LoadedRecipe,
    environment: TargetEnvironment,
    prefix: Path,
    *,
    store: Store,
    environ: Mapping[str, str],
    upgrade: bool,
    say: Say,
) -> tuple[InstalledPackage, ...]:
    if importlib.util.find_spec("rattler") is None:
        raise HostError("conda environments need py-rattler", hint="pip install 'py-rattler>=0.20'")
    name = conda_lock_name(environment.name, environment.axes, loaded.recipe.axes)
    path = loaded.places.find(name)
    requires = with_python(environment.requires, environment.python)
    channels = channel_addresses(environment, loaded)
    subdir = interpreter_platform()
    previous = None if upgrade else _previous(path, requires, environment.channels, subdir)
    wanted = requires if previous is None else [f"{p.name} =={p.version} {p.build}" for p in previous.packages]
    say("solving" if previous is None else f"installing {len(wanted)} packages from {path.name}")
    client = {name: environ[name] for name in _CLIENT if name in environ}
    client |= {"PATH": ":".join(SYSTEM_PATH), "LC_ALL": "C.UTF-8"}
    cache = store.cache / "conda"
    cache.mkdir(parents=True, exist_ok=True)
    solve = partial(solve_and_install, channels=channels, subdir=subdir, cache=cache, environ=client)
    solved = solve(None, wanted)
    if previous is not None:
        _require_same(previous, solved, path)
    exact = [f"{each.name} =={each.version} {each.build}" for each in solved]
    say(f"installing {len(exact)} packages")
    solve(prefix, exact)
    if previous is None:
        _write_lock(loaded.places.locks / name, _lock(requires, environment, subdir, solved), say)
    by_name = sorted(solved, key=lambda each: each.name)
    return msgspec.convert(by_name, tuple[InstalledPackage, ...], from_attributes=True)


def channel_addresses(environment: TargetEnvironment, loaded: LoadedRecipe) -> tuple[str, ...]:
    """Channels of an environment; a path is relative to the recipe, and becomes an address."""
    return tuple(
        loaded.file(text).resolve().as_uri() if text.startswith(("./", "../", "/", f"{SHIPPED}/")) else text
        for text in environment.channels
    )


def _previous(path: Path, requires: Sequence[str], channels: Sequence[str], subdir: str) -> CondaLock | None:
    """The lock, if it still is what is asked for."""
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise HostError(Problem(file=str(path), message=f"the file cannot be read: {error}")) from error
    lock = parse_conda_lock(text, file=str(path))
    same = (lock.requires, lock.channels, lock.platform) == (tuple(requires), tuple(channels), subdir)
    return lock if same else None


def _require_same(lock: CondaLock, solved: Sequence[Solved], path: Path) -> None:
    """See that the channels still have the very files.

    Raises:
        IntegrityError: names all that are not the locked ones.
    """
    found = {each.name: each for each in solved}
    wrong = [
        p.name for p in lock.packages if p.name in found and p.sha256 and found[p.name].sha256 not in {"", p.sha256}
    ]
    if wrong or found.keys() != {p.name for p in lock.packages}:
        what = ", ".join(wrong) or "different packages"
        message = f"the channels no longer contain these locked packages: {what}"
        raise IntegrityError(
            Problem(file=str(path), message=message, hint="choose new versions: axletree env create --upgrade")
        )


def _lock(requires: Sequence[str], environment: TargetEnvironment, subdir: str, solved: Sequence[Solved]) -> CondaLock:
    packages = msgspec.convert(solved, tuple[LockedPackage, ...], from_attributes=True)
    return CondaLock(platform=subdir, channels=environment.channels, requires=tuple(requires), packages=packages)


def _write_lock(path: Path, lock: CondaLock, say: Say) -> None:
    try:
        replace_file(path, render_conda_lock(lock).encode())
    except OSError as error:
        say(f"note: packages were not locked because {path} cannot be written: {error.strerror}")


def interpreter_platform() -> str:
    """Conda's name of this machine."""
    return conda_subdir(f"linux_{platform.machine()}")
