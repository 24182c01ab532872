"""What dependencies are called where: the table that ships with Axletree."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from axletree.host.conda_names import read_conda_names
from axletree.host.shipped_data import read_table
from axletree.package.drift.names import parse_table

if TYPE_CHECKING:
    from axletree.package.drift.names import Table

_FILE = "dependencies.toml"


@cache
def read_dependency_table() -> Table:
    """The table.

    Raises:
        HostError: its file is missing or can't be read.
        IntegrityError: it is not in its form.
    """
    return parse_table(read_table(_FILE), file=_FILE, conda=read_conda_names())
