"""``axletree sdk``: an SDK's install tree as Python packages."""

from __future__ import annotations

import click

from axletree.cli.sdk_build import build_command
from axletree.cli.sdk_explain import check_versions_command, explain_command, version_command
from axletree.cli.sdk_inputs import fetch_command, lay_out_command
from axletree.cli.sdk_upload import upload_command


@click.group(name="sdk")
def command() -> None:
    """Build Python packages from an SDK's install tree, such as ROCm's."""


command.add_command(build_command)
command.add_command(check_versions_command)
command.add_command(explain_command)
command.add_command(fetch_command)
command.add_command(lay_out_command)
command.add_command(upload_command)
command.add_command(version_command)
