"""Who owns what of an SDK, before anything is built."""

from __future__ import annotations

import posixpath
from collections import Counter
from typing import TYPE_CHECKING

import msgspec

from axletree.core.globs import glob_fault, glob_matcher
from axletree.core.near import nearest
from axletree.package.sdk.claims import ClaimRef, Ownership, assign, claimants, excluders
from axletree.package.sdk.entries import SdkEntry
from axletree.report.sdk import (
    ClaimText,
    DisputedPath,
    DroppedPath,
    FileVerdict,
    OwnedPackage,
    OwnershipReport,
    Place,
    Verdict,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from axletree.package.sdk.manifest import Manifest


class FileAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """Where an entry goes."""

    entry: SdkEntry
    claims: tuple[ClaimRef, ...]
    """The claims that match it, in order of precedence."""
    excluded: tuple[tuple[ClaimRef, str], ...]
    """Claims that would take it but for an exclude, with that pattern."""
    verdict: Verdict


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


def explain(entries: Sequence[SdkEntry], manifest: Manifest, wanted: Sequence[str] = ()) -> Explained:
    """Give everything its place.

    Args:
        entries: the files of the SDK.
        manifest: who owns what.
        wanted: paths below the prefix, or globs of such, of which more shall be said.
    """
    ownership = assign(entries, manifest)
    files: list[FileAnswer] = []
    missing: dict[str, str | None] = {}
    verdicts: dict[tuple[str, str], Verdict] = {}
    verdicts |= {(each.entry.path, each.entry.target): "owned" for each in ownership.owned}
    verdicts |= {(each.entry.path, each.entry.target): "dropped" for each in ownership.dropped}
    verdicts |= {(each.entry.path, each.entry.target): "disputed" for each in ownership.disputed}
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


def ownership_report(found: Explained, manifest: Manifest, notes: Sequence[str]) -> OwnershipReport:
    """The answer as the report of ``sdk explain``, with every path that has no place.

    Args:
        found: the answer.
        manifest: who owns what.
        notes: what a user should know of the reading of the input.
    """
    ownership = found.ownership
    return OwnershipReport(
        sdk=manifest.sdk.name,
        packages=tuple(
            OwnedPackage(
                name=package.name,
                dist=package.dist,
                kind=package.kind,
                files=len(entries),
                size=sum(entry.size for entry in entries),
                artifacts=dict(sorted(Counter(entry.artifact for entry in entries).items())),
            )
            for package in manifest.package
            for entries in [ownership.packages[package.name]]
        ),
        dropped=tuple(
            DroppedPath(path=each.entry.path, claim=each.claim.where, why=each.why) for each in ownership.dropped
        ),
        unmatched=tuple(Place(**_place(entry)) for entry in ownership.unmatched),
        disputed=tuple(
            DisputedPath(
                **_place(each.entry),
                claims=tuple(ClaimText(claim=claim.where, text=claim.text) for claim in each.claims),
            )
            for each in ownership.disputed
        ),
        clashes=ownership.clashes,
        unused=tuple(claim.where for claim in ownership.unused),
        notes=tuple(notes),
        files=tuple(
            FileVerdict(
                path=each.entry.path,
                target=each.entry.target,
                verdict=each.verdict,
                claims=tuple(claim.where for claim in each.claims),
            )
            for each in found.files
        ),
        missing=tuple(found.missing),
    )


def _place(entry: SdkEntry) -> dict[str, str]:
    return {"path": entry.path, "artifact": entry.artifact, "component": entry.component, "target": entry.target}


def _nearest(path: str, paths: Iterable[str]) -> str | None:
    """The path that was probably meant: of the same name elsewhere, else one that is alike."""
    name = posixpath.basename(path)
    same = sorted(each for each in paths if posixpath.basename(each) == name)
    return nearest(path, same or paths) or next(iter(same), None)
