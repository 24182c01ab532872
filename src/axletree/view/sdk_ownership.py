"""Who owns what of an SDK, as text."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from axletree.core.units import format_bytes, plural, some_lines, some_of
from axletree.package.sdk.entries import GENERIC
from axletree.view.tables import printable, render_table

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from axletree.package.sdk.claims import ClaimRef, Ownership
    from axletree.package.sdk.entries import SdkEntry
    from axletree.package.sdk.manifest import Manifest

_SHOWN = 10


def ownership_text(ownership: Ownership, manifest: Manifest, *, width: int) -> str:
    """The claim report: packages, drops, and what is wrong."""
    rows = []
    for package in manifest.package:
        entries = ownership.packages[package.name]
        kind = "devel, without its mirror" if package.kind == "devel" else package.kind
        rows.append((package.name, package.dist, kind, *_amount(entries), _artifacts(entries)))
    headers = ("package", "distribution", "kind", "files", "size", "of")
    parts = [render_table(headers, rows, width=width, right=(3, 4))]
    if ownership.dropped:
        reasons = Counter(each.claim for each in ownership.dropped)
        why = {each.claim: each.why for each in ownership.dropped}
        drops = [
            (claim.where, *_amount([each.entry for each in ownership.dropped if each.claim == claim]), why[claim])
            for claim in sorted(reasons, key=lambda claim: claim.number)
        ]
        parts.append(render_table(("dropped", "files", "size", "why"), drops, width=width, right=(1, 2)))
    parts += _faults(ownership)
    if ownership.unused:
        names = some_of([claim.where for claim in ownership.unused], _SHOWN, separator="; ")
        parts.append(f"Not used for this input: {names}.")
    parts.append(_summary(ownership))
    return printable("\n\n".join(parts))


def answer_text(
    entry: SdkEntry,
    claims: Sequence[ClaimRef],
    excluded: Sequence[tuple[ClaimRef, str]],
    verdict: str,
    manifest: Manifest,
) -> str:
    """Where one entry goes, and why."""
    left = [f"  excluded by {claim.where}: exclude {pattern}" for claim, pattern in excluded]
    size = f", {format_bytes(entry.size)}" if entry.kind == "file" else f" -> {entry.link}" if entry.link else ""
    target = f", {entry.target}" if entry.target != GENERIC else ""
    lines = [entry.path, f"  {entry.kind}{size}, from {entry.artifact} ({entry.component}{target})"]
    if verdict == "unmatched":
        lines += ["  belongs to no package: no claim or drop rule matches it", *left]
        return printable("\n".join(lines))
    first = claims[0]
    if first.package is None:
        lines.append(f"  dropped: {manifest.drop[first.number - 1].why}")
    elif verdict == "disputed":
        lines.append("  claimed by more than one package")
    else:
        package = next(each for each in manifest.package if each.name == first.package)
        devel = next((each.name for each in manifest.package if each.kind == "devel"), None)
        mirror = f", mirrored in {devel}" if devel not in {None, package.name} else ""
        lines.append(f"  belongs to {package.name} ({package.dist}){mirror}")
    for number, claim in enumerate(claims):
        word = "by" if number == 0 or verdict == "disputed" else "not considered:"
        lines.append(f"  {word} {claim.where}: {claim.text}")
    lines += left
    return printable("\n".join(lines))


def _faults(ownership: Ownership) -> Iterator[str]:
    if ownership.unmatched:
        groups: dict[tuple[str, str], list[str]] = {}
        for entry in ownership.unmatched:
            groups.setdefault((entry.artifact, entry.component), []).append(entry.path)
        lines = [f"Not claimed ({len(ownership.unmatched)}):"]
        for (artifact, component), paths in groups.items():
            lines.append(f"  {artifact} ({component}): {plural(len(paths), 'file')}")
            lines += _paths(paths)
        yield "\n".join(lines)
    if ownership.disputed:
        disputes: dict[tuple[ClaimRef, ...], list[str]] = {}
        for each in ownership.disputed:
            disputes.setdefault(each.claims, []).append(each.entry.path)
        lines = [f"Claimed more than once ({len(ownership.disputed)}):"]
        for claims, paths in disputes.items():
            lines += [f"  {claim.where}: {claim.text}" for claim in claims]
            lines += _paths(paths)
        yield "\n".join(lines)
    if ownership.clashes:
        clashes = [f"{clash.path} {clash.why}" for clash in ownership.clashes]
        lines = [f"Duplicates ({len(ownership.clashes)}):"]
        yield "\n".join([*lines, *(f"  {line}" for line in some_lines(clashes, _SHOWN))])


def _paths(paths: Sequence[str]) -> Iterator[str]:
    yield from (f"    {line}" for line in some_lines(paths, _SHOWN))


def _summary(ownership: Ownership) -> str:
    total = sum(len(entries) for entries in ownership.packages.values()) + len(ownership.dropped)
    wrong = len(ownership.unmatched) + len(ownership.disputed) + len(ownership.clashes)
    if not wrong:
        return f"{plural(total, 'entry')}, each in exactly one package."
    return (
        f"{plural(total, 'entry')} in exactly one package, but {wrong} not; assign each of these to one "
        "package, or drop it with a reason."
    )


def _amount(entries: Iterable[SdkEntry]) -> tuple[str, str]:
    there = list(entries)
    return f"{len(there):,}", format_bytes(sum(entry.size for entry in there))


def _artifacts(entries: Iterable[SdkEntry]) -> str:
    sizes: Counter[str] = Counter()
    for entry in entries:
        sizes[entry.artifact] += entry.size
    return some_of([name for name, _ in sizes.most_common()], 4) if sizes else "no files in this input"
