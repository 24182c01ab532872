"""Files that are whole or absent: written beside, then renamed.

Who writes holds the lock of the unfinished file as long as it lives, so the next one can tell what a killed process
left. Process numbers can't: in each container they begin anew.
"""

from __future__ import annotations

import os
import re
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

_PART = ".axletree-part"


def replace_text(path: Path, text: str) -> None:
    """Write a file so that nobody sees half of it. What killed processes left of it goes.

    Raises:
        OSError: it can't be written.
    """
    _remove_leftovers(path)
    beside = path.with_name(f".{path.name}.{os.urandom(8).hex()}{_PART}")
    with beside.open("x", encoding="utf-8") as file:
        try:
            _lock(file.fileno())
            file.write(text)
            file.flush()
            if os.name == "nt":
                file.close()  # what is open can't be renamed there
            beside.replace(path)
        finally:
            with suppress(OSError):
                beside.unlink()


def _remove_leftovers(path: Path) -> None:
    if os.name == "nt":  # nobody knows there who is gone
        return
    ours = re.compile(rf"\.{re.escape(path.name)}\.[0-9a-f]{{16}}{re.escape(_PART)}")
    with suppress(OSError):
        for each in path.parent.iterdir():
            if ours.fullmatch(each.name) and not each.with_name(f"{each.name}.d").exists():  # else it is a folder's
                with suppress(OSError), each.open("r+") as file:
                    if _lock(file.fileno()):
                        each.unlink()


def _lock(file: int) -> bool:
    """Whether this process has the lock of a file now; not where there are no locks."""
    try:
        import fcntl

        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (ImportError, OSError):
        return False
    return True
