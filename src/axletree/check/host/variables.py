"""Environment variables that change builds: which, and what each reaches."""

from __future__ import annotations

from axletree.check.host.part import FactGroup


class Variable(FactGroup, frozen=True, kw_only=True):
    """A variable that is set."""

    name: str
    value: str
    """``****`` where it looks like a secret; addresses have no credentials."""
    group: str
    """What it reaches: ``compiler``, ``cmake``, ``pytorch``, ``cuda``, ``rocm``, ``loader``, ``python``, ``threads``,
    ``jobs``, ``cache``, ``locale``, ``runtime``."""
