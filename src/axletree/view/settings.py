"""The settings, each with where its value comes from, as text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from axletree.view.tables import printable, render_table

if TYPE_CHECKING:
    from axletree.report.settings import Setting, SettingsReport


def settings_text(report: SettingsReport, *, width: int) -> str:
    """A table, and where the user's own file is."""
    rows = [[setting.key, _shown(setting), ", ".join(setting.origins)] for setting in report.settings]
    table = render_table(["SETTING", "VALUE", "FROM"], rows, width=width)
    return printable(f"{table}\nyour own settings are in {report.file}")


def _shown(setting: Setting) -> str:
    match setting.value:
        case None | ():
            return "-"
        case bool(value):
            return "true" if value else "false"
        case tuple(values):
            return " ".join(values)
        case value:
            return str(value)
