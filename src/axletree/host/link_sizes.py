"""The measured sizes of GPU code that ship with Axletree."""

from __future__ import annotations

import tomllib
from functools import cache
from importlib.resources import files

from axletree.backends.link_size import LinkSizes, decode_link_sizes
from axletree.core.errors import HostError

_FILE = "link-size.toml"


@cache
def read_link_sizes() -> LinkSizes:
    """The table.

    Raises:
        HostError: the data file is missing or can't be read.
        IntegrityError: it is not in its form.
    """
    try:
        text = (files("axletree.backends") / "data" / _FILE).read_text(encoding="utf-8")
        return decode_link_sizes(tomllib.loads(text), file=_FILE)
    except (OSError, ValueError) as error:
        raise HostError(f"{_FILE} can't be read: {error}", hint="reinstall axletree") from error
