"""Report of ``settings``."""

from __future__ import annotations

import msgspec


class ShownSetting(msgspec.Struct, frozen=True, kw_only=True):
    """A setting."""

    key: str
    value: str | int | bool | tuple[str, ...] | None
    """Its value, without credentials in addresses; ``None`` if nothing is set."""
    origins: tuple[str, ...]
    """Its source: an option, a variable, ``FILE:LINE`` or ``default``; a list may have several sources."""


class SettingsReport(msgspec.Struct, frozen=True, kw_only=True):
    """All settings."""

    settings: tuple[ShownSetting, ...]
    file: str
    """Path of the user's own settings, if there are any."""
