"""Options that all commands with a recipe share."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import click

from axletree.core.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

_NAMED = re.compile(r"([a-z0-9][a-z0-9._-]*)=(.+)")
"""``NAME=DIR``. A folder whose own name looks like that is written with ``./`` in front."""

set_option = click.option(
    "--set",
    "sets",
    multiple=True,
    metavar="KEY=VALUE",
    help="Set a key of the recipe for this run, such as gpu.arch-list=8.0. Repeatable.",
)

variant_option = click.option(
    "-v",
    "--variant",
    "patterns",
    multiple=True,
    metavar="PATTERN",
    help="Select only variants that match PATTERN, such as 'py311-*'. Repeatable.",
)
skip_option = click.option(
    "--skip", multiple=True, metavar="PATTERN", help="Skip variants that match PATTERN, such as '*-cpu'. Repeatable."
)
gpu_option = click.option(
    "--gpu", metavar="GPU", help="Select only variants for this GPU platform, such as cpu, cu126 or rocm7.1."
)
find_links_option = click.option(
    "--find-links",
    multiple=True,
    metavar="PLACE",
    help="Search this folder or page for wheels before the package index. Repeatable.",
)
index_url_option = click.option(
    "--index-url",
    metavar="URL",
    help="Use this package index instead of the one that pip and uv are configured to use.",
)


source_option = click.option(
    "--source",
    "sources",
    multiple=True,
    type=click.Path(),
    metavar="[NAME=]DIR",
    help="Build this folder instead of the recipe's source, or of that of the imported recipe NAME. Repeatable.",
)


def split_sources(sources: Iterable[str]) -> tuple[Path | None, dict[str, Path]]:
    """Folders of ``--source``: that of the recipe itself, and those of imported recipes by name.

    Raises:
        UsageError: two folders are for one recipe.
    """
    found: dict[str, Path] = {}
    for text in sources:
        match = _NAMED.fullmatch(text)
        name, folder = match.groups() if match else ("", text)
        if name in found:
            whose = f"of recipe {name}" if name else "of the recipe"
            raise UsageError(
                f"--source replaces the source {whose} twice: {found[name]} and {folder}", hint="specify it once"
            )
        found[name] = Path(folder)
    return found.pop("", None), found


def set_words(sets: Iterable[str]) -> list[str]:
    """The words of a command line that set the same keys again."""
    return [word for text in sets for word in ("--set", text)]


def part_options(command: Callable[..., object]) -> Callable[..., object]:
    """The options that choose some of a recipe's packages."""
    for option in (
        click.option(
            "--package",
            "packages",
            multiple=True,
            metavar="NAME",
            help="Build only this package of the recipe and what it needs. Repeatable.",
        ),
        click.option(
            "--format",
            "formats",
            multiple=True,
            type=click.Choice(["wheel", "conda", "zip"]),
            help="Build only packages in this format. Repeatable.",
        ),
    ):
        command = option(command)
    return command


def part_words(formats: Iterable[str], packages: Iterable[str]) -> list[str]:
    """The words of a command line that choose the same packages again."""
    given = [("--format", form) for form in formats] + [("--package", name) for name in packages]
    return [word for pair in given for word in pair]
