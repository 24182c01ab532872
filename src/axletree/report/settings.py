"""Report of ``settings``."""

from __future__ import annotations

import msgspec


class ShownSetting(msgspec.Struct, frozen=True, kw_only=True):
    """A setting."""

    key: str
    value: str | int | bool | tuple[str, ...] | None
    """Without the credentials of addresses; ``None`` where nothing is set."""
    origins: tuple[str, ...]
    """Where it comes from: an option, a variable, ``FILE:LINE`` or ``default``; a list may come from several places."""


class SettingsReport(msgspec.Struct, frozen=True, kw_only=True):
    """All settings."""

    settings: tuple[ShownSetting, ...]
    file: str
    """Where the user's own settings are, if there are any."""
