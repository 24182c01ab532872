"""The date that goes into archives (``SOURCE_DATE_EPOCH``, reproducible-builds.org)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from axletree.binary.zip.records import EARLIEST
from axletree.core.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping


def source_date_epoch(environ: Mapping[str, str]) -> int:
    """Seconds since 1970 that the environment asks for, not before 1980, the first date that an archive can hold.

    Raises:
        UsageError: the variable is set to what is no number.
    """
    text = environ.get("SOURCE_DATE_EPOCH", "")
    if not re.fullmatch(r"[0-9]{0,18}", text):
        raise UsageError(f"SOURCE_DATE_EPOCH={text[:40]!r} is not a valid number of seconds since 1970")
    return max(int(text or 0), EARLIEST)
