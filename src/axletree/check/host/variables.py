"""Environment variables that change builds: which, and what each reaches."""

from __future__ import annotations

from axletree.check.host.part import FactGroup


class Variable(FactGroup, frozen=True, kw_only=True):
    """An environment variable."""

    name: str
    value: str
    """``****`` if it looks like a secret; credentials are removed from addresses."""
    group: str
    """What it affects: ``compiler``, ``cmake``, ``pytorch``, ``cuda``, ``rocm``, ``loader``, ``python``,
    ``threads``, ``jobs``, ``cache``, ``locale``, ``runtime``."""
