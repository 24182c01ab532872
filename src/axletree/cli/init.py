"""``axletree init``: a recipe for a project."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from axletree.app.start import Started, Wanted, draft, write_recipe
from axletree.cli.notes import say_aside
from axletree.cli.opening import lock_context, settings
from axletree.cli.recipe_options import find_links_option, index_url_option
from axletree.cli.reporting import ReportCommand, Reported
from axletree.view.tables import printable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_Command = TypeVar("_Command", bound="Callable[..., Any]")


def start_options(command: _Command) -> _Command:
    """The argument and the options that ``init`` and ``wheel`` have in common."""
    for option in reversed(
        [
            click.argument("target", default="."),
            click.option("--torch", metavar="VERSION", help="Version of PyTorch to compile against."),
            click.option(
                "--gpu",
                metavar="GPU",
                help="GPU platform that PyTorch was built for, such as cpu (the default), cu130 or rocm7.1.",
            ),
            click.option(
                "--python", "pythons", metavar="VERSIONS", help="Python versions to build for, such as 3.11,3.12."
            ),
            click.option(
                "--portable",
                is_flag=True,
                help="Compile with Zig for glibc 2.17, so that the wheels also work on old systems (C and C++ only).",
            ),
            click.option("--offline", is_flag=True, help="Do not use the network; fail if a file is missing."),
            find_links_option,
            index_url_option,
        ]
    ):
        command = option(command)
    return command


def wanted_of(target: str, torch: str | None, gpu: str | None, pythons: str | None, *, portable: bool) -> Wanted:
    """What the options ask for."""
    versions = tuple(version.strip() for version in (pythons or "").split(",") if version.strip())
    return Wanted(target=target, torch=torch, gpu=gpu, pythons=versions, portable=portable)


@click.command(cls=ReportCommand, report=Started)
@start_options
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="File to write; by default NAME.toml, or NAME-wheel.toml if the current folder has a package called NAME.",
)
def command(
    *,
    target: str,
    torch: str | None,
    gpu: str | None,
    pythons: str | None,
    portable: bool,
    offline: bool,
    find_links: tuple[str, ...],
    index_url: str | None,
    out: Path | None,
) -> Reported:
    """Write a recipe for a project from an sdist, an archive, a folder or a git repository.

    TARGET is the name of an sdist (NAME or NAME==VERSION), an archive, a folder (the current one by default) or the
    address of a git repository. The project is read, never run. Existing files are never overwritten.
    """
    started = draft(
        wanted_of(target, torch, gpu, pythons, portable=portable),
        lock_context(settings(offline=offline, find_links=find_links, index_url=index_url)),
        place=lambda name: out or _place(name),
        note=say_aside,
    )
    write_recipe(started, Path(started.recipe))
    return Reported(started, lambda: _lines(started))


def _place(name: str) -> Path:
    """The recipe's file; its locks get a folder with its stem, which must not be a package of the project."""
    if not (Path(name) / "__init__.py").exists():
        return Path(f"{name}.toml")
    place = Path(f"{name}-wheel.toml")
    say_aside(f"note: {name}/ is a Python package, so the recipe is {place}, and its locks go to {place.stem}/")
    return place


def _lines(started: Started) -> Iterator[str]:
    yield f"{started.recipe}: {started.name} {started.version}"
    for sentence in started.project.notices:
        yield printable(f"note: {sentence}")
    for sentence in started.unknown:
        yield printable(f"not known: {sentence}")
    yield f"next: axletree lock {started.recipe}"
    yield f"then: axletree build {started.recipe}"
