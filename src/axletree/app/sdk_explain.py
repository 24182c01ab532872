"""Who owns what of an SDK, before anything is built."""

from __future__ import annotations

import posixpath
from typing import TYPE_CHECKING

import msgspec

from axletree.core.globs import glob_fault, glob_matcher
from axletree.package.sdk.claims import ClaimRef, Ownership, assign, claimants, excluders
from axletree.package.sdk.entries import Entry
from axletree.recipe.faults import nearest

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from axletree.package.sdk.manifest import Manifest


class FileAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """Where an entry goes."""

    entry: Entry
    claims: tuple[ClaimRef, ...]
    """What would take it, in the order in which they are asked."""
    excluded: tuple[tuple[ClaimRef, str], ...]
    """Claims that would take it but for an exclude, with that pattern."""
    verdict: str
    """``owned``, ``dropped``, ``unmatched`` or ``disputed``."""


class Explained(msgspec.Struct, frozen=True, kw_only=True):
    """The whole answer."""

    ownership: Ownership
    files: tuple[FileAnswer, ...] = ()
    missing: dict[str, str | None] = {}
    """What was asked for and is not there -> the path that is most like it."""

    @property
    def faulty(self) -> bool:
        """Whether the answer is no: of the files that were asked for, else of all."""
        if self.files or self.missing:
            return bool(self.missing) or any(each.verdict in {"unmatched", "disputed"} for each in self.files)
        return self.ownership.faulty


def explain(entries: Sequence[Entry], manifest: Manifest, wanted: Sequence[str] = ()) -> Explained:
    """Give everything its place.

    Args:
        entries: the files of the SDK.
        manifest: who owns what.
        wanted: paths below the prefix, or globs of such, of which more shall be said.
    """
    ownership = assign(entries, manifest)
    files: list[FileAnswer] = []
    missing: dict[str, str | None] = {}
    verdicts = {
        (entry.path, entry.target): verdict
        for verdict, found in (
            ("owned", (each.entry for each in ownership.owned)),
            ("dropped", (each.entry for each in ownership.dropped)),
            ("disputed", (each.entry for each in ownership.disputed)),
        )
        for entry in found
    }
    paths = {entry.path for entry in entries}
    for text in wanted:
        plain = text.strip("/").removeprefix("./")
        matches = glob_matcher((plain,)) if plain not in paths and glob_fault(plain) is None else plain.__eq__
        found = [entry for entry in entries if matches(entry.path)]
        if not found:
            missing[text] = _nearest(plain, paths)
        files += [
            FileAnswer(
                entry=entry,
                claims=claimants(entry, manifest),
                excluded=excluders(entry, manifest),
                verdict=verdicts.get((entry.path, entry.target), "unmatched"),
            )
            for entry in found
        ]
    return Explained(ownership=ownership, files=tuple(dict.fromkeys(files)), missing=missing)


def _nearest(path: str, paths: Iterable[str]) -> str | None:
    """The path that was probably meant: of the same name elsewhere, else one that is alike."""
    name = posixpath.basename(path)
    same = sorted(each for each in paths if posixpath.basename(each) == name)
    return nearest(path, same or paths) or next(iter(same), None)
