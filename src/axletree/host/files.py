"""Files that are whole or absent: written beside, then renamed into place."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

PART = ".axletree-part"
"""How the names of files end that were not finished. A killed process leaves them."""


def replace_file(path: Path, data: bytes, *, mode: int = 0o644) -> None:
    """Write a file so that a reader sees the old content or the new, whatever is killed when.

    Raises:
        OSError: as the system says; no temporary file stays.
    """
    temporary = write_beside(path, data, mode=mode)
    try:
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def write_beside(path: Path, data: bytes, *, mode: int = 0o644) -> Path:
    """Write the content of a file to a temporary one in the same folder; renaming that makes it appear.

    Raises:
        OSError: as the system says; no temporary file stays.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=PART, dir=path.parent)
    temporary = Path(name)
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
        temporary.chmod(mode)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    return temporary
