"""``axletree sdk upload``: an SDK's packages into a store, in the layout of TheRock's runs."""

from __future__ import annotations

from typing import Any

import click

from axletree.app.sdk_fetch import PLATFORMS
from axletree.app.sdk_upload import INSTALL, UploadRequest, upload_sdk
from axletree.cli.notes import say_aside
from axletree.cli.options import FOLDER
from axletree.cli.reporting import ReportCommand, Reported
from axletree.cli.sdk_explain import table_width
from axletree.report.sdk import UploadReport
from axletree.view.sdk_upload import install_page, uploaded_text


@click.command(name="upload", cls=ReportCommand, report=UploadReport)
@click.option(
    "--from", "source", type=FOLDER, required=True, metavar="DIST", help="Folder that `axletree sdk build` wrote."
)
@click.option("--to", "store", required=True, metavar="STORE", help="Folder that contains the RUN-PLATFORM folders.")
@click.option("--run-id", required=True, metavar="ID", help="Id of the run that built the packages.")
@click.option("--platform", type=click.Choice(PLATFORMS), default=PLATFORMS[0], show_default=True)
@click.option("--artifact-group", "group", required=True, metavar="GROUP", help="Artifact group, such as gfx94X-dcgpu.")
@click.option(
    "--per-family",
    is_flag=True,
    help="Write a separate index for each GPU family; each also lists the packages for all GPUs.",
)
@click.option("--url", metavar="ADDRESS", help="URL at which users can reach STORE, for the install instructions.")
@click.option("--dry-run", is_flag=True, help="Check everything and show what would be copied, without copying it.")
def upload_command(**options: Any) -> Reported:
    """Copy the packages of an SDK to STORE/RUN-PLATFORM/python/GROUP, with an index and install instructions.

    Every package is read back, and every required package must exist. Everything appears at once or not at
    all. Existing files are kept; a file with the same name and different content is an error.
    """
    request = UploadRequest(**options)
    report = upload_sdk(request, instructions=lambda report: install_page(report.indexes), note=say_aside)
    width = table_width()
    return Reported(report, lambda: uploaded_text(report, store=request.store.rstrip("/"), page=INSTALL, width=width))
