"""The table of what goes together, as it ships with Axletree."""

from __future__ import annotations

from functools import cache

from axletree.backends.bounds import Bounds, decode_bounds
from axletree.host.shipped_data import read_table

_FILE = "toolchain-bounds.toml"


@cache
def read_bounds() -> Bounds:
    """The table.

    Raises:
        HostError: the data file is missing or can't be read.
        IntegrityError: it is not in its form.
    """
    return decode_bounds(read_table(_FILE), file=_FILE)
