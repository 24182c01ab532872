"""What a project and this host say of a recipe: for one that is started, and for the defaults of one that is locked."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
from packaging.version import Version

from axletree import registry
from axletree.app.defaults import made_from, pin_of
from axletree.app.recipes import problem_at
from axletree.app.unbuildable import recent_programs, refuse_downloads
from axletree.core.errors import RecipeError, UsageError
from axletree.host.project_source import Places, pinned_project
from axletree.package.project.model import Found, Project
from axletree.package.project.read import read_project
from axletree.package.project.recipe import Choices, render_defaults, takes_python, unknown_of
from axletree.recipe.defaults import DEFAULTS_LOCK, MADE_FROM, axes_seen, digest_of_tables, parse_defaults
from axletree.recipe.toml import decode_toml
from axletree.recipe.writing import toml_document

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from axletree.app.lock_context import LockContext
    from axletree.app.recipes import LoadedRecipe
    from axletree.host.indexes import IndexSettings
    from axletree.host.project_source import ProjectSource
    from axletree.recipe.defaults import Defaults
    from axletree.recipe.locks import SourceLock

_PROGRAMS = ("cmake", "ninja", "patchelf", "pkg-config")
_BUILD_FILES = frozenset({"pyproject.toml", "setup.py", "setup.cfg"})


def places_of(indexes: IndexSettings, surroundings: LockContext, note: Callable[[str], None]) -> Places:
    """What finding a project needs of this machine."""
    return Places(
        environ=surroundings.environ,
        settings=indexes,
        cache=surroundings.cache,
        downloads=surroundings.downloads,
        offline=surroundings.settings.offline,
        note=note,
    )


def project_of(source: ProjectSource) -> Project:
    """What a source says.

    Raises:
        UsageError: it is no Python project.
    """
    if not _BUILD_FILES & source.tree.sizes.keys():
        raise UsageError(
            f"{source.origin} is not a Python project: it has neither pyproject.toml nor setup.py",
            hint="specify the folder that contains one of them; for a pure CMake project, write a recipe with a "
            "`compile` stage",
        )
    return _with_version(read_project(source.tree, fallback=source.name), source)


def worlds_of(gpus: Iterable[str]) -> dict[str, str]:
    """GPU -> the name of the backend that owns it.

    Raises:
        UsageError: none does.
    """
    found = {}
    for gpu in gpus:
        backend = registry.backend_of(gpu)
        if backend is None:
            raise UsageError(f"unknown GPU platform {gpu!r}", hint="use a platform such as cpu, cu130 or rocm7.1")
        found[gpu] = backend.name
    return found


def choices_of(
    source: ProjectSource, project: Project, axes: Mapping[str, tuple[str, ...]], surroundings: LockContext
) -> Choices:
    """What the axes of a recipe and this host add to a project's files."""
    programs = recent_programs(_PROGRAMS, project, surroundings.environ.get("PATH", ""))
    gpus = axes.get("gpu", ())
    return Choices(
        source=source.keys,
        origin=source.origin,
        pythons=axes["python"],
        torches=axes.get("torch", ()),
        gpus=gpus,
        worlds=worlds_of(gpus),
        programs=programs,
    )


def make_defaults(
    loaded: LoadedRecipe,
    lock: SourceLock | None,
    indexes: IndexSettings,
    surroundings: LockContext,
    note: Callable[[str], None],
) -> Defaults:
    """Read the source of a recipe, and make its defaults; what could not be found out is noted.

    Args:
        loaded: The recipe.
        lock: What pins its source; ``None`` for a folder.
        indexes: Where sources come from.
        surroundings: What is needed of this machine.
        note: Told what is being done, and what is not known.

    Raises:
        RecipeError: the project compiles against PyTorch, but the recipe does not say which; or it has no version.
        UsageError: it is no Python project.
        HostError: the source can't be read.
    """
    folder = loaded.source_folder
    source = pinned_project(lock, folder, places_of(indexes, surroundings, note), beside=loaded.path.parent)
    project = project_of(source)
    refuse_downloads(project, source, surroundings.environ)
    axes = axes_seen(loaded.stated.values)
    _require_said(loaded, project, axes)
    choices = choices_of(source, project, axes, surroundings)
    for sentence in unknown_of(project, choices):
        note(f"not known: {sentence}")
    stated = project.version.stated
    files = [stated.file] if folder is not None and stated is not None and stated.file else []
    made = made_from(loaded.stated.values, folder, source=pin_of(lock), files=files)
    filename, tables = str(loaded.places.locks / DEFAULTS_LOCK), render_defaults(project, choices)
    made = msgspec.structs.replace(made, tables=digest_of_tables(decode_toml(tables, filename)))
    ending = toml_document({MADE_FROM: msgspec.to_builtins(made)}, {})
    return parse_defaults(f"{tables}\n{ending}", filename=filename)


def _require_said(loaded: LoadedRecipe, project: Project, axes: Mapping[str, tuple[str, ...]]) -> None:
    """Refuse a recipe that leaves out what only its author can decide."""
    used = project.gpu.torch
    if used is not None and "torch" not in axes:
        message = f"{project.name.value} compiles against PyTorch ({used.place}), but the recipe has no torch axis"
        hint = 'add both axes, such as torch = ["2.13.0"] and gpu = ["cpu"]'
        raise RecipeError(problem_at(loaded, ("axes",), message, hint=hint))
    said, refused = project.requires_python, [each for each in axes["python"] if not takes_python(project, each)]
    if said is not None and refused:
        message = f"{project.name.value} supports Python {said.value} ({said.place}), but not {', '.join(refused)}"
        hint = "remove these versions, or build a release of the project that supports them"
        raise RecipeError(problem_at(loaded, ("axes", "python"), message, hint=hint))
    if project.version.stated is None and "version" not in loaded.stated.values:
        message = f"no file in {project.name.value} contains its version as plain text"
        raise RecipeError(problem_at(loaded, ("version",), message, hint='set the version, such as version = "1.0"'))


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
