"""``axletree sdk lay-out`` and ``axletree sdk fetch``: an SDK's files as artifacts, and artifacts from a store."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from axletree.app.epoch import source_date_epoch
from axletree.app.sdk_fetch import PLATFORMS, FetchRequest, fetch
from axletree.app.sdk_input import load_manifest
from axletree.app.sdk_lay_out import lay_out_sdk, read_stage_input
from axletree.cli.notes import say_aside
from axletree.cli.options import FILE, FOLDER, PATH
from axletree.cli.reporting import ReportCommand, Reported
from axletree.cli.sdk_explain import input_options, read_input, table_width
from axletree.core.errors import UsageError
from axletree.report.sdk import Fetched, LaidOut
from axletree.view.sdk_inputs import fetched_text, laid_out_text

if TYPE_CHECKING:
    from axletree.app.sdk_input import SdkInput


@click.command(name="lay-out", cls=ReportCommand, report=LaidOut)
@click.argument("manifest")
@input_options
@click.option(
    "--stage",
    type=FOLDER,
    metavar="DIR",
    help="Build folder that contains the install folders listed in --descriptor.",
)
@click.option(
    "--descriptor",
    type=FILE,
    metavar="FILE",
    help="TheRock's artifact-NAME.toml, which assigns the files in --stage to components.",
)
@click.option(
    "--artifact",
    metavar="NAME",
    help="Name of the artifact to write from --stage; by default, NAME in the file name artifact-NAME.toml.",
)
@click.option(
    "--target",
    "targets",
    metavar="TARGET",
    multiple=True,
    help=(
        "GPU or family. With --stage: the one that it was built for. With --artifacts: also use the artifacts for "
        "this GPU or family, not only those for all GPUs. Repeatable."
    ),
)
@click.option(
    "--dist-target",
    "dist_targets",
    metavar="TARGET",
    multiple=True,
    help="Record, for TheRock's builder, that the SDK contains code for this GPU. Repeatable.",
)
@click.option("--out", type=PATH, required=True, metavar="DIR", help="Folder to create.")
@click.option("--archives", is_flag=True, help="Write .tar.zst archives with checksums instead of folders.")
def lay_out_command(
    manifest: str,
    stage: Path | None,
    descriptor: Path | None,
    artifact: str | None,
    targets: tuple[str, ...],
    dist_targets: tuple[str, ...],
    out: Path,
    *,
    archives: bool,
    **folders: Path | None,
) -> Reported:
    """Lay out an SDK as TheRock artifacts: folders of hard links, or archives.

    MANIFEST is a file, or the name of a manifest that ships with Axletree, such as rocm.
    """
    described = load_manifest(manifest, folder=Path.cwd())
    threads = len(os.sched_getaffinity(0))
    read: SdkInput
    if stage is None:
        if descriptor is not None or artifact is not None:
            raise UsageError("--descriptor and --artifact need --stage")
        if targets and folders["artifacts"] is None:
            raise UsageError("--target needs --stage or --artifacts")
        read = read_input(described, folders, targets=targets, threads=threads)
    elif any(folders.values()):
        raise UsageError("--stage cannot be combined with another input")
    elif descriptor is None:
        raise UsageError("--stage needs --descriptor, which assigns files to components", hint="use --descriptor FILE")
    elif len(targets) > 1:
        raise UsageError("--stage takes only one --target")
    else:
        read = read_stage_input(stage, descriptor, artifact=artifact, target=next(iter(targets), None))
    epoch = source_date_epoch(os.environ)
    done = lay_out_sdk(read, out, archives=archives, dist_targets=dist_targets, epoch=epoch, threads=threads)
    return Reported(done, lambda: laid_out_text(done, width=table_width()))


@click.command(name="fetch", cls=ReportCommand, report=Fetched)
@click.option(
    "--from", "store", required=True, metavar="STORE", help="Folder or URL that contains the RUN-PLATFORM folders."
)
@click.option(
    "--run-id",
    required=True,
    metavar="ID",
    help="Id of the run to fetch; 'latest' selects the highest id whose run contains the group.",
)
@click.option("--artifact-group", "group", required=True, metavar="GROUP", help="Artifact group, such as gfx94X-dcgpu.")
@click.option(
    "--target",
    "targets",
    metavar="TARGET",
    multiple=True,
    help="Also fetch the artifacts for this GPU or family. Repeatable.",
)
@click.option("--platform", type=click.Choice(PLATFORMS), default=PLATFORMS[0], show_default=True)
@click.option("--out", type=PATH, required=True, metavar="DIR", help="Folder to write the archives to.")
def fetch_command(store: str, run_id: str, group: str, targets: tuple[str, ...], platform: str, out: Path) -> Reported:
    """Fetch the artifacts that a run built for a group, and those for all GPUs.

    Each archive is verified against the checksum next to it. Interrupted downloads are resumed, and existing archives
    are not fetched again. Credentials come from the URL or from .netrc, and are not shown.
    """
    request = FetchRequest(store=store, run_id=run_id, group=group, targets=targets, platform=platform)
    done = fetch(request, out, note=say_aside)
    return Reported(done, lambda: fetched_text(done, width=table_width()))
