"""Rows of a distribution's RECORD for what the runtime makes after the installation, so that installers remove it.

A row names a folder, without a hash. The specification (PyPA, "Recording installed projects") asks for files, but what
installers do with a folder is what is needed, and they have done it for years: pip (20.3 to 26.3 were tried) renames
the folder away as a whole, uv (0.1 to 0.13) removes it with all that is in it. So nothing stays: no empty folder, no
dangling link (pip passes over rows of such links), no file that a tool made in the tree. Both pass over rows for what
is not there, so a row is written before its folder is filled and goes after it: there is no moment at which files lie
there that RECORD does not cover, whoever is killed. A row for each file would do none of this.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path


def find_record(site: Path, dist: str, version: str) -> Path | None:
    """RECORD of a distribution that is installed in a site directory; None where it was installed without one."""
    wanted = re.sub(r"[-_.]+", "_", dist).lower()
    found: list[Path] = []
    try:
        names = sorted(os.listdir(site))  # noqa: PTH208  # thousands of names, and only names are wanted
    except OSError:
        return None
    for name in names:
        stem = name[: -len(".dist-info")] if name.endswith(".dist-info") else ""
        project, _, release = stem.partition("-")
        if re.sub(r"[-_.]+", "_", project).lower() == wanted and (site / name / "RECORD").is_file():
            found.append(site / name / "RECORD")
            if release == version:
                return found[-1]
    return found[0] if found else None


def recorded_hash(record: Path | None, path: str) -> str:
    """Hash of a file as RECORD has it (``sha256=...``); empty where it has none."""
    if record is None:
        return ""
    import csv

    with record.open(newline="", encoding="utf-8", errors="replace") as file:
        for row in csv.reader(file):
            if row and row[0] == path and len(row) > 1:
                return row[1]
    return ""


def has_rows(record: Path, names: Iterable[str]) -> bool:
    """Whether folders have their rows."""
    lines = set(record.read_bytes().splitlines())
    return all(_row(name) in lines for name in names)


def set_rows(record: Path, *, add: Iterable[str] = (), remove: Iterable[str] = (), beside: Path) -> None:
    """Give folders their rows, and take others out; all else stays byte for byte, and nothing is written if all fits.

    Args:
        record: the file.
        add: folders of the site directory that are to have a row.
        remove: folders that are to have none.
        beside: where the new RECORD is made before it is renamed: a path on the same file system, in a folder that
            RECORD covers.
    """
    content = record.read_bytes()
    gone, lines = set(map(_row, remove)), content.splitlines(keepends=True)
    kept = b"".join(line for line in lines if line.rstrip(b"\r\n") not in gone)
    there = {line.rstrip(b"\r\n") for line in lines}
    missing = [row for row in map(_row, add) if row not in there]
    end = b"\r\n" if b"\r\n" in content else b"\n"
    if missing and kept and not kept.endswith(b"\n"):
        kept += end
    changed = kept + b"".join(row + end for row in missing)
    if changed != content:
        _replace(record, changed, beside)


def append_row(record: Path, name: str) -> None:
    """Give a folder its row before it is there, by one call that is done or not, whoever is killed.

    A file with other names stays as it is: the row would be in an installer's cache as well.
    """
    content = record.read_bytes()
    if not _is_alone(record) or _row(name) in content.splitlines():
        return
    end = b"\r\n" if b"\r\n" in content else b"\n"
    start = end if content and not content.endswith(b"\n") else b""
    with record.open("ab", buffering=0) as file:
        file.write(start + _row(name) + end)


def drop_last_row(record: Path, name: str) -> None:
    """Take the row of a folder that is not there any more, if it is the last one, by one call."""
    content = record.read_bytes()
    kept = b"".join(content.splitlines(keepends=True)[:-1])
    if _is_alone(record) and content[len(kept) :].rstrip(b"\r\n") == _row(name):
        os.truncate(record, len(kept))


def _is_alone(record: Path) -> bool:
    return not record.is_symlink() and record.stat().st_nlink == 1


def _row(name: str) -> bytes:
    return f"{name},,".encode()


def _replace(record: Path, content: bytes, beside: Path) -> None:
    """Put a new file in its place: the old one may be an installer's cache by another name."""
    with beside.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    before = record.stat()
    beside.chmod(before.st_mode & 0o7777)
    if hasattr(os, "chown") and os.geteuid() == 0:
        os.chown(beside, before.st_uid, before.st_gid)
    beside.replace(record)
