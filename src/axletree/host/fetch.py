"""Downloads one file whose digest is known: resumable, verified, and complete or absent at its destination.

What has arrived lies in the partial folder under the digest's name, so a later call goes on where this one was cut,
whichever address it asks. The digest decides at the end, so no entity tag is needed to know that a resumed file is
whole.
"""

from __future__ import annotations

import errno
import hashlib
import os
import re
import shutil
import time
from typing import TYPE_CHECKING, BinaryIO

import filelock
import urllib3
from urllib3.exceptions import HTTPError, IncompleteRead, ProtocolError

from axletree.core.errors import HostError, IntegrityError
from axletree.core.setting import LOCK
from axletree.core.units import format_bytes
from axletree.disk import part_file
from axletree.host import web
from axletree.host.indexes import local_path, redact

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    Progress = Callable[[int, int | None], None]

ATTEMPTS = 5
"""Tries without a single new byte before the download is given up."""

ONLINE = "run once without --offline, or set AXLETREE_FIND_LINKS to a folder that contains the file"
"""The hint where the network would help."""
_CHUNK = 1 << 18
_MARGIN = 16 << 20
_RANGE = re.compile(r"^bytes (\d+)-\d+/(\d+|\*)$")


class DigestError(IntegrityError):
    """What came is not what its digest says."""

    def __init__(self, shown: str, *, expected: str, actual: str, size: int) -> None:
        """As one says it of a file that a lock pins; what else pins one says it in its own words."""
        self.digests = f"    expected sha256 {expected}\n    got sha256      {actual} ({size} bytes)"
        super().__init__(
            f"{shown} is not the locked file\n{self.digests}",
            hint=f"if the publisher replaced the file on purpose, update the lock: {LOCK} --upgrade",
        )


class _CutError(Exception):
    """The connection ended early or the server asks to come back: what has arrived is kept, try again."""

    def __init__(self, text: str, *, status: int | None = None) -> None:
        """``status`` is that of an answer that asks to come back."""
        self.status = status
        super().__init__(text)


class _StaleError(Exception):
    """What lies in the partial folder does not fit what the server has: start anew."""


def download(
    url: str,
    dest: Path,
    *,
    sha256: str,
    size: int | None,
    partial_folder: Path,
    progress: Progress | None = None,
    offline: bool = False,
    backoff: float = 0.5,
) -> None:
    """Bring a file to ``dest``, which appears only whole and verified.

    Args:
        url: ``http(s)://``, ``file://`` or a local path.
        dest: the file to write; a file already there is replaced.
        sha256: digest that the content must have.
        size: bytes, where known: shown, checked against the free space, and a limit to what is accepted.
        partial_folder: where cut downloads wait; on the file system of ``dest`` at best.
        progress: called with bytes done and bytes in all (``None`` where unknown).
        offline: whether the network must not be used.
        backoff: seconds before the second try; doubled before each further one.

    Raises:
        DigestError: the content is not what the digest says; both digests are named and nothing is kept.
        IntegrityError: there is more of it than the size says.
        StatusError: an answer that is an error.
        HostError: no network, an answer that is an error, a local file that cannot be read, no room on the disk.
    """
    shown = redact(url)
    local = local_path(url)
    if local is None and offline:
        raise HostError(
            f"cannot download with --offline: {shown} ({_show_size(size)})",
            hint=ONLINE,
        )
    partial = partial_folder / f"{sha256}.partial"
    try:
        partial_folder.mkdir(parents=True, exist_ok=True)
        dest.parent.mkdir(parents=True, exist_ok=True)
        # Two processes that want the same file: the second one waits, then takes over what the first has left.
        with filelock.FileLock(partial_folder / f"{sha256}.lock"):
            _check_room(partial, size)
            if local is not None:
                _copy(local, partial, size=size, progress=progress)
                _verify(partial, sha256, shown)
            else:
                _fetch(url, partial, sha256=sha256, size=size, progress=progress, backoff=backoff)
            _put(partial, dest)
    except OSError as error:
        raise _disk_error(error, dest, size) from error


def _fetch(
    url: str, partial: Path, *, sha256: str, size: int | None, progress: Progress | None, backoff: float
) -> None:
    """Fill the partial file until it is whole; a resumed file that turns out wrong is fetched once more from zero."""
    resumed = partial.exists() and partial.stat().st_size > 0
    _fill(url, partial, size=size, progress=progress, backoff=backoff)
    try:
        _verify(partial, sha256, redact(url))
    except IntegrityError:
        if not resumed:
            raise
        _fill(url, partial, size=size, progress=progress, backoff=backoff)
        _verify(partial, sha256, redact(url))


def _fill(url: str, partial: Path, *, size: int | None, progress: Progress | None, backoff: float) -> None:
    failures = 0
    while True:
        before = partial.stat().st_size if partial.exists() else 0
        if size is not None and before == size:
            return
        try:
            _receive(url, partial, have=before, size=size, progress=progress)
        except _StaleError:
            partial.unlink(missing_ok=True)
            failures += 1
            reason: Exception = _CutError("the server does not resume downloads correctly")
        except (HTTPError, _CutError) as error:
            after = partial.stat().st_size if partial.exists() else 0
            failures = 1 if after > before else failures + 1
            reason = error
        else:
            return
        if failures >= ATTEMPTS:
            raise _given_up(url, reason) from reason
        time.sleep(min(backoff * 2 ** (failures - 1), 20.0))


def _given_up(url: str, reason: Exception) -> HostError:
    if isinstance(reason, _CutError) and reason.status is not None:
        return web.StatusError(redact(url), reason.status)
    if isinstance(reason, ProtocolError) and any(isinstance(each, IncompleteRead) for each in reason.args):
        reason = _CutError("the connection was closed before all of the file had arrived")
    if not isinstance(reason, _CutError):
        return web.no_answer(url, reason)
    hint = "run the command again: it continues with what has arrived"
    return HostError(f"the download of {redact(url)} was cut off: {reason}", hint=hint)


def _receive(url: str, partial: Path, *, have: int, size: int | None, progress: Progress | None) -> None:
    """One request: from byte ``have`` on where the server can, from the start where not."""
    if size is not None and have > size:
        raise _StaleError
    headers = {"Range": f"bytes={have}-"} if have else {}
    answer, final = web.get(url, headers=headers, retry=urllib3.Retry(total=0, redirect=0))
    try:
        start = _start_of(answer, final, have=have, size=size)
        length = answer.headers.get("Content-Length")
        total = size if size is not None else (start + int(length) if length and length.isdigit() else None)
        with partial.open("r+b" if start else "wb") as stream:
            stream.seek(start)
            done = start
            for chunk in _chunks(answer):
                done += len(chunk)
                if size is not None and done > size:
                    raise _too_long(partial, final, size)
                stream.write(chunk)
                if progress is not None:
                    progress(done, total)
    finally:
        answer.close()
    if total is not None and done < total:
        raise _CutError(f"the connection was closed after {done} of {total} bytes")


def _start_of(answer: urllib3.BaseHTTPResponse, url: str, *, have: int, size: int | None) -> int:
    """At which byte the body of an answer starts."""
    if answer.status == 200:
        return 0
    if answer.status == 206:
        match = _RANGE.match(answer.headers.get("Content-Range") or "")
        if match is None or int(match[1]) != have:
            raise _StaleError
        if size is not None and match[2] != "*" and int(match[2]) != size:
            raise _StaleError
        return have
    if answer.status == 416:
        raise _StaleError
    if answer.status in web.RETRY_STATUS:
        raise _CutError(f"HTTP status {answer.status}", status=answer.status)
    gone = f"the file no longer exists; use a different index, or update the lock: {LOCK} --upgrade"
    raise web.StatusError(redact(url), answer.status, hint=gone if answer.status in {404, 410} else None)


def _chunks(answer: urllib3.BaseHTTPResponse) -> Iterator[bytes]:
    while chunk := answer.read(_CHUNK):
        yield chunk


def _too_long(partial: Path, url: str, size: int) -> IntegrityError:
    partial.unlink(missing_ok=True)
    return IntegrityError(f"{redact(url)} is larger than the expected {size} bytes")


def _copy(source: Path, partial: Path, *, size: int | None, progress: Progress | None) -> None:
    """Copy a local file. A hard link would let a later change of the user's file reach into the store."""
    try:
        stream: BinaryIO = source.open("rb")
    except OSError as error:
        raise HostError(f"cannot read {source}: {error.strerror or error}") from error
    with stream, partial.open("wb") as out:
        total = size if size is not None else os.fstat(stream.fileno()).st_size
        done = 0
        while chunk := stream.read(_CHUNK):
            out.write(chunk)
            done += len(chunk)
            if progress is not None:
                progress(done, total)


def _verify(partial: Path, sha256: str, shown: str) -> None:
    with partial.open("rb") as stream:
        actual = hashlib.file_digest(stream, "sha256").hexdigest()
    if actual == sha256:
        return
    size = partial.stat().st_size
    partial.unlink()
    raise DigestError(shown, expected=sha256, actual=actual, size=size)


def _put(partial: Path, dest: Path) -> None:
    """Move a verified file to its place, also across file systems."""
    try:
        partial.replace(dest)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        with part_file(dest) as beside:
            shutil.copyfile(partial, beside)
            beside.replace(dest)
        partial.unlink()


def _check_room(partial: Path, size: int | None) -> None:
    if size is None:
        return
    missing = size - (partial.stat().st_size if partial.exists() else 0)
    free = shutil.disk_usage(partial.parent).free
    if missing > 0 and free < missing + min(_MARGIN, missing):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(partial))


def _disk_error(error: OSError, dest: Path, size: int | None) -> HostError:
    """The error for people: full disks are named as such, with what is needed and what is there."""
    place = error.filename or dest
    if error.errno in {errno.ENOSPC, errno.EDQUOT}:
        folder = dest.parent if dest.parent.exists() else dest.parent.parent
        free = shutil.disk_usage(folder).free if folder.exists() else 0
        return HostError(
            (
                f"not enough disk space for {dest.name}: it needs {_show_size(size)}, but only {_show_size(free)} "
                f"is free in {place}"
            ),
            hint="free some space, or set AXLETREE_STORE to a folder on a different disk",
        )
    return HostError(f"cannot write {place}: {error.strerror or error}")


def _show_size(size: int | None) -> str:
    if size is None:
        return "size unknown"
    return format_bytes(size)


def size_of(url: str) -> int | None:
    """Bytes of a file, without reading it: as its server says, or its folder; ``None`` where that says nothing."""
    local = local_path(url)
    try:
        if local is not None:
            return local.stat().st_size
        answer, _ = web.get(url, method="HEAD")
        answer.close()
    except (HTTPError, HostError, OSError):
        return None  # who then reads it is told what is wrong
    length = answer.headers.get("Content-Length") or ""
    return int(length) if answer.status == 200 and length.isdigit() else None


def measure(url: str, *, keep: Path, note: Callable[[str], None], offline: bool = False) -> tuple[str, int]:
    """Digest and size of a file that no index describes; reads all of it.

    Args:
        url: ``http(s)://``, ``file://`` or a local path.
        keep: partial folder: what had to be downloaded waits there, so that :func:`download` need not do it again.
        note: told what is downloaded.
        offline: whether the network must not be used.

    Raises:
        HostError: no answer, or it cannot be read or kept.
    """
    local = local_path(url)
    if local is None and offline:
        raise HostError(f"cannot download with --offline: {redact(url)}", hint=ONLINE)
    try:
        if local is not None:
            with local.open("rb") as stream:
                return hashlib.file_digest(stream, "sha256").hexdigest(), os.fstat(stream.fileno()).st_size
        return _measure_remote(url, keep, note)
    except HTTPError as error:
        raise web.no_answer(url, error) from error
    except OSError as error:
        what = f"read {local}" if local is not None else f"keep {redact(url)}"
        raise HostError(f"cannot {what}: {error.strerror or error}") from error


def _measure_remote(url: str, keep: Path, note: Callable[[str], None]) -> tuple[str, int]:
    answer, final = web.get(url)
    keep.mkdir(parents=True, exist_ok=True)
    digest = hashlib.sha256()
    size = 0
    try:
        if answer.status != 200:
            raise web.StatusError(redact(final), answer.status)
        length = answer.headers.get("Content-Length") or ""
        shown = _show_size(int(length) if length.isdigit() else None)
        note(f"downloading {redact(url)} ({shown}): its index does not list a digest and size")
        with part_file(keep / "measured") as fresh:
            with fresh.open("wb") as stream:
                for chunk in _chunks(answer):
                    digest.update(chunk)
                    size += len(chunk)
                    stream.write(chunk)
            fresh.replace(keep / f"{digest.hexdigest()}.partial")
    finally:
        answer.close()
    return digest.hexdigest(), size
