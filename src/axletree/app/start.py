"""The way in: what a user names becomes a recipe that builds it."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.version import Version

from axletree import registry
from axletree.core.errors import AxletreeError, HostError, Problem, UsageError
from axletree.host.indexes import read_indexes
from axletree.host.interpreters import find_interpreters
from axletree.host.project_source import Places, ProjectSource, find_project
from axletree.host.tools import find_programs
from axletree.package.project.model import Found, Project
from axletree.package.project.read import read_project
from axletree.package.project.recipe import Choices, render_recipe, unknown_of
from axletree.recipe.parse import parse_recipe

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from axletree.app.lock import LockContext

_PYTHONS = tuple(f"3.{minor}" for minor in range(14, 8, -1))
"""Tried from the newest where the running one is not what the project takes."""
_PROGRAMS = ("cmake", "ninja", "patchelf", "pkg-config", "rustup")
_BUILD_FILES = frozenset({"pyproject.toml", "setup.py", "setup.cfg"})
_REQUEST = re.compile(r"3\.\d+t?")


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """What a user asks for."""

    target: str
    torch: str | None = None
    gpu: str | None = None
    pythons: tuple[str, ...] = ()


class Started(msgspec.Struct, frozen=True, kw_only=True):
    """A recipe for a project, and what it was made from."""

    recipe: str
    """The file that it is written to."""
    name: str
    version: str
    project: Project
    unknown: tuple[str, ...]
    """What could not be found out, as sentences."""
    text: str
    """The recipe."""


def draft(
    wanted: Wanted,
    surroundings: LockContext,
    *,
    place: Callable[[str], Path],
    note: Callable[[str], None] = lambda _: None,
) -> Started:
    """A recipe for a project; nothing is written.

    Args:
        wanted: What is asked for.
        surroundings: What is needed of this machine.
        place: The recipe's file, by the project's name.
        note: Told what is being done.

    Raises:
        UsageError: there is no such project, or it needs a choice that was not made.
        HostError: it can't be had, or its crates can't.
        IntegrityError: its archive is none.
    """
    indexes = read_indexes(surroundings.settings, surroundings.environ, home=surroundings.home, cwd=surroundings.cwd)
    places = Places(
        environ=surroundings.environ,
        settings=indexes,
        cache=surroundings.cache,
        downloads=surroundings.downloads,
        offline=surroundings.settings.offline,
        note=note,
    )
    source = find_project(wanted.target, places, beside=place("x").parent)
    if not _BUILD_FILES & source.tree.sizes.keys():
        raise UsageError(
            f"{source.origin} is not a Python project: it has neither pyproject.toml nor setup.py",
            hint="name the folder with one of them; for a pure CMake project, write a recipe with a `compile` stage",
        )
    project = _with_version(read_project(source.tree, fallback=source.name), source)
    _refuse_crates(project, source)
    choices = _choices(project, source, wanted, surroundings)
    text = render_recipe(project, choices)
    recipe = parse_recipe(text, filename=f"the recipe for {wanted.target}")
    return Started(
        recipe=str(place(recipe.name)),
        name=recipe.name,
        version=recipe.version,
        project=project,
        unknown=unknown_of(project, choices),
        text=text,
    )


def write_recipe(started: Started, path: Path, *, again: bool = False) -> None:
    """Write the recipe to a new file.

    Args:
        started: The recipe.
        path: The file.
        again: Whether one that says the same may be there.

    Raises:
        UsageError: there is a file already.
        HostError: it can't be written.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("x", encoding="utf-8") as stream:
            stream.write(started.text)
    except FileExistsError:
        if again and _says(path, started.text):
            return
        hint = f"build it with `axletree build {path}`, remove it, or choose another path with --out"
        raise UsageError(f"{path} already exists and was not changed", hint=hint) from None
    except OSError as error:
        raise HostError(Problem(file=str(path), message=f"cannot be written: {error.strerror}")) from error


def _says(path: Path, text: str) -> bool:
    try:
        return path.read_text(encoding="utf-8") == text
    except (OSError, UnicodeDecodeError):
        return False


def _with_version(project: Project, source: ProjectSource) -> Project:
    """The project with the version that git or a file's name tells, where its files don't.

    Of an sdist of an index its name counts: by that version a lock looks for it.
    """
    known = project.version.stated
    same = known is not None and source.version is not None and Version(known.value) == Version(source.version)
    if source.version is None or same or (known is not None and source.keys[0][0] != "pypi"):
        return project
    stated = Found(value=source.version, why=source.version_at)
    version = msgspec.structs.replace(project.version, stated=stated)
    unknown = tuple(sentence for sentence in project.unknown if not sentence.startswith("the version:"))
    return msgspec.structs.replace(project, version=version, unknown=unknown)


def _refuse_crates(project: Project, source: ProjectSource) -> None:
    """Say what a Rust project lacks before anything is built of it."""
    if project.crates != "fetched":
        return
    vendor = "mkdir -p .cargo && cargo vendor > .cargo/config.toml"
    hint = f"run `{vendor}` in that folder once, then run this command again"
    if source.keys[0][0] != "path":
        hint = f'unpack it, run `{vendor}` there, then `axletree init FOLDER`: the recipe has source.path = "FOLDER"'
    raise HostError(
        f"{project.name.value} is written in Rust, but its crates are not in its source, and stages have no network",
        hint=hint,
    )


def _choices(project: Project, source: ProjectSource, wanted: Wanted, surroundings: LockContext) -> Choices:
    torch, gpu = wanted.torch, wanted.gpu or "cpu"
    if project.gpu.torch is not None and torch is None:
        raise UsageError(
            f"{project.name.value} compiles against PyTorch ({project.gpu.torch.place}): specify its version",
            hint="such as --torch 2.13.0 --gpu cpu; for GPUs --gpu cu130, --gpu rocm7.1",
        )
    if torch is None and wanted.gpu is not None:
        raise UsageError("--gpu needs --torch with a version of PyTorch")
    backend = registry.backend_of(gpu)
    if backend is None:
        raise UsageError(f"unknown GPU platform {gpu!r}", hint="such as cpu, cu130 or rocm7.1")
    programs = frozenset(find_programs(_PROGRAMS, surroundings.environ.get("PATH", "")))
    return Choices(
        source=source.keys,
        origin=source.origin,
        pythons=_pythons(project, wanted.pythons, surroundings),
        torch=torch,
        gpu=gpu,
        world=backend.name,
        programs=programs,
        rustup=_rustup(surroundings) if "rustup" in programs else "",
    )


def _rustup(surroundings: LockContext) -> str:
    """Where rustup has its toolchains; empty where that is not in a home folder of the user's."""
    folder = surroundings.environ.get("RUSTUP_HOME") or str(surroundings.home / ".rustup")
    return folder if Path(folder).is_dir() else ""


def _pythons(project: Project, asked: Sequence[str], surroundings: LockContext) -> tuple[str, ...]:
    """The Pythons that are asked for, else the running one, else the newest here that the project takes."""
    said = project.requires_python
    if wrong := [python for python in asked if not _REQUEST.fullmatch(python)]:
        raise UsageError(
            f"not a Python version: {', '.join(wrong)}", hint="use versions such as 3.12 or 3.13t, separated by commas"
        )
    refused = [python for python in asked if not _takes(project, python)]
    if said is not None and refused:
        raise UsageError(
            f"{project.name.value} supports Python {said.value} ({said.place}), but not {', '.join(refused)}"
        )
    if asked:
        return tuple(asked)
    running = f"{sys.version_info[0]}.{sys.version_info[1]}"
    if _takes(project, running):
        return (running,)
    for python in _PYTHONS:
        if _takes(project, python) and _is_here(python, surroundings):
            return (python,)
    said_ = said.value if said is not None else ""
    raise HostError(
        f"{project.name.value} needs Python {said_}, which is not installed",
        hint="install one, for example with `uv python install`",
    )


def _is_here(python: str, surroundings: LockContext) -> bool:
    try:
        find_interpreters([python], environ=surroundings.environ, cache=surroundings.cache / "interpreters.json")
    except AxletreeError:
        return False
    return True


def _takes(project: Project, python: str) -> bool:
    try:
        wanted = SpecifierSet(project.requires_python.value if project.requires_python is not None else "")
    except InvalidSpecifier:
        return True
    return any(wanted.contains(f"{python.removesuffix('t')}.{patch}") for patch in (0, 99))
