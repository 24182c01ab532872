"""Pin a recipe: its source, and one lock for each distinct environment of the chosen variants."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import msgspec

from axletree import registry
from axletree.app.conda_lock import LockingConda, lock_conda_environments
from axletree.app.defaults import pin_of
from axletree.app.image_lock import lock_images
from axletree.app.lock_changes import (
    LockedFile,
    LockedRecipe,
    PartlyLockedError,
    defaults_pins,
    in_environment,
    lines_changed,
    pins_of,
    source_pins,
    write_locks,
)
from axletree.app.lock_context import LockContext
from axletree.app.projects import make_defaults
from axletree.app.recipes import load_recipe, with_defaults
from axletree.app.source_lock import has_lock, pin_extras, pin_source, read_lock_file
from axletree.app.source_version import refuse_other_version
from axletree.app.sources import lock_command
from axletree.core.errors import AxletreeError, HostError, RecipeError
from axletree.core.setting import LOCK
from axletree.host.gitfetch import read_at
from axletree.host.indexes import IndexSettings, read_indexes
from axletree.host.interpreters import look_for_interpreters
from axletree.host.resolve import resolve_environment
from axletree.recipe.axes import expand, select
from axletree.recipe.conda_locks import CondaLock, conda_pins, render_conda_lock
from axletree.recipe.defaults import DEFAULTS_LOCK
from axletree.recipe.image_locks import IMAGE_LOCK
from axletree.recipe.locks import (
    SOURCE_LOCK,
    PyLock,
    SourceLock,
    SourceLocks,
    check_lock,
    parse_lock,
    parse_sources,
    render_lock,
    render_source,
)
from axletree.recipe.target import Target, resolve

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from axletree.app.recipes import LoadedRecipe
    from axletree.core.errors import Problem
    from axletree.core.records import Interpreter
    from axletree.recipe.defaults import Defaults
    from axletree.recipe.environments import TargetEnvironment


def lock_recipe(
    name_or_path: str,
    surroundings: LockContext,
    *,
    sets: Sequence[str] = (),
    patterns: Sequence[str] = (),
    skip: Sequence[str] = (),
    upgrade: bool = False,
    only_source: bool = False,
    note: Callable[[str], None] = lambda _: None,
) -> tuple[LockedFile, ...]:
    """Write the locks of a recipe: all that can be made, and none where the recipe is wrong.

    Args:
        name_or_path: the recipe.
        surroundings: what is needed of this machine.
        sets: changes of the recipe, ``KEY=VALUE`` each.
        patterns: which variants; none means all.
        skip: which variants not.
        upgrade: take the newest versions that fit, instead of keeping locks that fit and versions that still do.
        only_source: leave the environments as they are.
        note: told what is being worked on.

    Raises:
        RecipeError: the recipe is wrong, or its requirements cannot be met; all environments are tried.
        PartlyLockedError: the source cannot be reached, an index does not respond, or an interpreter is missing; the
            other locks are written.
        HostError: no lock could be made for such a reason, or the folder cannot be written.
    """
    loaded = load_recipe(name_or_path, sets)
    indexes = read_indexes(surroundings.settings, surroundings.environ, home=surroundings.home, cwd=surroundings.cwd)
    locking = _Locking(surroundings=surroundings, indexes=indexes, upgrade=upgrade, note=note)
    found = _Found()
    chosen = [("-v", each) for each in patterns] + [("--skip", each) for each in skip]
    try:
        loaded, targets = _lock_source(loaded, patterns, skip, locking, found)
        if not only_source:
            _lock_environments(
                loaded, _distinct([each for target in targets for each in target.environments]), locking, found
            )
            _lock_conda(loaded, targets, locking, found)
            _lock_images(loaded, targets, locking, found)
        _refuse(found.failures)
    except AxletreeError as error:
        error.name_command(LOCK, lock_command(loaded, [word for pair in chosen for word in pair]))
        raise
    changed = {file: text for file, text in found.texts.items() if _changed(loaded.places.find(file), text)}
    write_locks(loaded.places.locks, changed)
    if found.failures:
        locked = LockedRecipe(files=tuple(found.files), missing=tuple(found.failures))
        raise PartlyLockedError(*_problems(found.failures), locked=locked)
    return tuple(found.files)


class _Locking(msgspec.Struct, frozen=True, kw_only=True):
    """How locks are made."""

    surroundings: LockContext
    indexes: IndexSettings
    upgrade: bool
    note: Callable[[str], None]


class _Found(msgspec.Struct, kw_only=True):
    """What came of it so far."""

    texts: dict[str, str] = {}
    """Name of a lock -> its text."""
    files: list[LockedFile] = []
    failures: dict[str, AxletreeError] = {}
    """Name of a lock -> why it could not be made."""


def _lock_source(
    loaded: LoadedRecipe, patterns: Sequence[str], skip: Sequence[str], locking: _Locking, found: _Found
) -> tuple[LoadedRecipe, list[Target]]:
    """Lock the source, and the defaults that follow from it: the recipe with these, and its variants."""
    targets = _targets(loaded, patterns, skip)
    pinned = None
    if has_lock(targets[0].source):
        try:
            pinned = pin_source(
                loaded,
                targets[0].source,
                locking.indexes,
                locking.surroundings,
                upgrade=locking.upgrade,
                note=locking.note,
            )
        except AxletreeError as error:
            if loaded.defaults is not None:
                raise  # without its source, nothing else of the recipe is known
            found.failures[SOURCE_LOCK] = _of_source(error, loaded)
    if loaded.defaults is not None:
        loaded = _with_current_defaults(loaded, pinned, locking)
        assert loaded.defaults is not None  # noqa: S101 (they were just made)
        targets = _targets(loaded, patterns, skip)
        found.texts[DEFAULTS_LOCK] = loaded.defaults.text
        found.files.append(_defaults_file(loaded, loaded.defaults))
    if pinned is not None:
        pinned = msgspec.structs.replace(pinned, version=targets[0].source.version)
    _lock_extras(loaded, pinned, locking, found)
    found.failures |= _other_version(loaded, targets, pinned, locking.surroundings)
    return loaded, targets


def _lock_extras(loaded: LoadedRecipe, pinned: SourceLock | None, locking: _Locking, found: _Found) -> None:
    """Lock the sources beside the recipe's own, and write them down with that."""
    try:
        extras = pin_extras(loaded, locking.indexes, locking.surroundings, upgrade=locking.upgrade, note=locking.note)
    except AxletreeError as error:
        own = found.failures.get(SOURCE_LOCK)
        found.failures[SOURCE_LOCK] = error if own is None else type(error)(*own.problems, *error.problems)
        return
    if SOURCE_LOCK not in found.failures and (pinned is not None or extras):
        found.texts[SOURCE_LOCK] = render_source(pinned, extras)
        found.files.append(_source_file(loaded, SourceLocks(main=pinned, extras=extras)))


def _targets(loaded: LoadedRecipe, patterns: Sequence[str], skip: Sequence[str]) -> list[Target]:
    return [resolve(loaded.recipe, variant) for variant in select(expand(loaded.recipe), patterns, skip)]


def _with_current_defaults(loaded: LoadedRecipe, pinned: SourceLock | None, locking: _Locking) -> LoadedRecipe:
    """A recipe that states no stage with the defaults of its source."""
    made = loaded.defaults.made_from if loaded.defaults is not None else None
    if not (locking.upgrade or loaded.lacking) and made is not None and made.source == pin_of(pinned):
        return loaded
    return with_defaults(loaded, make_defaults(loaded, pinned, locking.indexes, locking.surroundings, locking.note))


def _lock_environments(
    loaded: LoadedRecipe, environments: Sequence[TargetEnvironment], locking: _Locking, found: _Found
) -> None:
    interpreters, missing = look_for_interpreters(
        (each.python for each in environments),
        environ=locking.surroundings.environ,
        cache=locking.surroundings.cache / "interpreters.json",
    )
    for environment in environments:
        interpreter = interpreters.get(environment.python)
        kept = None if interpreter is not None or locking.upgrade else _kept(loaded, environment)
        if kept is not None:
            found.files.append(kept)
            continue
        if interpreter is None:
            assert missing is not None  # noqa: S101 (it says which ones are missing)
            found.failures[environment.lock] = missing
            continue
        try:
            found.texts[environment.lock], file = _lock_environment(loaded, environment, interpreter, locking)
            found.files.append(file)
        except AxletreeError as error:
            found.failures[environment.lock] = in_environment(error, environment, loaded)


def _lock_conda(loaded: LoadedRecipe, targets: Sequence[Target], locking: _Locking, found: _Found) -> None:
    how = LockingConda(
        surroundings=locking.surroundings, indexes=locking.indexes, upgrade=locking.upgrade, note=locking.note
    )
    for environment, before, lock in lock_conda_environments(loaded, targets, how):
        if not isinstance(lock, CondaLock):
            found.failures[environment.lock] = in_environment(lock, environment, loaded)
            continue
        found.texts[environment.lock] = text = render_conda_lock(lock)
        file = LockedFile(
            **_outcome(loaded, environment.lock, text),
            packages=len(lock.packages) + len(lock.wheels),
            size=lock.size,
            what=environment.name,
            changes=lines_changed(conda_pins(before), conda_pins(lock)),
        )
        found.files.append(file)


def _lock_images(loaded: LoadedRecipe, targets: Sequence[Target], locking: _Locking, found: _Found) -> None:
    try:
        locked = lock_images(loaded, targets, locking.surroundings, upgrade=locking.upgrade, note=locking.note)
    except AxletreeError as error:
        found.failures[IMAGE_LOCK] = error
        return
    if locked is not None:
        text, changes, count = locked
        found.texts[IMAGE_LOCK] = text
        outcome = _outcome(loaded, IMAGE_LOCK, text)
        found.files.append(LockedFile(**outcome, packages=count, size=None, what="images", changes=changes))


def _refuse(failures: Mapping[str, AxletreeError]) -> None:
    """Write nothing where the recipe is wrong: half of its new locks would not fit the other half."""
    wrong = [error for error in failures.values() if not isinstance(error, HostError)]
    if wrong:
        raise type(wrong[0])(*_problems(failures))


def _problems(failures: Mapping[str, AxletreeError]) -> list[Problem]:
    """All problems, each once: one of an interpreter may be several locks'."""
    return list(dict.fromkeys(problem for error in failures.values() for problem in error.problems))


def _of_source(error: AxletreeError, loaded: LoadedRecipe) -> AxletreeError:
    """The same error; where the source cannot be reached, it says what can be done without it."""
    if type(error) is not HostError:
        return error
    command = shlex.join(["axletree", "lock", *loaded.words, "--source"])
    local = shlex.join(["axletree", "build", *loaded.words, "--source"])
    hint = f"once the source is reachable, run `{command}`; to build a local folder instead, use `{local} DIR`"
    return HostError(*(msgspec.structs.replace(each, hint=each.hint or hint) for each in error.problems))


def _other_version(
    loaded: LoadedRecipe, targets: Sequence[Target], lock: SourceLock | None, surroundings: LockContext
) -> dict[str, AxletreeError]:
    """What a source that is at hand, a folder or a commit, says otherwise; of others the file name told the version."""
    source = targets[0].source

    def read(path: str) -> str:
        if source.kind == "path":
            try:
                return (loaded.file(source.location) / path).read_text(encoding="utf-8", errors="replace")
            except OSError:
                return ""
        commit = None if lock is None else lock.commit
        if commit is None:
            return ""
        git = surroundings.cache / "git"
        return read_at(source.location, commit, path, cache=git, environ=surroundings.environ)

    try:
        refuse_other_version(loaded, targets, read)
    except RecipeError as error:
        return {"": error}
    return {}


def _distinct(environments: Sequence[TargetEnvironment]) -> list[TargetEnvironment]:
    """One of each lock of virtual environments; without requirements there is nothing to lock."""
    return list({each.lock: each for each in environments if each.requires and each.provider == "venv"}.values())


def _kept(loaded: LoadedRecipe, environment: TargetEnvironment) -> LockedFile | None:
    """The lock of an environment whose Python is not here, if it fits."""
    path = loaded.places.find(environment.lock)
    lock = read_lock_file(path, parse_lock)
    if lock is None or check_lock(lock, environment, file=str(path)):
        return None
    count, size = len(lock.wheels), lock.size
    return LockedFile(path=str(path), outcome="unchanged", packages=count, size=size, what=environment.name)


def _lock_environment(
    loaded: LoadedRecipe, environment: TargetEnvironment, interpreter: Interpreter, locking: _Locking
) -> tuple[str, LockedFile]:
    path, surroundings = loaded.places.find(environment.lock), locking.surroundings
    before = read_lock_file(path, parse_lock)
    previous = None if locking.upgrade else before
    lock = previous
    if lock is None or check_lock(lock, environment, file=str(path), platform=interpreter.platform):
        locking.note(f"resolving {environment.name} for Python {environment.python}")
        lock = resolve_environment(
            environment.requires,
            interpreter,
            locking.indexes,
            python=environment.python,
            environ=surroundings.environ,
            extra_indexes=registry.torch_indexes(environment.axes),
            previous=_same_place(previous, environment, interpreter.platform),
            keep=surroundings.downloads,
            offline=surroundings.settings.offline,
            note=locking.note,
        )
    text = render_lock(lock)
    return text, LockedFile(
        **_outcome(loaded, environment.lock, text),
        packages=len(lock.wheels),
        size=lock.size,
        what=environment.name,
        changes=lines_changed(pins_of(before), pins_of(lock)),
    )


def _source_file(loaded: LoadedRecipe, lock: SourceLocks) -> LockedFile:
    before = read_lock_file(loaded.places.find(SOURCE_LOCK), parse_sources)
    all_ = [*([] if lock.main is None else [lock.main]), *lock.extras.values()]
    sizes = [each.size for each in all_ if each.size is not None]
    return LockedFile(
        **_outcome(loaded, SOURCE_LOCK, render_source(lock.main, lock.extras)),
        packages=len(all_),
        size=sum(sizes) if len(sizes) == len(all_) else None,
        what=", ".join(each.filename or f"commit {each.commit}" for each in all_),
        changes=lines_changed(source_pins(before), source_pins(lock)),
    )


def _defaults_file(loaded: LoadedRecipe, defaults: Defaults) -> LockedFile:
    path = loaded.places.find(DEFAULTS_LOCK)
    before = path.read_text(encoding="utf-8", errors="replace") if path.exists() else ""
    return LockedFile(
        **_outcome(loaded, DEFAULTS_LOCK, defaults.text),
        packages=1,
        size=0,
        what=f"stages of {loaded.recipe.name}",
        changes=lines_changed(defaults_pins(before), defaults_pins(defaults.text)),
    )


def _outcome(loaded: LoadedRecipe, name: str, text: str) -> dict[str, Any]:
    """Where a lock is, and whether it is a new one."""
    path = loaded.places.find(name)
    changed = _changed(path, text)
    return {
        "path": str(loaded.places.locks / name if changed else path),
        "outcome": "written" if changed else "unchanged",
    }


def _same_place(previous: PyLock | None, environment: TargetEnvironment, platform: str) -> PyLock | None:
    """The lock whose versions are kept: not one of another Python or platform."""
    same = previous is not None and (previous.python, previous.platform) == (environment.python, platform)
    return previous if same else None


def _changed(path: Path, text: str) -> bool:
    try:
        return path.read_text(encoding="utf-8") != text
    except (OSError, UnicodeDecodeError):
        return True
