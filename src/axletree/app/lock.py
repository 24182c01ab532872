"""Pin a recipe: its source, and one lock for each distinct environment of the chosen variants."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeVar
from urllib.parse import unquote, urlsplit

import msgspec

from axletree import registry
from axletree.app.recipes import LoadedRecipe, load_recipe, problem_at
from axletree.app.source_version import refuse_other_version
from axletree.core.errors import AxletreeError, HostError, IntegrityError, RecipeError
from axletree.host.fetch import measure, size_of
from axletree.host.files import replace_file
from axletree.host.gitfetch import read_at, resolve_ref
from axletree.host.indexes import IndexSettings, read_indexes
from axletree.host.interpreters import find_interpreters
from axletree.host.resolve import resolve_environment
from axletree.host.simple_api import list_files
from axletree.recipe.axes import expand, select
from axletree.recipe.faults import visible
from axletree.recipe.locks import (
    SOURCE_LOCK,
    PyLock,
    SourceLock,
    check_lock,
    check_source,
    parse_lock,
    parse_source,
    render_lock,
    render_source,
)
from axletree.recipe.sdists import choose_sdist, explain_absence, readings
from axletree.recipe.settings import Settings
from axletree.recipe.target import Target, TargetEnvironment, TargetSource, resolve

if TYPE_CHECKING:
    from axletree.core.records import Interpreter

Outcome = Literal["written", "unchanged"]
_Lock = TypeVar("_Lock", PyLock, SourceLock)


class LockedFile(msgspec.Struct, frozen=True, kw_only=True):
    """A lock file as it now is."""

    path: str
    outcome: Outcome
    packages: int
    """Wheels of an environment; 1 for a source."""
    size: int | None
    """Bytes to download for it; ``None`` where unknown."""
    what: str
    """What it pins: the source's file or commit, or the environment's name."""


class LockedRecipe(msgspec.Struct, frozen=True, kw_only=True):
    """All locks of a recipe: report of ``lock``."""

    files: tuple[LockedFile, ...]


class LockContext(msgspec.Struct, frozen=True, kw_only=True):
    """What locking needs of this machine."""

    environ: Mapping[str, str]
    settings: Settings
    home: Path
    cwd: Path
    cache: Path
    """Folder for git repositories, for downloads, and for what is known of interpreters."""

    @property
    def downloads(self) -> Path:
        """Where a build looks for what was downloaded already."""
        return self.cache / "downloads"


def lock_recipe(
    name_or_path: str,
    surroundings: LockContext,
    *,
    patterns: Sequence[str] = (),
    skip: Sequence[str] = (),
    upgrade: bool = False,
    note: Callable[[str], None] = lambda _: None,
) -> tuple[LockedFile, ...]:
    """Write the locks of a recipe into its companion folder: all of them, or none where one cannot be made.

    Args:
        name_or_path: the recipe.
        surroundings: what is needed of this machine.
        patterns: which variants; none means all.
        skip: which variants not.
        upgrade: take the newest versions that fit, instead of keeping locks that fit and versions that still do.
        note: told what is being worked on.

    Raises:
        RecipeError: the recipe is wrong, or its requirements cannot be met; all environments are tried.
        HostError: no network, an interpreter is missing, or the folder cannot be written.
    """
    loaded = load_recipe(name_or_path)
    targets = [resolve(loaded.recipe, variant) for variant in select(expand(loaded.recipe), patterns, skip)]
    indexes = read_indexes(surroundings.settings, surroundings.environ, home=surroundings.home, cwd=surroundings.cwd)
    texts: dict[str, str] = {}
    files: list[LockedFile] = []
    failures: list[AxletreeError] = []
    source = targets[0].source
    if _has_lock(source):
        try:
            text, file = _lock_source(loaded, source, indexes, surroundings, upgrade=upgrade, note=note)
            texts[SOURCE_LOCK] = text
            files.append(file)
        except AxletreeError as error:
            failures.append(error)
    failures += _other_version(loaded, targets, texts.get(SOURCE_LOCK), surroundings)
    environments = _distinct([each for target in targets for each in target.environments])
    interpreters = find_interpreters(
        (each.python for each in environments),
        environ=surroundings.environ,
        cache=surroundings.cache / "interpreters.json",
    )
    for environment in environments:
        interpreter = interpreters[environment.python]
        try:
            text, file = _lock_environment(
                loaded, environment, interpreter, indexes, surroundings, upgrade=upgrade, note=note
            )
            texts[environment.lock] = text
            files.append(file)
        except AxletreeError as error:
            failures.append(_in_environment(error, environment, loaded))
    if failures:
        problems = [problem for failure in failures for problem in failure.problems]
        raise type(failures[0])(*problems)
    _write(loaded.companion, {file: text for file, text in texts.items() if _changed(loaded.companion / file, text)})
    return tuple(files)


def _other_version(
    loaded: LoadedRecipe, targets: Sequence[Target], lock: str | None, surroundings: LockContext
) -> list[AxletreeError]:
    """What a source that is at hand, a folder or a commit, says otherwise; of others the file name told the version."""
    source = targets[0].source

    def read(path: str) -> str:
        if source.kind == "path":
            try:
                return (loaded.path.parent / source.location / path).read_text(encoding="utf-8", errors="replace")
            except OSError:
                return ""
        commit = None if lock is None else parse_source(lock, file=SOURCE_LOCK).commit
        if commit is None:
            return ""
        git = surroundings.cache / "git"
        return read_at(source.location, commit, path, cache=git, environ=surroundings.environ)

    try:
        refuse_other_version(loaded, targets, read)
    except RecipeError as error:
        return [error]
    return []


def _has_lock(source: TargetSource) -> bool:
    """A folder, or a wheel beside the recipe, is its own content."""
    return source.kind != "path" and not (source.kind == "wheel" and "://" not in source.location)


def _distinct(environments: Sequence[TargetEnvironment]) -> list[TargetEnvironment]:
    """One of each lock; without requirements there is nothing to lock, and `env create` locks a conda prefix."""
    return list({each.lock: each for each in environments if each.requires and each.provider == "venv"}.values())


def _lock_environment(
    loaded: LoadedRecipe,
    environment: TargetEnvironment,
    interpreter: Interpreter,
    settings: IndexSettings,
    surroundings: LockContext,
    *,
    upgrade: bool,
    note: Callable[[str], None],
) -> tuple[str, LockedFile]:
    path = loaded.companion / environment.lock
    previous = None if upgrade else _read(path, parse_lock)
    lock = previous
    if lock is None or check_lock(lock, environment, file=str(path), platform=interpreter.platform):
        note(f"resolving {environment.name} for Python {environment.python}")
        backend = registry.backend_of(environment.axes.get("gpu", ""))
        lock = resolve_environment(
            environment.requires,
            interpreter,
            settings,
            python=environment.python,
            environ=surroundings.environ,
            extra_indexes=[backend.torch_index(environment.axes["gpu"])] if backend is not None else [],
            previous=_same_place(previous, environment, interpreter.platform),
            keep=surroundings.downloads,
            note=note,
        )
    text = render_lock(lock)
    return text, LockedFile(
        path=str(path),
        outcome="written" if _changed(path, text) else "unchanged",
        packages=len(lock.wheels),
        size=lock.size,
        what=environment.name,
    )


def _same_place(previous: PyLock | None, environment: TargetEnvironment, platform: str) -> PyLock | None:
    """The lock whose versions are kept: not one of another Python or platform."""
    same = previous is not None and (previous.python, previous.platform) == (environment.python, platform)
    return previous if same else None


def _lock_source(
    loaded: LoadedRecipe,
    source: TargetSource,
    settings: IndexSettings,
    surroundings: LockContext,
    *,
    upgrade: bool,
    note: Callable[[str], None],
) -> tuple[str, LockedFile]:
    path = loaded.companion / SOURCE_LOCK
    lock = None if upgrade else _read(path, parse_source)
    if lock is None or check_source(lock, source, file=str(path)):
        note(f"looking up the source of {loaded.recipe.name} {source.version}")
        lock = _find_source(loaded, source, settings, surroundings, note)
    text = render_source(lock)
    return text, LockedFile(
        path=str(path),
        outcome="written" if _changed(path, text) else "unchanged",
        packages=1,
        size=lock.size,
        what=lock.filename or f"commit {lock.commit}",
    )


def _find_source(
    loaded: LoadedRecipe,
    source: TargetSource,
    settings: IndexSettings,
    surroundings: LockContext,
    note: Callable[[str], None],
) -> SourceLock:
    if source.kind == "pypi":
        return _find_sdist(loaded, source, settings, surroundings, note)
    if source.kind == "git":
        ref = source.ref or "HEAD"
        git = surroundings.cache / "git"
        found = resolve_ref(source.location, ref, cache=git, environ=surroundings.environ)
        return SourceLock(
            kind="git",
            location=source.location,
            version=source.version,
            ref=source.ref,
            commit=found.commit,
            tree=found.tree,
        )
    assert source.kind in {"url", "wheel"}  # noqa: S101 (others have no lock)
    filename = unquote(urlsplit(source.location).path).rpartition("/")[2]
    if not filename or (source.kind == "wheel" and not (filename.endswith(".whl") and readings(filename))):
        message = "the URL does not end with a wheel file name" if filename else "the URL does not end with a file name"
        raise RecipeError(problem_at(loaded, ("source", source.kind), message))
    sha256, size = measure(source.location, keep=surroundings.downloads, note=note)
    if source.sha256 not in {None, sha256}:
        raise IntegrityError(
            f"{source.location} has sha256 {sha256} ({size} bytes), but the recipe expects {source.sha256}",
            hint="correct `sha256` in the recipe if this is the right file",
        )
    return SourceLock(
        kind="wheel" if source.kind == "wheel" else "url",
        location=source.location,
        version=source.version,
        filename=filename,
        sha256=sha256,
        size=size,
    )


def _find_sdist(
    loaded: LoadedRecipe,
    source: TargetSource,
    settings: IndexSettings,
    surroundings: LockContext,
    note: Callable[[str], None],
) -> SourceLock:
    files = list_files(source.location, settings)
    chosen = choose_sdist(source.location, source.version, files)
    if chosen is None:
        absence = explain_absence(source.location, source.version, files)
        raise RecipeError(problem_at(loaded, absence.path, absence.message, hint=absence.hint))
    if chosen.yanked:
        why = f": {visible(chosen.yanked)}" if isinstance(chosen.yanked, str) else " without a stated reason"
        note(f"warning: {chosen.filename} has been yanked from the index{why}")
    same = [file for file in files if (file.filename, file.yanked) == (chosen.filename, chosen.yanked)]
    file = min(same, key=lambda each: (each.sha256 is None, each.size is None))
    sha256, size = file.sha256, file.size
    if sha256 and size is None:
        size = size_of(file.url)
    if sha256 is None or size is None:
        sha256, size = measure(file.url, keep=surroundings.downloads, note=note)
    return SourceLock(
        kind="pypi",
        location=source.location,
        version=source.version,
        filename=chosen.filename,
        sha256=sha256,
        size=size,
    )


def _read(path: Path, parse: Callable[..., _Lock]) -> _Lock | None:
    """A lock that exists and can be read; a broken one is made anew."""
    try:
        return parse(path.read_text(encoding="utf-8"), file=str(path))
    except (OSError, UnicodeDecodeError, RecipeError):
        return None


def _changed(path: Path, text: str) -> bool:
    try:
        return path.read_text(encoding="utf-8") != text
    except (OSError, UnicodeDecodeError):
        return True


def _write(folder: Path, texts: Mapping[str, str]) -> None:
    try:
        for name, text in texts.items():
            replace_file(folder / name, text.encode())
    except OSError as error:
        hint = "copy the recipe to a folder that you can write to, and lock it there"
        raise HostError(f"cannot write {error.filename or folder}: {error.strerror}", hint=hint) from error


def _in_environment(error: AxletreeError, environment: TargetEnvironment, loaded: LoadedRecipe) -> AxletreeError:
    """The same error, saying which environment it is about."""
    key = f"environments.{environment.name}"
    return type(error)(*(msgspec.structs.replace(each, file=str(loaded.path), key=key) for each in error.problems))
