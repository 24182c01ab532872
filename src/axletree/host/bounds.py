"""The table of what goes together, as it ships with Axletree."""

from __future__ import annotations

import tomllib
from functools import cache
from importlib.resources import files

from axletree.backends.bounds import Bounds, decode_bounds
from axletree.core.errors import HostError

_FILE = "toolchain-bounds.toml"


@cache
def read_bounds() -> Bounds:
    """The table.

    Raises:
        HostError: the data file is missing or can't be read.
        IntegrityError: it is not in its form.
    """
    try:
        text = (files("axletree.backends") / "data" / _FILE).read_text(encoding="utf-8")
        return decode_bounds(tomllib.loads(text), file=_FILE)
    except (OSError, ValueError) as error:
        raise HostError(f"{_FILE} can't be read: {error}", hint="reinstall axletree") from error
