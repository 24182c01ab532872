"""The measured sizes of GPU code that ship with Axletree."""

from __future__ import annotations

from functools import cache

from axletree.backends.link_size import LinkSizes, decode_link_sizes
from axletree.host.shipped_data import read_table

_FILE = "link-size.toml"


@cache
def read_link_sizes() -> LinkSizes:
    """The table.

    Raises:
        HostError: the data file is missing or can't be read.
        IntegrityError: it is not in its form.
    """
    return decode_link_sizes(read_table(_FILE), file=_FILE)
