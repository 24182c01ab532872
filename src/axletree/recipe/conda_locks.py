"""The lock of a conda environment: which file of each package, by digest. It lies beside the recipe's other locks.

It has all that a prefix is made from offline, and the run exports that decide what the conda packages of a stage
require. Packages of a channel that is a folder are named by the channel as the recipe has it, so that the lock says the
same on each machine.
"""

from __future__ import annotations

import re
import tomllib
from typing import TYPE_CHECKING, Literal

import msgspec
import tomli_w

from axletree.core.errors import Problem, RecipeError
from axletree.core.formats import format_problem
from axletree.recipe.locks import REMAKE, LockedWheel
from axletree.recipe.match_spec import parse_match_spec, with_python
from axletree.recipe.overlay import SHIPPED

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from axletree.recipe.environments import TargetEnvironment

_VERSION: Literal[2] = 2
_FOLDER = ("./", "../", "/", f"{SHIPPED}/")


class Exports(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What packages that are built against a package require (CEP 12)."""

    weak: tuple[str, ...] = ()
    strong: tuple[str, ...] = ()


class LockedPackage(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="kebab"):
    """A package of a channel."""

    name: str
    version: str
    build: str
    build_number: int = 0
    subdir: str
    filename: str
    channel: str = ""
    """As the recipe names it, where that is a folder; in no key."""
    url: str = ""
    """Address of the file, where the channel is none; in no key."""
    size: int
    """Bytes."""
    sha256: str
    md5: str = ""
    depends: tuple[str, ...] = ()
    constrains: tuple[str, ...] = ()
    noarch: Literal["generic", "python"] | None = None
    site_packages: str | None = None
    """Of a Python: where modules go, where that is not ``lib/pythonX.Y/site-packages`` (CEP 17)."""
    run_exports: Exports | None = None


class CondaLock(msgspec.Struct, frozen=True, kw_only=True, rename="kebab"):
    """What solving gave, and what was asked."""

    lock_version: Literal[2] = _VERSION
    platform: str
    """``linux-64``."""
    channels: tuple[str, ...]
    """As the recipe has them."""
    requires: tuple[str, ...]
    """As the recipe has them, with the environment's Python."""
    exported: tuple[str, ...] = ()
    """What else was asked for: strong run exports of build environments."""
    wheel_requires: tuple[str, ...] = ()
    """Requirements of the pip half."""
    packages: tuple[LockedPackage, ...]
    wheels: tuple[LockedWheel, ...] = ()
    """Installed on top."""

    @property
    def size(self) -> int:
        """Bytes of all files together."""
        return sum(each.size for each in self.packages) + sum(each.size for each in self.wheels)


def is_folder(channel: str) -> bool:
    """Whether a recipe's channel is a folder, relative to the recipe."""
    return channel.startswith(_FOLDER)


def in_key(packages: Iterable[LockedPackage]) -> tuple[LockedPackage, ...]:
    """The same packages, wherever they come from and whatever else the channel says of them."""
    return tuple(
        msgspec.structs.replace(each, channel="", url="", md5="", constrains=(), run_exports=None) for each in packages
    )


def wanted(environment: TargetEnvironment) -> tuple[str, ...]:
    """What an environment asks of the solver, its Python among it."""
    return with_python(environment.requires, environment.python)


def exports_of(lock: CondaLock, kind: Literal["weak", "strong"]) -> tuple[str, ...]:
    """Run exports of a kind, of the packages that an environment names itself: what those depend on exports nothing."""
    named = {spec.name for text in lock.requires if (spec := parse_match_spec(text)) is not None}
    exports = [each.run_exports for each in lock.packages if each.name in named and each.run_exports is not None]
    found = (text for each in exports for text in getattr(each, kind))
    return tuple(dict.fromkeys(found))


def without_exports(lock: CondaLock, names: Iterable[str]) -> CondaLock:
    """A lock in which some packages export nothing."""
    ignored = frozenset(names)
    packages = (
        msgspec.structs.replace(each, run_exports=None) if each.name in ignored else each for each in lock.packages
    )
    return msgspec.structs.replace(lock, packages=tuple(packages))


def spec_name(text: str) -> str:
    """Name of the package that a match spec is about."""
    spec = parse_match_spec(text)
    return spec.name if spec is not None else re.split(r"[ =<>!~]", text, maxsplit=1)[0]


def check_conda_lock(
    lock: CondaLock, environment: TargetEnvironment, *, file: str, platform: str, exported: Iterable[str]
) -> tuple[Problem, ...]:
    """What of a lock no longer fits the environment that it was made for; nothing where it fits.

    Args:
        lock: as read.
        environment: of the recipe.
        file: how problems name the lock.
        platform: of this machine, ``linux-64``.
        exported: strong run exports of the build environments that it is the host of.
    """
    pairs = (
        ("requirement", wanted(environment), lock.requires),
        ("channel", environment.channels, lock.channels),
        ("wheel", environment.wheels, lock.wheel_requires),
        ("run export", tuple(exported), lock.exported),
    )
    changes = [f"the platform is {platform}, was {lock.platform}"] if lock.platform != platform else []
    for what, now, then in pairs:
        changes += [f"{what} {text} added" for text in now if text not in then]
        changes += [f"{what} {text} removed" for text in then if text not in now]
        if set(now) == set(then) and tuple(now) != tuple(then) and what == "channel":
            changes.append("the channels have another order")
    key = f"environments.{environment.name}"
    return tuple(
        Problem(message=f"the lock is out of date: {change}", file=file, key=key, hint=REMAKE) for change in changes
    )


def parse_conda_lock(text: str, *, file: str) -> CondaLock:
    """Read a lock.

    Raises:
        RecipeError: it is none.
    """
    try:
        data = tomllib.loads(text)
        problem = format_problem(data.get("lock-version", _VERSION), _VERSION, file=file, remake=REMAKE)
        if problem is not None:
            raise RecipeError(problem)
        lock = msgspec.convert(data, CondaLock)
    except (tomllib.TOMLDecodeError, msgspec.ValidationError, ValueError, RecursionError) as error:
        message = f"the file is not a valid lock of a conda environment: {error}"
        raise RecipeError(Problem(file=file, message=message, hint=REMAKE)) from error
    names = [*(each.filename for each in lock.packages), *(each.filename for each in lock.wheels)]
    wrong = [name for name in names if "/" in name]
    if wrong:
        message = f"{wrong[0]!r} must be a plain file name, without a folder"
        raise RecipeError(Problem(file=file, message=message, hint=REMAKE))
    return lock


def render_conda_lock(lock: CondaLock) -> str:
    """The text of a lock; packages by name."""
    ordered = msgspec.structs.replace(
        lock,
        packages=tuple(sorted(lock.packages, key=lambda each: each.name)),
        wheels=tuple(sorted(lock.wheels, key=lambda each: each.name)),
    )
    return tomli_w.dumps(msgspec.to_builtins(ordered))


def python_of(packages: Sequence[LockedPackage]) -> str | None:
    """The Python among packages, ``3.11`` or ``3.13t``; ``None`` if there is none."""
    found = next((each for each in packages if each.name == "python"), None)
    if found is None:
        return None
    free = any(each.name == "python_abi" and each.build.endswith("t") for each in packages)
    return ".".join(found.version.split(".")[:2]) + ("t" if free else "")


def conda_pins(lock: CondaLock | None) -> list[str]:
    """What a lock pins, a line each."""
    if lock is None:
        return []
    packages = [f"{each.name} {each.version} {each.build}" for each in lock.packages]
    return [*sorted(packages), *sorted(f"{each.name} {each.version} (wheel)" for each in lock.wheels)]
