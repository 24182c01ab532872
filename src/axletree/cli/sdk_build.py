"""``axletree sdk build``: an SDK's files as wheels, a selector and an index."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, get_args

import click
import msgspec

from axletree.app.epoch import source_date_epoch
from axletree.app.installing import offers_of
from axletree.app.listings import LINKS_PAGE
from axletree.app.sdk_build import SdkRequest, build_sdk
from axletree.app.sdk_input import load_manifest
from axletree.app.sdk_selector import sdist_root
from axletree.binary.zip.deflate import LEVEL
from axletree.cli.notes import say_aside
from axletree.cli.options import PATH, threads_option
from axletree.cli.reporting import ReportCommand, Reported
from axletree.cli.sdk_explain import input_options, read_input, table_width
from axletree.report.sdk import SdkReport, Selector
from axletree.view.sdk_build import built_text
from axletree.view.sdk_install import at_install_lines, wheel_lines

if TYPE_CHECKING:
    from collections.abc import Iterator


@click.command(name="build", cls=ReportCommand, report=SdkReport)
@click.argument("manifest")
@input_options
@click.option(
    "--out",
    type=PATH,
    default=Path("dist"),
    show_default=True,
    help="Folder to write the wheels and their package index to.",
)
@click.option("--version", metavar="VERSION", help="Version to give all packages, instead of the manifest's.")
@click.option("--target", "targets", metavar="GPU", multiple=True, help="Use only artifacts for this GPU. Repeatable.")
@click.option(
    "--family", "families", metavar="NAME", multiple=True, help="Build a package for this GPU family. Repeatable."
)
@click.option(
    "--selector",
    type=click.Choice(get_args(Selector)),
    default="wheel",
    show_default=True,
    help=(
        "Build the selector as a wheel (the same for all hosts), as an sdist (which chooses a GPU when it "
        "is installed), or as both, in two indexes."
    ),
)
@click.option(
    "--platform-tag",
    metavar="TAG",
    help="Platform tag of the wheels; by default, the lowest tag that their files allow.",
)
@click.option(
    "--level",
    type=click.IntRange(0, 9),
    default=LEVEL,
    show_default=True,
    help="Compression level, from 0 (no compression) to 9 (smallest files).",
)
@threads_option("the wheels")
def build_command(
    manifest: str,
    out: Path,
    version: str | None,
    targets: tuple[str, ...],
    families: tuple[str, ...],
    selector: Selector,
    platform_tag: str | None,
    level: int,
    threads: int,
    **folders: Path | None,
) -> Reported:
    """Build an SDK's Python packages: runtime, GPU and development packages, and the selector.

    MANIFEST is a file, or the name of a manifest that ships with Axletree, such as rocm. Nothing is written unless
    every file belongs to one package and every library finds what it needs. SOURCE_DATE_EPOCH sets the date of the
    members.
    """
    described = load_manifest(manifest, folder=Path.cwd())
    read = read_input(described, folders, targets=targets, threads=threads)
    request = SdkRequest(
        version=version,
        families=families,
        platform=platform_tag,
        level=level,
        epoch=source_date_epoch(os.environ),
        threads=threads,
        selector=selector,
    )
    report = build_sdk(described, read.entries, request, out=out, environ=os.environ, note=say_aside)
    report = msgspec.structs.replace(report, notes=(*read.notes, *report.notes))
    return Reported(report, lambda: _text(report))


def _text(report: SdkReport) -> str:
    install = list(_install_hints(report, Path(report.out).absolute()))
    return built_text(report, install=install, width=table_width())


def _install_hints(report: SdkReport, out: Path) -> Iterator[str]:
    if report.selector != "sdist":
        yield from wheel_lines(report, offers_of(out / wheel.file for wheel in report.wheels))
    if report.sdist is not None:
        yield f"the selector as an sdist: {report.sdist.file}"
        page = sdist_root(out, report.selector) / LINKS_PAGE
        yield from at_install_lines(report, place=page.as_uri(), variable=f"{report.prefix}_TARGET_FAMILY")
