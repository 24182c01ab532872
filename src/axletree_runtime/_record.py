"""Rows of a distribution's RECORD for what the runtime makes after the installation, so that installers remove it.

A row names a folder, without a hash. The specification (PyPA, "Recording installed projects") asks for files, but what
installers do with a folder is what is needed, and they have done it for years: pip (20.3 to 26.3 were tried) renames
the folder away as a whole, uv (0.1 to 0.13) removes it with all that is in it. So nothing stays: no empty folder, no
dangling link (pip passes over such rows of files), no file that a tool made in the tree, and a tree that was left
half-made goes as well. Rows for what is not there are passed over by both, so they are written before the tree is made:
there is no moment at which the tree exists and RECORD does not say so. A row for each file would do none of this.
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


def has_any_row(record: Path, names: Iterable[str]) -> bool:
    """Whether one of several folders has its row."""
    return any(has_rows(record, [name]) for name in names)


def add_rows(record: Path, names: Iterable[str], work: Path) -> None:
    """Give folders their rows, where they are missing; all else stays byte for byte.

    Args:
        record: the file.
        names: folders of the site directory.
        work: folder on the same file system; the new RECORD is made there, then renamed.
    """
    content = record.read_bytes()
    lines = set(content.splitlines())
    missing = [row for row in map(_row, names) if row not in lines]
    if missing:
        end = _line_end(content)
        start = b"" if not content or content.endswith(b"\n") else end
        _replace(record, content + start + b"".join(row + end for row in missing), work)


def remove_rows(record: Path, names: Iterable[str], work: Path) -> None:
    """Take the rows of folders out again."""
    gone = set(map(_row, names))
    content = record.read_bytes()
    kept = b"".join(line for line in content.splitlines(keepends=True) if line.rstrip(b"\r\n") not in gone)
    if kept != content:
        _replace(record, kept, work)


def _row(name: str) -> bytes:
    return f"{name},,".encode()


def _line_end(content: bytes) -> bytes:
    return b"\r\n" if b"\r\n" in content else b"\n"


def _replace(record: Path, content: bytes, work: Path) -> None:
    """Put a new file in its place: the old one may be an installer's cache by another name."""
    beside = work / f"RECORD-{os.getpid()}"
    with beside.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    before = record.stat()
    beside.chmod(before.st_mode & 0o7777)
    if hasattr(os, "chown") and os.geteuid() == 0:
        os.chown(beside, before.st_uid, before.st_gid)
    beside.replace(record)
