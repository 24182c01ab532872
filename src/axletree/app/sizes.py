"""Measure where the bytes of wheels, folders and libraries are."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from axletree.binary.elf.facts import is_elf, read_elf
from axletree.binary.zip.directory import read_directory
from axletree.core.errors import IntegrityError
from axletree.host.archive import map_file
from axletree.host.folders import list_files
from axletree.host.sources import DiskSource
from axletree.package.sizes import SizedFile, SizeReport, measure_sizes
from axletree.package.wheel.scan import scan_wheel

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


class Sizes(msgspec.Struct, frozen=True, kw_only=True):
    """The use of space of each input: report of ``sizes``."""

    inputs: tuple[SizeReport, ...]


def measure_path(path: Path) -> SizeReport:
    """Measure a wheel, a folder, or one file. A wheel is inflated once in memory, of files only headers are read.

    Raises:
        HostError: it can't be read.
        IntegrityError: it is no sound wheel.
    """
    if path.is_dir():
        damaged: list[str] = []
        return measure_sizes(list(_folder_files(path, damaged)), name=str(path), damaged=damaged)
    if path.name.endswith(".whl"):
        return _measure_wheel(path)
    damaged = []
    return measure_sizes([_file(path, path.name, damaged)], name=str(path), damaged=damaged)


def _measure_wheel(path: Path) -> SizeReport:
    view = map_file(path)
    scan = scan_wheel(view, filename=path.name)
    facts = {member.path: member.facts for member in scan.elfs}
    files = [
        SizedFile(path=entry.name, size=entry.size, compressed=entry.compressed, facts=facts.get(entry.name))
        for entry in read_directory(view, archive=path.name)
        if not entry.directory
    ]
    damaged = [f"{name}: {message}" for name, message in scan.damaged_elfs]
    return measure_sizes(files, name=str(path), compressed=len(view), damaged=damaged)


def _folder_files(root: Path, damaged: list[str]) -> Iterator[SizedFile]:
    """Every regular file; one with several names counts once, links are not followed."""
    seen: set[tuple[int, int]] = set()
    for name in list_files(root):
        path = root / name
        status = path.stat()
        if (status.st_dev, status.st_ino) not in seen:
            seen.add((status.st_dev, status.st_ino))
            yield _file(path, name, damaged)


def _file(path: Path, name: str, damaged: list[str]) -> SizedFile:
    with DiskSource(path) as source:
        try:
            facts = read_elf(source, name=name) if is_elf(source.read(0, 4)) else None
        except IntegrityError as error:
            damaged.append(str(error))
            facts = None
        return SizedFile(path=name, size=source.size, compressed=source.size, facts=facts)
