"""The settings as a table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from axletree.view.tables import printable, render_table

if TYPE_CHECKING:
    from axletree.report.settings import SettingsReport, ShownSetting


def settings_text(report: SettingsReport, *, width: int) -> str:
    """Each setting with its value and its places, and where the user's own file is."""
    rows = [[each.key, _shown(each), ", ".join(each.origins)] for each in report.settings]
    table = render_table(["SETTING", "VALUE", "FROM"], rows, width=width)
    return printable(f"{table}\nyour own settings are in {report.file}")


def _shown(setting: ShownSetting) -> str:
    match setting.value:
        case None | ():
            return "-"
        case bool():
            return "true" if setting.value else "false"
        case tuple():
            return " ".join(setting.value)
        case _:
            return str(setting.value)
