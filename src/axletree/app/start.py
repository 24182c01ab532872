"""The way in: what a user names becomes a recipe that builds it."""

from __future__ import annotations

import platform
import re
import sys
from typing import TYPE_CHECKING

import msgspec

from axletree.app.projects import choices_of, places_of, project_of
from axletree.app.unbuildable import refuse_downloads
from axletree.core.errors import AxletreeError, HostError, Problem, UsageError
from axletree.host.indexes import read_indexes
from axletree.host.interpreters import find_interpreters
from axletree.host.project_source import find_project
from axletree.package.project.model import Project
from axletree.package.project.portable import GLIBC, why_not
from axletree.package.project.recipe import render_defaults, takes_python, unknown_of
from axletree.package.project.start import render_recipe
from axletree.recipe.defaults import Defaults
from axletree.recipe.parse import parse_recipe
from axletree.recipe.toml import decode_toml

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from axletree.app.lock_context import LockContext

_PYTHONS = tuple(f"3.{minor}" for minor in range(14, 8, -1))
"""Tried from the newest where the running one is not what the project takes."""
_REQUEST = re.compile(r"3\.\d+t?")


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """What a user asks for."""

    target: str
    torch: str | None = None
    gpu: str | None = None
    pythons: tuple[str, ...] = ()
    portable: bool = False
    """Whether the wheels must run on systems that are older than this one."""


class Started(msgspec.Struct, frozen=True, kw_only=True):
    """A recipe for a project, and the source that it was made from."""

    recipe: str
    """The file that it is written to."""
    name: str
    version: str
    project: Project
    unknown: tuple[str, ...]
    """What is not known about the project, as sentences."""
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
        HostError: it can't be had, or what its build downloads can't.
        IntegrityError: its archive is none.
    """
    indexes = read_indexes(surroundings.settings, surroundings.environ, home=surroundings.home, cwd=surroundings.cwd)
    source = find_project(wanted.target, places_of(indexes, surroundings, note), beside=place("x").parent)
    project = project_of(source)
    if wanted.portable:
        _refuse_portable(project, wanted)
    refuse_downloads(project, source, surroundings.environ)
    choices = choices_of(source, project, _axes(project, wanted, surroundings), surroundings)
    choices = msgspec.structs.replace(choices, portable=platform.machine() if wanted.portable else "")
    text = render_recipe(project, choices)
    defaults = Defaults(tables=decode_toml(render_defaults(project, choices), "defaults"))
    recipe = parse_recipe(text, filename=f"the recipe for {wanted.target}", defaults=defaults)
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
        raise HostError(Problem(file=str(path), message=f"the recipe cannot be written: {error.strerror}")) from error


def _says(path: Path, text: str) -> bool:
    try:
        return path.read_text(encoding="utf-8") == text
    except (OSError, UnicodeDecodeError):
        return False


def _axes(project: Project, wanted: Wanted, surroundings: LockContext) -> dict[str, tuple[str, ...]]:
    """The axes of the recipe: what is asked for, and the Pythons that fit."""
    if project.gpu.torch is not None and wanted.torch is None:
        raise UsageError(
            f"{project.name.value} compiles against PyTorch ({project.gpu.torch.place}): specify its version",
            hint="use options such as --torch 2.13.0 --gpu cpu; for GPUs, --gpu cu130 or --gpu rocm7.1",
        )
    if wanted.torch is None and wanted.gpu is not None:
        raise UsageError("--gpu needs --torch with a version of PyTorch")
    axes = {"python": _pythons(project, wanted.pythons, surroundings)}
    if wanted.torch is not None:
        axes |= {"gpu": (wanted.gpu or "cpu",), "torch": (wanted.torch,)}
    return axes


def _refuse_portable(project: Project, wanted: Wanted) -> None:
    """Say why there can be no portable wheel, before anything is built of it."""
    reason = why_not(project, platform.machine())
    if reason is None and wanted.torch is not None:
        reason = "--torch was given, and PyTorch's libraries need a newer glibc and the GNU C++ library"
    if reason is not None:
        raise UsageError(
            f"--portable cannot make a wheel of {project.name.value} for glibc {GLIBC}: {reason}",
            hint="run the command without --portable; the audit says which glibc the wheel needs",
        )


def _pythons(project: Project, asked: Sequence[str], surroundings: LockContext) -> tuple[str, ...]:
    """The Pythons that are asked for, else the running one, else the newest here that the project takes."""
    said = project.requires_python
    if wrong := [python for python in asked if not _REQUEST.fullmatch(python)]:
        raise UsageError(
            f"these are not Python versions: {', '.join(wrong)}",
            hint="use versions such as 3.12 or 3.13t, separated by commas",
        )
    refused = [python for python in asked if not takes_python(project, python)]
    if said is not None and refused:
        raise UsageError(
            f"{project.name.value} supports Python {said.value} ({said.place}), but not {', '.join(refused)}",
            hint="choose versions that it supports with --python, or a release of the project that supports these",
        )
    if asked:
        return tuple(asked)
    running = f"{sys.version_info[0]}.{sys.version_info[1]}"
    if takes_python(project, running):
        return (running,)
    for python in _PYTHONS:
        if takes_python(project, python) and _is_here(python, surroundings):
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
