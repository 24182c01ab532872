"""A conda prefix made offline, from locked packages and wheels: for stages, and for environments that users keep."""

from __future__ import annotations

import configparser
import json
from typing import TYPE_CHECKING

from packaging.utils import canonicalize_name

from axletree.binary.zip.members import read_member
from axletree.core.errors import Problem, StageError
from axletree.disk import remove_tree
from axletree.host.conda_install import link_packages
from axletree.host.files import replace_file
from axletree.host.venvs import add_wheels
from axletree.host.wheels import open_wheel
from axletree.package.wheel.scan import MAX_METADATA

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from axletree.host.wheels import OpenWheel
    from axletree.recipe.conda_locks import CondaLock

PACKAGES = "packages"
"""Folder of an environment's tree with its conda packages, each in the folder of its platform."""
_META = "conda-meta"
_READY = f"{_META}/axletree-complete"
_SHOWN = 5


def is_prefix(folder: Path) -> bool:
    """Whether an environment is a conda prefix."""
    return (folder / _META).is_dir()


def is_whole(prefix: Path) -> bool:
    """Whether a prefix was made to the end."""
    return (prefix / _READY).is_file()


def make_prefix(
    prefix: Path,
    lock: CondaLock,
    *,
    files: Path,
    cache: Path,
    uv_cache: Path,
    environ: Mapping[str, str],
    say: Callable[[bytes], object] = lambda _: None,
) -> None:
    """Make a prefix at its final path: that path is in its files, so it can't be made elsewhere and renamed.

    A mark says when it is whole (:func:`is_whole`); what was there without one is removed first.

    Args:
        prefix: the environment.
        lock: what goes into it.
        files: its conda packages, in :data:`PACKAGES`, and its wheels with their ``pylock.*.toml``, if it has any.
        cache: where packages are unpacked; on the file system of the prefix.
        uv_cache: uv's.
        environ: variables of the clients.
        say: gets what they print.

    Raises:
        StageError: a client fails, the prefix is too long, two packages have the same file, or a wheel has one of a
            conda package.
        IntegrityError: a wheel is damaged.
    """
    if prefix.exists():
        remove_tree(prefix)
    link_packages(
        prefix,
        lock.packages,
        files=files / PACKAGES,
        subdir=lock.platform,
        cache=cache,
        environ=environ,
        say=say,
    )
    if lock.wheels:
        _refuse_replaced(prefix, lock, files)
        add_wheels(prefix, files, uv_cache=uv_cache, environ=environ)
    (prefix / _META).mkdir(exist_ok=True)
    replace_file(prefix / _READY, b"")


def _refuse_replaced(prefix: Path, lock: CondaLock, files: Path) -> None:
    """Refuse wheels with a file or a distribution that conda packages of the prefix have."""
    owners = dict(_owners(prefix))
    sites = sorted(path.relative_to(prefix).as_posix() for path in prefix.glob("lib/python*"))
    site = f"{sites[0] if sites else 'lib'}/site-packages"
    distributions = {
        _normal(folder.rpartition("/")[2].partition("-")[0]): owner
        for path, owner in owners.items()
        if (folder := path.rpartition("/")[0]).endswith((".dist-info", ".egg-info"))
    }
    problems = []
    for locked in lock.wheels:
        owner = distributions.get(_normal(locked.name))
        if owner is not None:
            message = f"wheel {locked.filename} would replace {locked.name} of conda package {owner}"
            problems.append(Problem(message=message))
            continue
        wheel = open_wheel(files / locked.filename)
        places = [_place(entry.name, site) for entry in wheel.entries if not entry.name.endswith("/")]
        for place in [*places, *(f"bin/{name}" for name in _scripts(wheel))]:
            if place in owners:
                message = f"wheel {locked.filename} would replace {place} of conda package {owners[place]}"
                problems.append(Problem(message=message))
    if problems:
        raise StageError(*problems[:_SHOWN], hint="remove one of the two requirements, and lock the recipe again")


def _normal(name: str) -> str:
    return canonicalize_name(name.replace("_", "-"))


def _scripts(wheel: OpenWheel) -> tuple[str, ...]:
    """Programs that installers write for a wheel."""
    name = f"{wheel.folder}/entry_points.txt"
    entry = next((each for each in wheel.entries if each.name == name), None)
    if entry is None:
        return ()
    parser = configparser.ConfigParser(delimiters=("=",), interpolation=None)
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    try:
        parser.read_string(read_member(wheel.view, entry, archive=wheel.path.name, limit=MAX_METADATA).decode())
    except (configparser.Error, UnicodeDecodeError):
        return ()
    return tuple(parser["console_scripts"]) if parser.has_section("console_scripts") else ()


def _place(path: str, site: str) -> str:
    """Where a member of a wheel goes in a prefix."""
    head, _, rest = path.partition("/")
    if not head.endswith(".data"):
        return f"{site}/{path}"
    kind, _, inside = rest.partition("/")
    folder = {"scripts": "bin/", "data": "", "purelib": f"{site}/", "platlib": f"{site}/"}.get(kind)
    return f"include/{inside}" if folder is None else f"{folder}{inside}"


def _owners(prefix: Path) -> Iterator[tuple[str, str]]:
    """Path in a prefix -> name, version and build of the conda package that has it."""
    for record in sorted((prefix / _META).glob("*.json")):
        for path in json.loads(record.read_bytes()).get("files", ()):
            yield path, record.stem
