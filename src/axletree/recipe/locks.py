"""What a recipe's lock files hold: exactly one wheel a package for an environment, and the source.

An environment's lock is a ``pylock.<name>.toml`` as PEP 751 has it, restricted to wheels and without markers. A wheel
that an index lists has its address there, without credentials, so that pip and uv install from the lock. Any other is
named by its bare file name: they install it from a folder that holds the wheel beside the lock. Axletree goes by
neither: where a wheel comes from is decided when it is fetched, and the digest says which it is.
"""

from __future__ import annotations

import tomllib
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec
import tomli_w
from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name, parse_wheel_filename
from packaging.version import Version

from axletree.core.errors import LockError, Problem, RecipeError
from axletree.core.formats import format_problem
from axletree.core.setting import LOCK
from axletree.recipe.base import Sha256, Table
from axletree.recipe.sdists import version_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from axletree.recipe.environments import TargetEnvironment
    from axletree.recipe.target_source import TargetExtra, TargetSource

_VERSION: Literal["1.0"] = "1.0"
SOURCE_LOCK = "source.lock.toml"
"""Name of the source's lock in a recipe's companion folder."""

_Commit = Annotated[str, msgspec.Meta(pattern=r"^[0-9a-f]{40}([0-9a-f]{24})?$")]
_Bytes = Annotated[int, msgspec.Meta(ge=0)]
REMAKE = f"run `{LOCK}`"
"""The hint of all problems that a new lock solves. Whoever knows the recipe's path gives the command with it."""


class LockedWheel(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One package of an environment: the one wheel that is installed."""

    name: str
    """Normalised (PEP 503)."""
    version: str
    filename: str
    size: int
    """Bytes."""
    sha256: str
    url: str | None = None
    """Where an index listed it, for other clients: in no key, and nothing is fetched from there because of it."""


class PyLock(msgspec.Struct, frozen=True, kw_only=True):
    """What an environment holds, exactly."""

    requires: tuple[str, ...]
    """The requirements that it was made from, as the recipe has them."""
    python: str
    """``3.11``, or ``3.13t``."""
    platform: str
    """``linux-x86_64``: where the wheels run."""
    wheels: tuple[LockedWheel, ...]
    """Sorted by name, each name once."""

    @property
    def size(self) -> int:
        """Bytes of all wheels together: what there is to download."""
        return sum(wheel.size for wheel in self.wheels)


class SourceLock(Table, frozen=True, kw_only=True, omit_defaults=True):
    """What the source is, exactly: a file by its digest, or a commit. A ``path`` source has no lock."""

    kind: Literal["pypi", "url", "wheel", "git"]
    location: str
    """The project, address or path that it was made from, as the recipe has it."""
    version: str = ""
    """Empty only of a source beside the recipe's own that is no sdist."""
    filename: str | None = None
    sha256: Sha256 | None = None
    size: _Bytes | None = None
    """Bytes, where known."""
    ref: str | None = None
    """The tag, branch or commit that it was made from."""
    commit: _Commit | None = None
    tree: _Commit | None = None
    """Git's own digest of the files; those of submodules follow from it."""


class SourceLocks(msgspec.Struct, frozen=True, kw_only=True):
    """What all sources of a recipe are, exactly."""

    main: SourceLock | None
    """The recipe's own; ``None`` where that has no lock."""
    extras: dict[str, SourceLock] = {}
    """Name in the recipe's ``sources`` -> what it is."""


class _Hashes(Table, frozen=True, kw_only=True):
    sha256: Sha256


class _WheelTable(Table, frozen=True, kw_only=True, omit_defaults=True):
    name: str | None = None
    url: str | None = None
    path: str | None = None
    size: _Bytes
    hashes: _Hashes


class _PackageTable(Table, frozen=True, kw_only=True):
    name: str
    version: str
    wheels: list[_WheelTable]


class _Made(Table, frozen=True, kw_only=True):
    requires: list[str]
    python: str
    platform: str


class _Tool(Table, frozen=True, kw_only=True):
    axletree: _Made


class _File(Table, frozen=True, kw_only=True):
    lock_version: Literal["1.0"]
    environments: list[str]
    requires_python: str
    created_by: Literal["axletree"]
    packages: list[_PackageTable]
    tool: _Tool


def make_lock(requires: Iterable[str], *, python: str, platform: str, wheels: Iterable[LockedWheel]) -> PyLock:
    """A lock with its wheels in order."""
    ordered = tuple(sorted(wheels, key=lambda wheel: wheel.name))
    return PyLock(requires=tuple(requires), python=python, platform=platform, wheels=ordered)


def lock_environments(python: str, platform: str) -> tuple[str, ...]:
    """The ``environments`` of a lock (PEP 751): the marker that holds where it may be installed."""
    system, _, machine = platform.partition("-")
    markers = {
        "implementation_name": "cpython",
        "python_version": python.removesuffix("t"),
        "sys_platform": system,
        "platform_machine": machine,
    }
    return (" and ".join(f'{name} == "{value}"' for name, value in markers.items()),)


def render_lock(lock: PyLock) -> str:
    """Text of a ``pylock.*.toml`` (PEP 751); equal locks have equal texts."""
    minor = lock.python.removesuffix("t")
    file = _File(
        lock_version=_VERSION,
        environments=list(lock_environments(minor, lock.platform)),
        requires_python=f"=={minor}.*",
        created_by="axletree",
        packages=[
            _PackageTable(
                name=wheel.name,
                version=wheel.version,
                wheels=[_wheel_table(wheel)],
            )
            for wheel in lock.wheels
        ],
        tool=_Tool(axletree=_Made(requires=list(lock.requires), python=lock.python, platform=lock.platform)),
    )
    return tomli_w.dumps(msgspec.to_builtins(file))


def _wheel_table(wheel: LockedWheel) -> _WheelTable:
    hashes = _Hashes(sha256=wheel.sha256)
    if wheel.url is None:
        return _WheelTable(path=wheel.filename, size=wheel.size, hashes=hashes)
    return _WheelTable(name=wheel.filename, url=wheel.url, size=wheel.size, hashes=hashes)


def beside(lock: PyLock) -> PyLock:
    """The same lock for a folder that has the wheels: without their addresses."""
    return msgspec.structs.replace(lock, wheels=without_urls(lock.wheels))


def without_urls(wheels: Iterable[LockedWheel]) -> tuple[LockedWheel, ...]:
    """The same wheels, wherever they come from."""
    return tuple(msgspec.structs.replace(wheel, url=None) for wheel in wheels)


def parse_lock(text: str, *, file: str) -> PyLock:
    """Read an environment's lock.

    Raises:
        RecipeError: it is no TOML, not a lock that ``axletree lock`` made, or its parts contradict each other; lists
            every contradiction.
    """
    data = _load(text, file=file)
    problem = format_problem(data.get("lock-version", _VERSION), _VERSION, file=file, remake=REMAKE)
    if problem is not None:
        raise RecipeError(problem)
    try:
        table = msgspec.convert(data, _File)
    except msgspec.ValidationError as error:
        raise _not_a_lock(error, file) from error
    problems = []
    wheels = []
    for package in table.packages:
        complaint = _complaint(package)
        if complaint is not None:
            key = f"packages.{package.name}"
            problems.append(Problem(message=complaint, file=file, key=key, hint=REMAKE))
            continue
        (wheel,) = package.wheels
        wheels.append(
            LockedWheel(
                name=package.name,
                version=package.version,
                filename=_filename(wheel),
                size=wheel.size,
                sha256=wheel.hashes.sha256,
                url=wheel.url,
            )
        )
    names = [package.name for package in table.packages]
    twice = sorted({name for name in names if names.count(name) > 1})
    problems += [Problem(message=f"the lock lists a package twice: {name}", file=file, hint=REMAKE) for name in twice]
    if problems:
        raise RecipeError(*problems)
    made = table.tool.axletree
    return make_lock(made.requires, python=made.python, platform=made.platform, wheels=wheels)


def check_lock(
    lock: PyLock, environment: TargetEnvironment, *, file: str, platform: str | None = None
) -> tuple[Problem, ...]:
    """What of a lock no longer fits the environment that it was made for; nothing where it fits.

    ``platform`` is that of the interpreter at hand, ``linux-x86_64``; ``None`` leaves it out of the question.
    """
    now = {_normalise(text): text for text in environment.requires}
    then = {_normalise(text): text for text in lock.requires}
    changes = [f"requirement {now[key]} added" for key in now if key not in then]
    changes += [f"requirement {then[key]} removed" for key in then if key not in now]
    if lock.python != environment.python:
        changes.append(f"Python is {environment.python}, was {lock.python}")
    if platform is not None and lock.platform != platform:
        changes.append(f"the platform is {platform}, was {lock.platform}")
    if not changes:
        changes = _unsatisfied(lock)
    return tuple(
        Problem(
            message=f"the lock is out of date: {change}", file=file, key=f"environments.{environment.name}", hint=REMAKE
        )
        for change in changes
    )


def render_source(lock: SourceLock | None, extras: Mapping[str, SourceLock] = MappingProxyType({})) -> str:
    """Text of a ``source.lock.toml``; equal locks have equal texts. ``extras`` are of the recipe's ``sources``."""
    tables: dict[str, Any] = {} if lock is None else msgspec.to_builtins(lock)
    if extras:
        tables["sources"] = {name: msgspec.to_builtins(each) for name, each in sorted(extras.items())}
    return tomli_w.dumps(tables)


def parse_sources(text: str, *, file: str) -> SourceLocks:
    """Read the lock of a recipe's sources.

    Raises:
        RecipeError: it is no TOML, or not the lock of a source.
    """
    data = _load(text, file=file)
    extras = data.pop("sources", {})
    if not isinstance(extras, dict):
        message = "the file is not a lock created by `axletree lock`: `sources` is not a table"
        raise RecipeError(Problem(message=message, file=file, hint=REMAKE))
    return SourceLocks(
        main=_source_lock(data, file=file) if data or not extras else None,
        extras={name: _source_lock(table, file=file, key=f"sources.{name}") for name, table in extras.items()},
    )


def parse_source(text: str, *, file: str) -> SourceLock:
    """As :func:`parse_sources`, of the recipe's own source.

    Raises:
        RecipeError: as there.
        LockError: the lock has only sources beside it.
    """
    lock = parse_sources(text, file=file).main
    if lock is None:
        raise LockError(Problem(message="the lock does not pin the recipe's own source", file=file, hint=REMAKE))
    return lock


def _source_lock(table: object, *, file: str, key: str | None = None) -> SourceLock:
    try:
        lock = msgspec.convert(table, SourceLock)
    except msgspec.ValidationError as error:
        raise _not_a_lock(error, file, key) from error
    pinned = (lock.commit, lock.tree) if lock.kind == "git" else (lock.filename, lock.sha256)
    if None in pinned:
        names = "`commit` and `tree`" if lock.kind == "git" else "`filename` and `sha256`"
        raise RecipeError(Problem(message=f"a lock of kind {lock.kind} needs {names}", file=file, key=key, hint=REMAKE))
    if lock.filename is not None and not _is_bare(lock.filename):
        at = "filename" if key is None else f"{key}.filename"
        message = f"{lock.filename!r} must be a plain file name, without a folder"
        raise RecipeError(Problem(message=message, file=file, key=at))
    return lock


def check_source(
    lock: SourceLock, source: TargetSource | TargetExtra, *, file: str, key: str = "source"
) -> tuple[Problem, ...]:
    """What of a source's lock no longer fits the recipe; nothing where it fits. ``key`` is the source's table."""
    pairs = (
        ("kind", source.kind, lock.kind),
        ("location", source.location, lock.location),
        ("version", source.version, lock.version),
        ("ref", source.ref, lock.ref),
        ("sha256", source.sha256 or lock.sha256, lock.sha256),
    )
    changes = [f"the lock is out of date: {name} is {now}, was {then}" for name, now, then in pairs if now != then]
    if not changes and lock.kind == "pypi" and version_of(lock.filename or "", lock.location) != Version(lock.version):
        changes = [f"{lock.filename} is not an sdist of {lock.location} {lock.version}"]
    return tuple(Problem(message=change, file=file, key=key, hint=REMAKE) for change in changes)


def _load(text: str, *, file: str) -> dict[str, object]:
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # Python's limit on the digits of a number is a ValueError too
        raise RecipeError(Problem(message=f"the file is not valid TOML: {error}", file=file, hint=REMAKE)) from error


def _not_a_lock(error: msgspec.ValidationError, file: str, key: str | None = None) -> RecipeError:
    message = f"the file is not a lock created by `axletree lock`: {error}"
    return RecipeError(Problem(message=message, file=file, key=key, hint=REMAKE))


def _is_bare(filename: str) -> bool:
    return filename not in {"", ".", ".."} and not any(character in filename for character in "/\\\0")


def _complaint(package: _PackageTable) -> str | None:
    """What is wrong with one package of a lock."""
    if len(package.wheels) != 1:
        return f"the package has {len(package.wheels)} wheels, expected one"
    wheel = package.wheels[0]
    if (wheel.path is None) == (wheel.url is None):
        return "the package has a wheel that needs either `path`, or `name` and `url`"
    filename = _filename(wheel)
    if not _is_bare(filename):
        return f"{filename!r} must be a plain file name, without a folder"
    try:
        name, version, _, _ = parse_wheel_filename(filename)
    except ValueError as error:
        return str(error)
    if (name, str(version)) != (package.name, package.version):
        return f"{filename} is not a wheel of {package.name} {package.version}"
    return None


def _filename(wheel: _WheelTable) -> str:
    return (wheel.name if wheel.path is None else wheel.path) or ""


def _unsatisfied(lock: PyLock) -> list[str]:
    """Requirements that the wheels of a lock do not meet: somebody edited it."""
    versions = {wheel.name: wheel.version for wheel in lock.wheels}
    unmet = []
    for text in lock.requires:
        requirement = Requirement(text)
        if requirement.marker is not None:
            continue
        version = versions.get(canonicalize_name(requirement.name))
        if version is None or not requirement.specifier.contains(version, prereleases=True):
            found = f"contains version {version}" if version else "does not contain the package"
            unmet.append(f"requirement {text} is not met: the lock {found}")
    return unmet


def _normalise(text: str) -> str:
    """A requirement such that two ways of writing it compare equal."""
    try:
        requirement = Requirement(text)
    except InvalidRequirement:
        return text
    requirement.name = canonicalize_name(requirement.name)
    return str(requirement)
