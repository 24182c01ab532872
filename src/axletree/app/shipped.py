"""Where the data files lie that ship with Axletree beside its code."""

from __future__ import annotations

from pathlib import Path

import axletree

_INSTALLED = "_recipes"
_ENVIRONMENTS = "env"


def is_installed(path: Path) -> bool:
    """Whether a recipe is a file of the installed package, which nobody but an installer writes to."""
    return path.resolve().is_relative_to((Path(axletree.__file__).parent / _INSTALLED).resolve())


def recipes_folder() -> Path | None:
    """Folder of the shipped recipes: inside an installed package, beside ``src`` in a checkout."""
    package = Path(axletree.__file__).parent
    folders = (package / _INSTALLED, package.parents[1] / "recipes")
    return next((folder for folder in folders if folder.is_dir()), None)


def shipped_environments() -> dict[str, Path]:
    """Files of the environments that ship with Axletree, by name."""
    folder = recipes_folder()
    return {path.stem: path for path in sorted((folder / _ENVIRONMENTS).glob("*.toml"))} if folder is not None else {}
