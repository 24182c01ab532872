"""Files that another version of Axletree wrote: one message, which says whose they are and what to do."""

from __future__ import annotations

import re

from axletree.core.errors import Problem

_FORMAT = re.compile(r"\d{1,4}(?:\.\d{1,4})*", re.ASCII)


def format_problem(found: object, known: int | str, *, file: str, remake: str) -> Problem | None:
    """What is wrong with the format that a file has; ``None`` where it is the one that is known.

    Args:
        found: what the file says, a number or such as ``1.0``.
        known: the format of this version.
        file: how the user named it.
        remake: what to do about a file of an older version, or one that says something else.
    """
    if found == known and type(found) is type(known):
        return None
    shown = repr(found)[:40]
    if isinstance(found, bool) or not isinstance(found, int | str) or not _FORMAT.fullmatch(str(found)):
        return Problem(
            file=file, message=f"the file has a format that Axletree does not recognize: {shown}", hint=remake
        )
    if _numbers(found) > _numbers(known):
        message = f"the file has format {found}, which a newer version of Axletree wrote; this version supports {known}"
        return Problem(file=file, message=message, hint=f"update Axletree, or {remake}")
    message = f"the file has format {found}, which an older version of Axletree wrote; this version supports {known}"
    return Problem(file=file, message=message, hint=remake)


def _numbers(version: int | str) -> tuple[int, ...]:
    return tuple(int(part) for part in str(version).split("."))
