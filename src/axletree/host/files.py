"""Files that are whole or absent: written beside, then renamed into place."""

from __future__ import annotations

import os
import secrets
import tempfile
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from axletree.core.errors import HostError, Problem

if TYPE_CHECKING:
    from collections.abc import Iterator

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


@contextmanager
def appearing(path: Path, *, sync: bool = True) -> Iterator[Path]:
    """A place beside a file that is to be written; when the block ends without an error, it gets the file's name.

    Args:
        path: the file; what was there is replaced. Its folder is made if it is not there.
        sync: bring the new name to the disk. The content is the block's business.

    Raises:
        HostError: something could not be written, in the block or here. Nothing is left behind, whatever the error.
    """
    temporary = path.parent / f".{secrets.token_hex(8)}{PART}"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        yield temporary
        temporary.replace(path)
        if sync:
            sync_folder(path.parent)
    except OSError as error:
        raise HostError(Problem(file=str(path), message=f"can't be written: {error.strerror}")) from error
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)


def sync_folder(folder: Path) -> None:
    """Bring the names in a folder to the disk.

    Raises:
        OSError: as the system says.
    """
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
