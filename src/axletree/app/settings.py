"""The settings as they may be shown."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from axletree.host.facts.privacy import without_credentials
from axletree.host.settings import user_file
from axletree.report.settings import SettingsReport, ShownSetting

if TYPE_CHECKING:
    from axletree.recipe.settings import Loaded


def show_settings(loaded: Loaded) -> SettingsReport:
    """All settings, each with where it comes from, without credentials."""
    values = msgspec.to_builtins(loaded.settings)
    rows = [
        ShownSetting(key=key, value=_without_credentials(values[key]), origins=origins)
        for key, origins in loaded.origins.items()
    ]
    return SettingsReport(settings=tuple(rows), file=str(user_file()))


def _without_credentials(value: Any) -> Any:
    if isinstance(value, str):
        return without_credentials(value)
    return tuple(map(without_credentials, value)) if isinstance(value, tuple) else value
