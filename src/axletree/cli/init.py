"""``axletree init``: a recipe for a project."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from axletree.app.lock import LockContext
from axletree.app.start import Started, Wanted, draft, write_recipe
from axletree.cli.notes import say_aside
from axletree.cli.opening import settings
from axletree.cli.reporting import ReportCommand, Reported
from axletree.store.layout import StoreLayout
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
                "--gpu", metavar="GPU", help="GPU platform of that PyTorch: cpu (the default), cu130, rocm7.1."
            ),
            click.option(
                "--python", "pythons", metavar="VERSIONS", help="Python versions to build for, such as 3.11,3.12."
            ),
            click.option("--offline", is_flag=True, help="Do not use the network; missing files are errors."),
            click.option(
                "--find-links",
                multiple=True,
                metavar="PLACE",
                help="Folder or page with wheels, searched before the index.",
            ),
            click.option("--index-url", metavar="URL", help="Package index to use instead of the configured one."),
        ]
    ):
        command = option(command)
    return command


def context(**options: Any) -> LockContext:
    """What is needed of this machine; options are those of the command that are settings too."""
    chosen = settings(**options)
    return LockContext(
        environ=os.environ,
        home=Path.home(),
        cwd=Path.cwd(),
        settings=chosen,
        cache=StoreLayout(Path(chosen.store)).cache,
    )


def wanted_of(target: str, torch: str | None, gpu: str | None, pythons: str | None) -> Wanted:
    """What the options ask for."""
    versions = tuple(version.strip() for version in (pythons or "").split(",") if version.strip())
    return Wanted(target=target, torch=torch, gpu=gpu, pythons=versions)


@click.command(cls=ReportCommand, report=Started)
@start_options
@click.option("--out", type=click.Path(path_type=Path), metavar="FILE", help="File to write; NAME.toml by default.")
def command(
    *,
    target: str,
    torch: str | None,
    gpu: str | None,
    pythons: str | None,
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
        wanted_of(target, torch, gpu, pythons),
        context(offline=offline, find_links=find_links, index_url=index_url),
        place=lambda name: out or Path(f"{name}.toml"),
        note=say_aside,
    )
    write_recipe(started, Path(started.recipe))
    return Reported(started, lambda: _lines(started))


def _lines(started: Started) -> Iterator[str]:
    yield f"{started.recipe}: {started.name} {started.version}"
    for sentence in started.unknown:
        yield printable(f"not known: {sentence}")
    yield f"next: axletree lock {started.recipe}"
    yield f"then: axletree build {started.recipe}"
