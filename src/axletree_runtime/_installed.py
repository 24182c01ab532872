"""The distributions of an SDK as the installer left them: metadata, lists of files, console scripts."""

from __future__ import annotations

import csv
import re
import sys
from dataclasses import dataclass
from functools import cached_property
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ._sdk import Sdk


@dataclass(frozen=True)
class Row:
    """A line of RECORD."""

    path: str
    hash: str
    size: int | None


@dataclass(frozen=True, eq=False)
class Dist:
    """An installed distribution."""

    name: str
    version: str
    info: Path
    """Its ``.dist-info`` folder."""
    scripts: tuple[tuple[str, str], ...]
    """Name and ``module:function`` of each console script."""

    @property
    def site(self) -> Path:
        """What paths of RECORD are relative to."""
        return self.info.parent

    @cached_property
    def record(self) -> tuple[Row, ...]:
        """Its files; none where an installer that keeps no list put them there."""
        try:
            text = (self.info / "RECORD").read_text(encoding="utf-8")
        except (OSError, ValueError):
            return ()
        rows = (row for row in csv.reader(text.splitlines()) if len(row) == 3)
        return tuple(Row(path, digest, int(size) if size.isdigit() else None) for path, digest, size in rows)


def normalise(name: str) -> str:
    """A distribution's name as all spell it (PEP 503)."""
    return re.sub(r"[-_.]+", "-", name).lower()


def find_dists(sdk: Sdk, paths: Sequence[str] | None = None) -> dict[str, list[Dist]]:
    """Distributions of an SDK by name: those in its site directory, and others that Python finds elsewhere.

    Args:
        sdk: the SDK.
        paths: where else to look; None: on Python's search path.
    """
    wanted = {sdk.file.dist, *(each.dist for each in sdk.file.packages)}
    found = _in(wanted, [str(sdk.site)])
    others = _in(wanted - set(found), paths)
    return {**found, **others}


def _in(wanted: set[str], paths: Sequence[str] | None) -> dict[str, list[Dist]]:
    found: dict[str, list[Dist]] = {}
    seen: set[Path] = set()
    for each in metadata.distributions(path=list(sys.path if paths is None else paths)):
        info = Path(str(getattr(each, "_path", "")))
        name = normalise(info.name.partition("-")[0])
        if name not in wanted or not info.name.endswith(".dist-info") or info in seen:
            continue
        seen.add(info)
        points = (point for point in each.entry_points if point.group == "console_scripts")
        scripts = tuple((point.name, point.value) for point in points)
        version = str(each.metadata["Version"] or info.stem.partition("-")[2])
        found.setdefault(name, []).append(Dist(name, version, info, scripts))
    return found
