"""What pins a source: looked up in the index, in the repository, or by reading the file."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar
from urllib.parse import unquote, urlsplit

import msgspec

from axletree.app.recipes import problem_at
from axletree.core.errors import AxletreeError, HostError, IntegrityError, RecipeError
from axletree.host.fetch import ONLINE, measure, size_of
from axletree.host.gitfetch import resolve_ref
from axletree.host.indexes import on_this_machine
from axletree.host.simple_api import list_files
from axletree.recipe.faults import visible
from axletree.recipe.locks import SOURCE_LOCK, SourceLock, check_source, parse_source, parse_sources
from axletree.recipe.sdists import choose_sdist, explain_absence, readings
from axletree.recipe.target_source import extras_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from axletree.app.lock_context import LockContext
    from axletree.app.recipes import LoadedRecipe
    from axletree.host.indexes import IndexSettings
    from axletree.recipe.faults import Path as KeyPath
    from axletree.recipe.target_source import TargetExtra, TargetSource

_Lock = TypeVar("_Lock")


def has_lock(source: TargetSource | TargetExtra) -> bool:
    """Whether a source is pinned by a lock: a folder, or a wheel beside the recipe, is its own content."""
    return source.kind != "path" and not (source.kind == "wheel" and "://" not in source.location)


def pin_source(
    loaded: LoadedRecipe,
    source: TargetSource,
    settings: IndexSettings,
    surroundings: LockContext,
    *,
    upgrade: bool,
    note: Callable[[str], None],
) -> SourceLock:
    """The lock of a source: the one that there is if it fits, unless ``upgrade``; else a new one.

    Raises:
        RecipeError: there is no such source.
        IntegrityError: it is another file than the recipe expects.
        HostError: it cannot be reached.
    """
    path = loaded.places.find(SOURCE_LOCK)
    lock = None if upgrade else read_lock_file(path, parse_source)
    if lock is None or check_source(lock, source, file=str(path)):
        note(f"looking up the source of {loaded.recipe.name} {source.version}")
        lock = _find_source(loaded, source, ("source",), settings, surroundings, note)
    return lock


def pin_extras(
    loaded: LoadedRecipe,
    settings: IndexSettings,
    surroundings: LockContext,
    *,
    upgrade: bool,
    note: Callable[[str], None],
) -> dict[str, SourceLock]:
    """The locks of all sources beside the recipe's own, as :func:`pin_source`; a folder needs none.

    Raises:
        AxletreeError: some cannot be pinned; all of them are named.
    """
    path = loaded.places.find(SOURCE_LOCK)
    before = None if upgrade else read_lock_file(path, parse_sources)
    found: dict[str, SourceLock] = {}
    errors: list[AxletreeError] = []
    for extra in filter(has_lock, extras_of(loaded.recipe)):
        lock = None if before is None else before.extras.get(extra.name)
        try:
            if lock is None or check_source(lock, extra, file=str(path)):
                note(f"looking up source {extra.name}")
                lock = _find_source(loaded, extra, ("sources", extra.name), settings, surroundings, note)
            found[extra.name] = lock
        except AxletreeError as error:
            errors.append(_in_source(error, extra.name, loaded))
    if errors:
        worst = next((error for error in errors if not isinstance(error, HostError)), errors[0])
        raise type(worst)(*(problem for error in errors for problem in error.problems))
    return found


def _in_source(error: AxletreeError, name: str, loaded: LoadedRecipe) -> AxletreeError:
    """The same error, saying which source it is about."""
    place = problem_at(loaded, ("sources", name), "")
    return type(error)(
        *(
            each if each.file else msgspec.structs.replace(place, message=each.message, hint=each.hint)
            for each in error.problems
        )
    )


def _find_source(
    loaded: LoadedRecipe,
    source: TargetSource | TargetExtra,
    at: KeyPath,
    settings: IndexSettings,
    surroundings: LockContext,
    note: Callable[[str], None],
) -> SourceLock:
    """Look a source up: the sdist of a version, the commit of a ref, the digest of a file.

    Raises:
        RecipeError: there is no such sdist, or an address names no file.
        IntegrityError: a file is not the one that the recipe names.
        HostError: it cannot be reached.
    """
    if source.kind == "pypi":
        return _find_sdist(loaded, source, at, settings, surroundings, note)
    if source.kind == "git":
        ref = source.ref or "HEAD"
        git = surroundings.cache / "git"
        offline = surroundings.settings.offline
        found = resolve_ref(source.location, ref, cache=git, environ=surroundings.environ, offline=offline)
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
        raise RecipeError(problem_at(loaded, (*at, source.kind), message))
    sha256, size = measure(
        source.location, keep=surroundings.downloads, note=note, offline=surroundings.settings.offline
    )
    if source.sha256 not in {None, sha256}:
        message = f"{source.location} has sha256 {sha256} ({size} bytes), but the recipe expects {source.sha256}"
        hint = "correct `sha256` in the recipe if this is the right file"
        raise IntegrityError(problem_at(loaded, (*at, "sha256"), message, hint=hint))
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
    source: TargetSource | TargetExtra,
    at: KeyPath,
    settings: IndexSettings,
    surroundings: LockContext,
    note: Callable[[str], None],
) -> SourceLock:
    offline = surroundings.settings.offline
    files = list_files(source.location, on_this_machine(settings) if offline else settings)
    chosen = choose_sdist(source.location, source.version, files)
    if chosen is None and offline:
        raise HostError(
            f"{source.location} {source.version} is not in any folder or index on this machine, and --offline is set",
            hint=ONLINE,
        )
    if chosen is None:
        absence = explain_absence(source.location, source.version, files)
        path = absence.path if at == ("source",) else at
        raise RecipeError(problem_at(loaded, path, absence.message, hint=absence.hint))
    if chosen.yanked:
        why = f": {visible(chosen.yanked)}" if isinstance(chosen.yanked, str) else " without a stated reason"
        note(f"warning: {chosen.filename} has been yanked from the index{why}")
    same = [file for file in files if (file.filename, file.yanked) == (chosen.filename, chosen.yanked)]
    file = min(same, key=lambda each: (each.sha256 is None, each.size is None))
    sha256, size = file.sha256, file.size
    if sha256 and size is None:
        size = size_of(file.url)
    if sha256 is None or size is None:
        sha256, size = measure(file.url, keep=surroundings.downloads, note=note, offline=offline)
    return SourceLock(
        kind="pypi",
        location=source.location,
        version=source.version,
        filename=chosen.filename,
        sha256=sha256,
        size=size,
    )


def read_lock_file(path: Path, parse: Callable[..., _Lock]) -> _Lock | None:
    """A lock that exists and can be read; a broken one is made anew."""
    try:
        return parse(path.read_text(encoding="utf-8"), file=str(path))
    except (OSError, UnicodeDecodeError, RecipeError):
        return None
