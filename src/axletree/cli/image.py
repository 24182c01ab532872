"""``axletree image``: make, list, shell, export, remove."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import click

from axletree.app.image_reports import export_image, list_images, make_images, remove_images
from axletree.app.image_shell import image_to_enter, run_in_image
from axletree.cli.notes import say_aside
from axletree.cli.opening import open_store
from axletree.cli.reporting import ReportCommand, Reported, terminal_width
from axletree.core.units import format_bytes
from axletree.report.images import ExportedImage, ListedImages, MadeImages, RemovedImages
from axletree.view.images import SHORT, listed_text, made_text, removed_text


@click.group(name="image")
def command() -> None:
    """Make and manage images: the root file systems that stages run in."""


@command.command(name="make", cls=ReportCommand, report=MadeImages)
@click.argument("recipe", metavar="RECIPE[:NAME]")
def make_command(recipe: str) -> Reported:
    """Make all images of a recipe, or only the image NAME, and add them to the store.

    RECIPE is a recipe, a file that contains only [images.NAME] tables, or an image that ships with Axletree: bullseye,
    bookworm, trixie, manylinux_2_28 or manylinux_2_34. Images that the recipe's lock pins are made exactly so.
    """
    report = make_images(open_store(), recipe, environ=os.environ, note=say_aside)
    return Reported(report, lambda: made_text(report))


@command.command(name="list", cls=ReportCommand, report=ListedImages)
def list_command() -> Reported:
    """List the images in the store."""
    report = list_images(open_store())
    return Reported(report, lambda: listed_text(report, now=time.time(), width=terminal_width()))


@command.command(name="shell", context_settings={"allow_interspersed_args": False})
@click.argument("image", metavar="ID|RECIPE[:NAME]")
@click.argument("argv", nargs=-1, metavar="[COMMAND]...")
def shell_command(image: str, argv: tuple[str, ...]) -> None:
    """Open a shell in an image, or run a command there.

    An image that is not in the store is made first. The store is at /axletree/store; changes to all other files are
    discarded at the end.
    """
    store = open_store()
    record = image_to_enter(store, image, environ=os.environ, note=say_aside)
    argv = argv[1:] if argv[:1] == ("--",) else argv
    sys.exit(run_in_image(store, record, argv, environ=os.environ))


@command.command(name="export", cls=ReportCommand, report=ExportedImage)
@click.argument("image", metavar="ID")
@click.option(
    "--to",
    required=True,
    metavar="PLACE",
    help="Write to oci:DIR[:TAG], docker-archive:FILE[:NAME:TAG], or tar:FILE (only the root file system).",
)
def export_command(image: str, to: str) -> Reported:
    """Export an image for use with other tools, such as podman, docker, skopeo and umoci.

    ID is the image's id in `axletree image list`; its first digits are enough. An image that came in layers is exported
    with the same layers, except to tar.
    """
    report = export_image(open_store(), image, to, folder=Path.cwd())
    return Reported(report, lambda: f"exported {report.id[:SHORT]} to {report.to}: {format_bytes(report.size)}")


@command.command(name="remove", cls=ReportCommand, report=RemovedImages)
@click.argument("images", metavar="ID...", nargs=-1, required=True)
def remove_command(images: tuple[str, ...]) -> Reported:
    """Remove images from the store.

    `axletree store gc` removes those that have not been used for some time.
    """
    report = remove_images(open_store(), images)
    return Reported(report, lambda: removed_text(report))
