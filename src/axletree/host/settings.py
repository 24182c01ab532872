"""The settings of this user, in this folder: read from options, variables and files."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import platformdirs

from axletree.core.errors import HostError, Problem
from axletree.host.indexes import absolute_path, index_address, location
from axletree.recipe.settings import PROJECT_FILE, USER_FILE, Given, from_file, from_variables, merge

if TYPE_CHECKING:
    from collections.abc import Mapping

    from axletree.recipe.settings import Loaded


_PLACING = {
    "store": absolute_path,
    "index-url": index_address,
    "extra-index-url": index_address,
    "find-links": location,
}
"""Key -> what makes its paths absolute."""


def load_settings(environ: Mapping[str, str], *, home: Path, cwd: Path, options: Given | None = None) -> Loaded:
    """The settings, whose relative paths are relative to the file that has them, or to ``cwd``.

    Args:
        environ: environment variables.
        home: the user's home folder, ``~`` in paths.
        cwd: the working folder, in or below the project's folder.
        options: what the command line says.

    Raises:
        UsageError: a variable or a file has what is no setting, or a project sets what it may not.
        RecipeError: a file is no TOML.
        HostError: a file can't be read.
    """
    project = project_file(cwd)
    places = [_placed(given, cwd, home) for given in (options or Given(), from_variables(environ))]
    for path in (project, user_file()):
        if path is not None and (text := _read(path)) is not None:
            shown = path.relative_to(cwd) if path.is_relative_to(cwd) else path
            given = from_file(text, filename=str(shown), project=path is project)
            places.append(_placed(given, path.parent, home, cwd=cwd))
    store = str(platformdirs.user_cache_path("axletree") / "store")
    return merge([*places, Given(values={"store": store}, origins={"store": "default"})])


def user_file() -> Path:
    """Path of the user's own settings, if there are any."""
    return platformdirs.user_config_path("axletree") / USER_FILE


def user_locks(recipe: str) -> Path:
    """Where the locks of a recipe that ships with Axletree are written: its own folder may be read-only."""
    return platformdirs.user_data_path("axletree") / "locks" / recipe


def project_file(cwd: Path) -> Path | None:
    """The project's settings: those of the working folder, else of the nearest folder above it."""
    return next((path for folder in (cwd, *cwd.parents) if (path := folder / PROJECT_FILE).is_file()), None)


def _read(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8")
    except (FileNotFoundError, NotADirectoryError):
        return None
    except UnicodeDecodeError as error:
        raise HostError(Problem(message=f"the file is not UTF-8: {error.reason}", file=str(path))) from error
    except OSError as error:
        raise HostError(Problem(message=f"the file cannot be read: {error.strerror}", file=str(path))) from error


def _placed(given: Given, folder: Path, home: Path, *, cwd: Path | None = None) -> Given:
    """The same with absolute paths. An output folder stays as it was given, or is seen from the working folder."""
    values = dict(given.values)
    for key in _PLACING.keys() & values.keys():
        place = partial(_PLACING[key], home=home, cwd=folder)
        values[key] = place(values[key]) if isinstance(values[key], str) else tuple(map(place, values[key]))
    if cwd is not None and "out" in values:
        out = Path(absolute_path(values["out"], home=home, cwd=folder))
        values["out"] = str(out.relative_to(cwd) if out.is_relative_to(cwd) else out)
    return msgspec.structs.replace(given, values=values)
