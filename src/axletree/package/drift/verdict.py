"""From statements to verdicts: a row for each dependency, and where upstream contradicts itself."""

from __future__ import annotations

import itertools
import re
from typing import TYPE_CHECKING, Literal

import msgspec
from packaging.version import Version

from axletree.core.findings import Finding
from axletree.core.grouping import grouped
from axletree.core.units import some_of
from axletree.package.drift import ranges
from axletree.package.drift.channel import Releases
from axletree.package.drift.evidence import UPSTREAM, Evidence, place, share_gpu, share_worlds

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from packaging.ranges import VersionRange


Verdict = Literal[
    "conflict",
    "missing in recipe",
    "recipe looser",
    "recipe tighter",
    "ahead of upstream",
    "behind newest",
    "only in recipe",
    "unknown",
    "same",
]
VERDICTS: tuple[Verdict, ...] = (
    "conflict",
    "missing in recipe",
    "recipe looser",
    "recipe tighter",
    "ahead of upstream",
    "behind newest",
    "only in recipe",
    "unknown",
    "same",
)
"""The gravest first."""
_MOST_PLACES = 6
_WORLD = "cuda"
"""What makes a GPU world: upstream's pins of it are no pins for one world, but the list of them."""
_LISTS = ("ci", "requires", "cmake")
"""Columns whose pins may be for developers, CI and options only."""
_PINNED = re.compile(r"(?:==)?(\d[0-9A-Za-z.!]*?)(?:\.\*)?")


class Judgement(msgspec.Struct, frozen=True, kw_only=True):
    """A verdict and its reason."""

    verdict: Verdict
    why: str
    """One sentence about both sides."""
    optional: bool = False
    """Whether only an extra of upstream requires it; then nothing needs to be done."""


class DriftRow(msgspec.Struct, frozen=True, kw_only=True):
    """Everything known about one dependency."""

    dependency: str
    judgements: tuple[Judgement, ...]
    """The gravest first; each verdict may have several reasons."""
    evidence: tuple[Evidence, ...]
    offer: Releases | None = None

    @property
    def verdicts(self) -> tuple[Verdict, ...]:
        """The verdicts, the gravest first, each once."""
        return tuple(dict.fromkeys(each.verdict for each in self.judgements))

    @property
    def secondary(self) -> bool:
        """Whether upstream only pins, looks for or links it: nothing that is packed is known to need it."""
        return all(each.role == "mention" or (each.role == "pin" and each.column in _LISTS) for each in self.evidence)


def judge(
    evidence: Iterable[Evidence], offers: Mapping[str, Releases], *, worlds: Collection[str], inherits: bool
) -> tuple[DriftRow, ...]:
    """A row for each dependency, those with the gravest verdicts first.

    Args:
        evidence: all statements.
        offers: what can be had of each dependency.
        worlds: the GPU worlds that the recipe is for; empty where it does not say. In others nothing can be missing.
        inherits: whether packages keep upstream's own run requirements.
    """
    by_name = grouped((each.dependency, each) for each in evidence)
    rows = []
    for name, found in by_name.items():
        asked = [each for each in found if each.column == "recipe"]
        upstream = [each for each in found if each.column in UPSTREAM]
        if asked and not upstream and all(each.confidence == "guess" for each in asked):
            continue  # a program of the host that upstream does not speak of
        said = _judgements(asked, upstream, offers.get(name), worlds=worlds, inherits=inherits)
        ordered = sorted(dict.fromkeys(said), key=lambda one: (VERDICTS.index(one.verdict), one.optional))
        rows.append(
            DriftRow(dependency=name, judgements=_settled(ordered), evidence=tuple(found), offer=offers.get(name))
        )
    return tuple(sorted(rows, key=_gravity))


def _settled(ordered: Sequence[Judgement]) -> tuple[Judgement, ...]:
    """Judgements less those that say nothing beside others: "same" where something differs, "unknown" where not."""
    real = [each for each in ordered if each.verdict not in {"same", "unknown"}]
    known = [each for each in ordered if each.verdict == "same"]
    return tuple(real or known or ordered)


def _gravity(row: DriftRow) -> tuple[int, bool, str]:
    worst = min((VERDICTS.index(each.verdict) for each in row.judgements), default=len(VERDICTS))
    return worst, all(each.optional for each in row.judgements), row.dependency.lower()


def _judgements(
    asked: Sequence[Evidence],
    upstream: Sequence[Evidence],
    offer: Releases | None,
    *,
    worlds: Collection[str],
    inherits: bool,
) -> Iterator[Judgement]:
    if asked and not upstream:
        yield Judgement(verdict="only in recipe", why=f"upstream does not mention it; found in {_places(asked)}")
    elif asked and not any(_binds(one, other) for one in asked for other in upstream):
        yield _unbound(asked, upstream)
    for one in asked:
        yield from _against_upstream(one, upstream)
        if offer is not None:
            yield from _against_offer(one, upstream, offer)
    if upstream:
        yield from _missing(asked, upstream, worlds=worlds, inherits=inherits)
    if upstream and not asked and offer is not None:
        yield from _stale(upstream, offer)


def _binds(one: Evidence, other: Evidence) -> bool:
    """Whether what upstream says is about what the recipe asks for: same build, same phase, a version."""
    if other.role not in {"requires", "pin"} or not _share_phase(one, other):
        return False
    return share_gpu(one, other) or (other.role == "pin" and one.dependency == _WORLD)


def _unbound(asked: Sequence[Evidence], upstream: Sequence[Evidence]) -> Judgement:
    mentions = [each for each in upstream if each.role == "mention"]
    if mentions:
        return Judgement(verdict="same", why=f"upstream accepts any version: {_places(mentions)}")
    why = (
        f"upstream ({_places(upstream)}) mentions it only for builds or purposes other than the recipe's "
        f"({_places(asked)})"
    )
    return Judgement(verdict="unknown", why=why)


def _against_upstream(one: Evidence, upstream: Sequence[Evidence]) -> Iterator[Judgement]:
    """What the recipe asks for, against each place upstream that says something of the same build and phase."""
    for others in _groups(one, upstream):
        known = [each for each in others if each.range is not None]
        first = others[0]
        if one.range is None or not known:
            note = f": {first.note}" if first.note else ""
            yield Judgement(verdict="unknown", why=f"{_said(one)} cannot be compared with {_said(first)}{note}")
            continue
        union = _union(known)
        yield from _compare(one, one.range, known, union)


def _groups(one: Evidence, upstream: Sequence[Evidence]) -> Iterator[list[Evidence]]:
    """Statements of one file about one phase: alternatives, of which any may hold."""
    bound = (each for each in upstream if _binds(one, each))
    yield from grouped(((each.column, _file(each), each.phase, each.role), each) for each in bound).values()


def _file(each: Evidence) -> str:
    """A vendored copy is one place, whichever of its files tells."""
    return "" if each.column == "tree" else each.file


def _share_phase(one: Evidence, other: Evidence) -> bool:
    if other.phase == "test":
        return False  # what upstream's CI tests with binds no packager
    return not one.phase or not other.phase or one.phase == other.phase


def _compare(
    one: Evidence, asked: VersionRange, others: Sequence[Evidence], union: VersionRange
) -> Iterator[Judgement]:
    relation = ranges.relate(asked, union)
    theirs = _said_all(others)
    optional = all(each.optional for each in others)
    if relation == "same":
        yield Judgement(verdict="same", why=f"{_said(one)}, {theirs}")
    elif relation == "tighter":
        named = _pinned(one)
        same = others[0].role == "pin" or (named is not None and named in map(_pinned, others))  # 12.0.61 in 12.0.61.*
        if not same:
            yield Judgement(verdict="recipe tighter", why=f"{_said(one)} excludes part of {theirs}", optional=optional)
        else:
            yield Judgement(verdict="same", why=f"{_said(one)} is within {theirs}")
    elif relation == "disjoint":
        above = others[0].role == "pin" and _is_above(asked, others)
        verdict: Verdict = "ahead of upstream" if above else "conflict"
        why = f"{_said(one)} is later than {theirs}" if above else f"{_said(one)} excludes {theirs}"
        yield Judgement(verdict=verdict, why=why, optional=optional)
    else:
        beyond = ranges.describe(asked - union)
        why = f"{_said(one)}; {theirs}" + (f"; the recipe also allows {beyond}" if "!=" not in beyond else "")
        yield Judgement(verdict="recipe looser", why=why, optional=optional)


def _is_above(asked: VersionRange, pins: Iterable[Evidence]) -> bool:
    """Whether what is asked for, which none of the pins allows, is later than all of them."""
    return all((at := _pinned(each)) is not None and ranges.is_above(asked, at) for each in pins)


def _pinned(each: Evidence) -> Version | None:
    """The version that a pin names, or the one that those it names begin with; ``None`` for an open range."""
    found = _PINNED.fullmatch(each.spec)
    return None if found is None else Version(found[1])


def _against_offer(one: Evidence, upstream: Sequence[Evidence], offer: Releases) -> Iterator[Judgement]:
    """What the recipe gets from a channel, against the newest there and against upstream."""
    if one.range is None or one.confidence == "guess":
        return
    newest, shown = offer.versions[-1]
    having = [(version, text) for version, text in offer.versions if version in one.range]
    if not having:
        yield Judgement(
            verdict="conflict", why=f"{_said(one)}; {offer.file} has no such version; its newest is {shown}"
        )
        return
    chosen, text = having[-1]
    if chosen < newest and (one.range & ranges.between(newest, None)).is_empty:
        yield Judgement(verdict="behind newest", why=f"{_said(one)} gets {text}; {offer.file} has {shown}")
    for others in _groups(one, upstream):
        known = [each for each in others if each.range is not None]
        told = known and known[0].role == "pin" and one.range.is_disjoint(_union(known)) and _is_above(one.range, known)
        if known and not told and chosen not in _union(known) and _is_above(ranges.exactly(chosen), known):
            why = f"{_said(one)} gets {text} from {offer.file}; {_said_all(known)}"
            yield Judgement(verdict="ahead of upstream", why=why)


def _stale(upstream: Sequence[Evidence], offer: Releases) -> Iterator[Judgement]:
    """Upstream's own copies and pins, against the newest that can be had."""
    newest, shown = offer.versions[-1]
    for each in upstream:
        pinned = each.role == "pin" and each.phase != "test" and each.range is not None and newest not in each.range
        if pinned and _is_above(ranges.exactly(newest), [each]):
            yield Judgement(verdict="behind newest", why=f"{_said(each)}; {offer.file} has {shown}")


def _missing(
    asked: Sequence[Evidence], upstream: Sequence[Evidence], *, worlds: Collection[str], inherits: bool
) -> Iterator[Judgement]:
    """What upstream requires and the recipe, in that phase and GPU world, does not ask for."""
    needs = [each for each in upstream if each.role == "requires" and each.column != "cmake"]
    for each in needs:
        if any(_share_phase(one, each) and share_gpu(one, each) for one in asked):
            continue
        if worlds and not share_worlds(each.gpus, worlds):
            yield Judgement(verdict="unknown", why=f"the recipe is for different GPUs: {_said(each)}")
            continue
        if each.phase == "run" and inherits:
            yield Judgement(verdict="same", why=f"packages keep upstream's own requirement: {_said(each)}")
        else:
            extra = f" (only with extra {each.optional})" if each.optional else ""
            yield Judgement(verdict="missing in recipe", why=f"{_said(each)}{extra}", optional=bool(each.optional))
    if not asked and not needs:
        copies = [each for each in upstream if each.column in {"vendored", "tree"}]
        if copies:
            yield Judgement(verdict="same", why=f"built from upstream's own copy: {_said(copies[0])}")
        else:
            yield Judgement(verdict="unknown", why=f"no package is known to need it: {_places(upstream)}")


def _union(evidence: Iterable[Evidence]) -> VersionRange:
    found = ranges.NONE
    for each in evidence:
        if each.range is not None:
            found |= each.range
    return found


def _said(each: Evidence) -> str:
    scope = f" for {'/'.join(each.gpus)}" if each.gpus else ""
    return f"{each.spec}{scope} ({_place(each)})"


def _place(each: Evidence) -> str:
    """Where a statement stands, of a wheel only what it is of: its tags say nothing here."""
    return "-".join(each.file.split("-")[:2]) if each.file.endswith(".whl") else place(each)


def _said_all(others: Sequence[Evidence]) -> str:
    specs = list(dict.fromkeys(each.spec for each in others))
    shown = " or ".join(specs[:4]) + (" ..." if len(specs) > 4 else "")
    return f"upstream {shown} ({_place(others[0])})"


def _places(evidence: Sequence[Evidence]) -> str:
    places = list(dict.fromkeys(_place(each) for each in evidence))
    return some_of(places, 3)


def contradictions(evidence: Iterable[Evidence]) -> tuple[Finding, ...]:
    """Where two places upstream say of one dependency what can't both hold.

    Upstream's own check of this kind compares its NCCL pin with the wheel's requirement
    (``validate_nccl_dep_consistency`` in its ``generate_binary_build_matrix.py``).
    """
    by_name = grouped(
        (each.dependency, each)
        for each in evidence
        if each.column in UPSTREAM and each.role != "mention" and each.range is not None and not each.optional
    )
    findings = []
    for name, found in sorted(by_name.items()):
        pairs = [pair for pair in itertools.combinations(found, 2) if _contradict(*pair)]
        places = dict.fromkeys(each for pair in pairs for each in pair)
        if pairs:
            one, other = pairs[0]
            lines = tuple(f"{each.spec}: {place(each)}: {each.text}" for each in places)
            findings.append(
                Finding(
                    rule="drift/contradiction",
                    severity="warning",
                    where=place(one),
                    message=f"upstream specifies two versions of {name}: {_said(one)} and {_said(other)}",
                    fix="check which version the build uses; the other may be outdated",
                    evidence=lines[:_MOST_PLACES],
                )
            )
    return tuple(findings)


def _contradict(one: Evidence, other: Evidence) -> bool:
    if one.range is None or other.range is None or not share_gpu(one, other):
        return False
    if one.file == other.file and one.column == other.column:
        return False  # alternatives of one file: branches, markers
    if (one.when and other.when and one.when != other.when) and not (one.gpus and other.gpus):
        return False  # under conditions that may exclude each other
    return one.range.is_disjoint(other.range)
