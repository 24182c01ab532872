"""What distributions are called as conda packages: the table that ships with Axletree."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING

from axletree.core.errors import HostError
from axletree.core.values import Digest, digest_of
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
    return parse_names(_read(), file=_FILE)


@cache
def names_digest() -> Digest:
    """Digest of the table's file: part of what dependencies are.

    Raises:
        HostError: it is missing or can't be read.
    """
    return digest_of(_read())


def _read() -> bytes:
    try:
        return (files("axletree.backends") / "data" / _FILE).read_bytes()
    except OSError as error:
        raise HostError(f"the table of conda names can't be read: {error}", hint="reinstall axletree") from error
