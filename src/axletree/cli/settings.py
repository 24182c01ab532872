"""``axletree settings``: what is set, and where."""

from __future__ import annotations

import click

from axletree.app.settings import show_settings
from axletree.cli.opening import loaded
from axletree.cli.reporting import ReportCommand, Reported, terminal_width
from axletree.report.settings import SettingsReport
from axletree.view.settings import settings_text


@click.command(cls=ReportCommand, report=SettingsReport)
def command() -> Reported:
    """Show all settings, and the file, variable or default that each value comes from."""
    report = show_settings(loaded())
    return Reported(report, lambda: settings_text(report, width=terminal_width(100)))
