"""Types and options that commands have in common."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from collections.abc import Callable

Command = TypeVar("Command", bound="Callable[..., Any] | click.Command")

PATH = click.Path(path_type=Path)
"""A path to something that need not exist."""
FOLDER_PATH = click.Path(path_type=Path, file_okay=False)
"""A path to a folder that need not exist."""
EXISTING = click.Path(path_type=Path, exists=True)
"""A file or folder."""
FILE = click.Path(path_type=Path, exists=True, dir_okay=False)
"""A file that exists."""
FOLDER = click.Path(path_type=Path, exists=True, file_okay=False)
"""A folder that exists."""


def threads_option(result: str) -> Callable[[Command], Command]:
    """How many threads compress; ``result`` is what comes out: ``the wheel``."""
    return click.option(
        "--threads",
        type=click.IntRange(1, 64),
        default=lambda: min(64, len(os.sched_getaffinity(0))),
        show_default="all cores",
        help=f"Number of compression threads; it does not change the content of {result}.",
    )


wheels_argument = click.argument("wheels", nargs=-1, required=True, type=FILE, metavar="WHEEL...")
