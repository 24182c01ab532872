"""What dependencies are called where: the table that ships with Axletree."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING

from axletree.core.errors import HostError
from axletree.host.conda_names import read_conda_names
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
    try:
        data = (files("axletree.backends") / "data" / _FILE).read_bytes()
    except OSError as error:
        raise HostError(f"the table of dependencies can't be read: {error}", hint="reinstall axletree") from error
    return parse_table(data, file=_FILE, conda=read_conda_names())
