"""What pins a recipe's source and environments: folders, wheels beside the recipe, and its locks."""

from __future__ import annotations

import glob
import shlex
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import msgspec

from axletree.app.lock_places import WITH_SET
from axletree.app.recipes import problem_at
from axletree.core.errors import HostError, LockError, Problem, RecipeError
from axletree.core.setting import LOCK
from axletree.core.values import Digest
from axletree.host.devtree import FOLDER
from axletree.host.interpreters import identity
from axletree.plan.actions.fetch import CommitSource, FileSource, FolderSource
from axletree.plan.inputs import NO_COMMIT, LockedEnvironment
from axletree.recipe.defaults import DEFAULTS_LOCK
from axletree.recipe.locks import (
    REMAKE,
    SOURCE_LOCK,
    check_lock,
    check_source,
    make_lock,
    parse_lock,
    parse_source,
    parse_sources,
)
from axletree.recipe.sdists import SUFFIXES

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from axletree.app.recipes import LoadedRecipe
    from axletree.core.records import Interpreter
    from axletree.plan.actions.fetch import PinnedSource
    from axletree.recipe.locks import SourceLock
    from axletree.recipe.target import Target
    from axletree.recipe.target_source import TargetExtra, TargetSource
    from axletree.store.store import Store

_NO_SOURCE = ("**/.git", "**/__pycache__", f"**/{FOLDER}")
"""What is no part of a source folder: also not what `axletree dev` keeps in it, with links out of it."""
_LOCKS = ("pylock.*.toml", "conda-lock.*.toml", SOURCE_LOCK, DEFAULTS_LOCK, WITH_SET)


def source_inputs(
    loaded: LoadedRecipe, targets: Sequence[Target], store: Store, out: Path, *, only_plan: bool = False
) -> PinnedSource:
    """What pins the source; a folder or a local wheel goes into the store. ``out`` is no part of a folder.

    ``only_plan`` takes :data:`NO_COMMIT` for a source that is not locked.

    Raises:
        RecipeError: the source or its lock is missing, or they do not fit.
    """
    source = targets[0].source
    if source.kind == "path":
        folder = loaded.file(source.location)
        if not folder.is_dir():
            message = f"the source folder does not exist: {source.location}"
            hint = f"paths are relative to the recipe: {folder.absolute()}"
            raise RecipeError(problem_at(loaded, ("source", "path"), message, hint=hint))
        no_source = [
            *_below(folder, loaded.places.companion, *_LOCKS),
            *_below(folder, out),
            *_below(folder, store.root),
        ]
        for recipe in (loaded.path, *map(Path, loaded.stated.texts)):  # a stage's key has what it says for it
            no_source += _below(folder, recipe)
        return FolderSource(tree=store.ingest(folder, exclude=(*source.exclude, *_NO_SOURCE, *no_source)))
    if source.kind == "wheel" and "://" not in source.location:
        return _local_wheel(loaded.file(source.location), loaded, store)
    if only_plan and not loaded.places.find(SOURCE_LOCK).exists():
        return CommitSource(url=source.location, commit=NO_COMMIT, submodules=source.submodules)
    return _locked_source(loaded, source)


def extra_inputs(
    loaded: LoadedRecipe, targets: Sequence[Target], store: Store, *, only_plan: bool = False
) -> dict[str, PinnedSource]:
    """What pins the sources beside the recipe's own that some variant has, as :func:`source_inputs`.

    Raises:
        RecipeError: one is missing.
        LockError: the lock does not pin some of them, or pins what the recipe no longer asks for; all are named.
    """
    extras = {extra.name: extra for target in targets for extra in target.source.extras}
    path = loaded.places.find(SOURCE_LOCK)
    locked = [extra for extra in extras.values() if extra.kind != "path"]
    pins = parse_sources(read_lock(path, loaded), file=str(path)).extras if locked and path.exists() else {}
    found: dict[str, PinnedSource] = {}
    problems: list[Problem] = []
    for name, extra in extras.items():
        pin = pins.get(name)
        if extra.kind == "path":
            found[name] = _local_extra(loaded, extra, store)
        elif pin is not None:
            problems += check_source(pin, extra, file=str(path), key=f"sources.{name}")
            found[name] = _pinned_extra(extra, pin)
        elif only_plan:
            found[name] = CommitSource(url=extra.location, commit=NO_COMMIT, submodules=extra.submodules)
        else:
            message = f"source {name!r} is not locked: {path} does not pin it"
            problems.append(problem_at(loaded, ("sources", name), message, hint=REMAKE))
    if problems:
        raise LockError(*problems)
    return found


def _pinned_extra(extra: TargetExtra, pin: SourceLock) -> PinnedSource:
    if pin.commit is not None:
        return CommitSource(url=extra.location, commit=pin.commit, submodules=extra.submodules)
    return _extra_file(
        extra, pin.filename or "", pin.sha256 or "", pin.size, url=None if extra.kind == "pypi" else extra.location
    )


def _extra_file(extra: TargetExtra, filename: str, sha256: str, size: int | None, *, url: str | None) -> FileSource:
    """A file: an archive unless its name or the recipe says otherwise."""
    archive = filename.endswith(SUFFIXES) if extra.unpack is None else extra.unpack
    top: Literal["keep", "strip"] | None = "keep" if extra.strip == 0 else "strip"
    return FileSource(
        filename=filename, sha256=Digest(sha256), size=size, url=url, plain=not archive, top=top if archive else None
    )


def _local_extra(loaded: LoadedRecipe, extra: TargetExtra, store: Store) -> PinnedSource:
    """A folder or a file beside the recipe, which goes into the store."""
    path = loaded.file(extra.location)
    if path.is_dir():
        return FolderSource(tree=store.ingest(path, exclude=(*extra.exclude, *_NO_SOURCE)))
    if not path.is_file():
        message = f"the source does not exist: {extra.location}"
        hint = f"paths are relative to the recipe: {path.absolute()}"
        raise RecipeError(problem_at(loaded, ("sources", extra.name, "path"), message, hint=hint))
    return _extra_file(extra, path.name, *store.put_file(path), url=None)


def _below(folder: Path, path: Path, *names: str) -> list[str]:
    """Patterns for a path, or for names in it, if it lies below a source folder."""
    folder, path = folder.resolve(), path.resolve()
    if folder not in path.parents and not (names and folder == path):
        return []
    place = glob.escape(path.relative_to(folder).as_posix())
    return [f"{place}/{name}".removeprefix("./") for name in names] or [place]


def _local_wheel(path: Path, loaded: LoadedRecipe, store: Store) -> FileSource:
    try:
        data = path.read_bytes()
    except OSError as error:
        message = f"cannot read the wheel: {error.strerror}"
        hint = f"paths are relative to the recipe: {path.absolute()}"
        raise RecipeError(problem_at(loaded, ("source", "wheel"), message, hint=hint)) from error
    return FileSource(filename=path.name, sha256=store.put_bytes(data), size=len(data))


def _locked_source(loaded: LoadedRecipe, source: TargetSource) -> PinnedSource:
    path = loaded.places.find(SOURCE_LOCK)
    if not path.exists():
        message = f"the source is not locked: {path} does not exist"
        raise LockError(problem_at(loaded, ("source",), message, hint=REMAKE))
    lock = parse_source(read_lock(path, loaded), file=str(path))
    problems = check_source(lock, source, file=str(path))
    if problems:
        raise LockError(*problems)
    if lock.commit is not None:
        return CommitSource(url=source.location, commit=lock.commit, submodules=source.submodules)
    assert lock.filename is not None  # noqa: S101 (a lock is of a commit or of a file)
    assert lock.sha256 is not None  # noqa: S101
    return FileSource(
        filename=lock.filename,
        sha256=Digest(lock.sha256),
        size=lock.size,
        url=None if source.kind == "pypi" else source.location,
    )


def read_lock(path: Path, loaded: LoadedRecipe) -> str:
    """Text of a lock.

    Raises:
        RecipeError: it is not UTF-8.
        HostError: it cannot be read.
    """
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        hint = f"create it again: {shlex.join(['axletree', 'lock', *loaded.words])}"
        raise RecipeError(
            Problem(message=f"the file is not UTF-8: {error.reason}", file=str(path), hint=hint)
        ) from error
    except OSError as error:
        raise HostError(Problem(message=f"the file cannot be read: {error.strerror}", file=str(path))) from error


def lock_command(loaded: LoadedRecipe, selection: Iterable[str] = ()) -> str:
    """The command that locks a recipe as it was asked for; ``selection`` are options for variants."""
    return shlex.join(["axletree", "lock", *loaded.words, *selection])


@contextmanager
def naming(loaded: LoadedRecipe, relock: str) -> Iterator[None]:
    """Give problems the recipe's file where they name none, and a command that can be pasted, for the same variants."""
    try:
        yield
    except RecipeError as error:
        path = str(loaded.path)
        raise type(error)(
            *(
                msgspec.structs.replace(
                    problem,
                    file=problem.file or path,
                    hint=problem.hint and problem.hint.replace(LOCK, relock),
                )
                for problem in error.problems
            )
        ) from error


def locked_environments(
    loaded: LoadedRecipe,
    targets: Iterable[Target],
    interpreters: Mapping[str, Interpreter],
    *,
    only_plan: bool = False,
) -> dict[str, LockedEnvironment]:
    """Read the locks that exist; a missing one is told by the plan, which knows whether anything needs it.

    ``only_plan`` takes an empty one, of no platform, for what is missing.

    Raises:
        RecipeError: a lock can't be read, or is none of its environment.
    """
    found: dict[str, LockedEnvironment] = {}
    problems: list[Problem] = []
    for target in targets:
        for environment in target.environments:
            path = loaded.places.find(environment.lock)
            if environment.lock in found or environment.provider != "venv":
                continue
            interpreter = interpreters[environment.python]
            if path.exists():
                lock = parse_lock(read_lock(path, loaded), file=str(path))
                problems += check_lock(lock, environment, file=str(path), platform=interpreter.platform)
            elif environment.requires and not only_plan:
                continue
            elif environment.requires:
                lock = make_lock((), python=environment.python, platform="", wheels=())
            else:  # nothing to resolve, so nothing to lock
                lock = make_lock((), python=environment.python, platform=interpreter.platform, wheels=())
            found[environment.lock] = LockedEnvironment(python=identity(interpreter), lock=lock)
    if problems:
        raise LockError(*problems)
    return found
