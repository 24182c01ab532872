"""Where symbolic links of a tree lead, by the tree alone: nothing outside of it counts."""

from __future__ import annotations

import posixpath
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from axletree.package.sdk.entries import SdkEntry

_MOST = 40
"""Links on the way to a file, as Linux allows."""


class SdkTree:
    """The entries of an SDK by path."""

    def __init__(self, entries: Iterable[SdkEntry]) -> None:
        """Look at entries, each path once."""
        self.entries: Mapping[str, SdkEntry] = {entry.path: entry for entry in entries}
        self.folders = folders_of(self.entries) | {
            path for path, entry in self.entries.items() if entry.kind == "folder"
        }

    def real(self, path: str) -> str | None:
        """The file or folder that a path leads to; ``None`` where it leads to nothing, out of the tree or in a circle.

        Absolute targets lead out: where the tree is unpacked they would name files of the machine.
        """
        parts = path.split("/")
        done: list[str] = []
        followed = 0
        while parts:
            part = parts.pop(0)
            if part in {"", "."}:
                continue
            if part == "..":
                if not done:
                    return None
                done.pop()
                continue
            here = "/".join([*done, part])
            entry = self.entries.get(here)
            if entry is None or entry.kind != "link":
                done.append(part)
                continue
            followed += 1
            if followed > _MOST or entry.link.startswith("/"):
                return None
            parts = [*entry.link.split("/"), *parts]
        place = "/".join(done)
        return place if place in self.entries or place in self.folders else None


def relative(path: str, *, beside: str) -> str:
    """How a link at ``beside`` writes that it leads to ``path``; both below the same root."""
    return posixpath.relpath(f"/{path}", f"/{posixpath.dirname(beside)}")


def folders_of(paths: Iterable[str]) -> set[str]:
    """All folders that some paths lie in."""
    found: set[str] = set()
    for path in paths:
        above = path.rpartition("/")[0]
        while above and above not in found:  # what is above a known folder is known
            found.add(above)
            above = above.rpartition("/")[0]
    return found
