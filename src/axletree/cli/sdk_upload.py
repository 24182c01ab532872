"""``axletree sdk upload``: an SDK's packages into a store, in the layout of TheRock's runs."""

from __future__ import annotations

import shutil
from pathlib import Path

import click

from axletree.app.sdk_fetch import PLATFORMS
from axletree.app.sdk_upload import INSTALL, UploadRequest, upload_sdk
from axletree.cli.notes import say_aside
from axletree.cli.reporting import ReportCommand, Reported
from axletree.report.sdk import UploadReport
from axletree.view.sdk_upload import install_page, uploaded_text

_WIDEST = 120


@click.command(name="upload", cls=ReportCommand, report=UploadReport)
@click.option(
    "--from",
    "source",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    required=True,
    metavar="DIST",
    help="Index root written by sdk build.",
)
@click.option("--to", "store", required=True, metavar="STORE", help="Folder that contains the RUN-PLATFORM folders.")
@click.option("--run-id", required=True, metavar="ID", help="Id of the run that built the packages.")
@click.option("--platform", type=click.Choice(PLATFORMS), default=PLATFORMS[0], show_default=True)
@click.option("--artifact-group", "group", required=True, metavar="GROUP", help="Artifact group, such as gfx94X-dcgpu.")
@click.option(
    "--per-family",
    is_flag=True,
    help="Write an index for each GPU family that also links to the packages for all GPUs.",
)
@click.option("--url", metavar="ADDRESS", help="URL that serves STORE, for the instructions.")
@click.option("--dry-run", is_flag=True, help="Check everything and show what would be done.")
def upload_command(
    source: Path,
    store: str,
    run_id: str,
    platform: str,
    group: str,
    *,
    per_family: bool,
    url: str | None,
    dry_run: bool,
) -> Reported:
    """Copy the packages of an SDK to STORE/RUN-PLATFORM/python/GROUP, with an index and install instructions.

    Every package is read back, and every required package must exist. Everything appears at once or not at
    all. Existing files are kept; a file with the same name and different content is an error.
    """
    request = UploadRequest(
        source=source,
        store=store,
        run_id=run_id,
        platform=platform,
        group=group,
        per_family=per_family,
        url=url,
        dry_run=dry_run,
    )
    report = upload_sdk(request, instructions=lambda report: install_page(report.indexes), note=say_aside)
    width = min(shutil.get_terminal_size().columns, _WIDEST)
    return Reported(report, lambda: uploaded_text(report, store=store.rstrip("/"), page=INSTALL, width=width))
