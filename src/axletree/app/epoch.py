"""The date that goes into archives (``SOURCE_DATE_EPOCH``, reproducible-builds.org)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from axletree.core.errors import UsageError
from axletree.package.writer import EARLIEST

if TYPE_CHECKING:
    from collections.abc import Mapping


def source_date_epoch(environ: Mapping[str, str]) -> int:
    """Seconds since 1970 that the environment asks for, not before 1980, the first date that an archive can hold.

    Raises:
        UsageError: the variable is set to what is no number.
    """
    text = environ.get("SOURCE_DATE_EPOCH", "")
    if text and not (text.isascii() and text.isdigit()):
        raise UsageError(f"SOURCE_DATE_EPOCH={text!r} is no number of seconds since 1970")
    return max(int(text or 0), EARLIEST)
