"""Report of ``settings``: each setting, with where its value comes from."""

from __future__ import annotations

import msgspec


class Setting(msgspec.Struct, frozen=True, kw_only=True, rename={"origins": "from"}):
    """A setting."""

    key: str
    value: bool | int | str | tuple[str, ...] | None
    """Without the credentials of addresses."""
    origins: tuple[str, ...]
    """The default, a file with its line, a variable or an option; a list may come from several."""


class SettingsReport(msgspec.Struct, frozen=True, kw_only=True):
    """All settings of a call."""

    file: str
    """The user's own settings file, whether it exists or not."""
    settings: tuple[Setting, ...]
