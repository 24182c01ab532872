"""What distributions are called as conda packages: the table that ships with Axletree."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from axletree.core.values import Digest, digest_of
from axletree.host.shipped_data import read_table
from axletree.package.conda.requires import parse_names

if TYPE_CHECKING:
    from axletree.package.conda.requires import Names

_FILE = "conda-names.toml"


@cache
def read_conda_names() -> Names:
    """The table.

    Raises:
        HostError: its file is missing or can't be read.
        IntegrityError: it is not in its form.
    """
    return parse_names(read_table(_FILE), file=_FILE)


@cache
def names_digest() -> Digest:
    """Digest of the table's file: part of what dependencies are.

    Raises:
        HostError: it is missing or can't be read.
    """
    return digest_of(read_table(_FILE))
