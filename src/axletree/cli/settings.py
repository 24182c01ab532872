"""``axletree settings``: what is set, and where."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Any

import click
import msgspec

from axletree.cli.opening import loaded
from axletree.cli.reporting import ReportCommand, Reported
from axletree.host.facts.privacy import without_credentials
from axletree.host.settings import user_file
from axletree.report.settings import Setting, SettingsReport
from axletree.view.settings import settings_text

if TYPE_CHECKING:
    from axletree.recipe.settings import Loaded


@click.command(cls=ReportCommand, report=SettingsReport)
def command() -> Reported:
    """Show the settings, each with the file, variable or default that its value comes from."""
    report = _report(loaded())
    width = shutil.get_terminal_size((100, 24)).columns
    return Reported(report, lambda: settings_text(report, width=width))


def _report(found: Loaded) -> SettingsReport:
    values = msgspec.to_builtins(found.settings)
    rows = (
        Setting(key=key, value=_without_credentials(values[key]), origins=places)
        for key, places in found.origins.items()
    )
    return SettingsReport(file=str(user_file()), settings=tuple(rows))


def _without_credentials(value: Any) -> Any:
    if isinstance(value, str):
        return without_credentials(value)
    return tuple(map(without_credentials, value)) if isinstance(value, list | tuple) else value
