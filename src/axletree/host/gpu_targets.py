"""The table of AMD's GPU targets that ships with Axletree."""

from __future__ import annotations

from functools import cache

from axletree.host.shipped_data import read_table
from axletree.package.sdk.targets import TargetTable, decode_targets

_FILE = "amd-targets.toml"


@cache
def read_gpu_targets() -> TargetTable:
    """The table.

    Raises:
        HostError: the data file is missing or can't be read.
        IntegrityError: it is not in its form.
    """
    return decode_targets(read_table(_FILE), file=_FILE)
