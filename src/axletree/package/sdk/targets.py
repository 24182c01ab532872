"""GPU targets and how they are grouped: which packages for families and for single targets an SDK gets.

A target belongs to a sub-family and a family, near to far: ``gfx1151`` -> ``gfx115x`` -> ``gfx11`` (the names are those
of AMD's rocm-bootstrap). They follow from the digits of its name, so a GPU that is in no table yet has them too.
NVIDIA's are grouped by major compute capability: ``sm_90`` -> ``sm_9x``.

TheRock calls groups by the digits that their members share and by what they are: ``gfx94X-dcgpu`` (data center),
``gfx103X-dgpu`` (discrete), ``gfx103X-igpu`` (integrated), ``gfx110X-all``. These are names of families here too.
"""

from __future__ import annotations

import re
from functools import partial
from typing import TYPE_CHECKING, Literal

import msgspec

from axletree.core.errors import IntegrityError, Problem, UsageError
from axletree.core.shipped import read_table, shipped_file
from axletree.recipe.faults import suggestion

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from axletree.package.sdk.manifest import Targets

Kind = Literal["integrated", "discrete", "datacenter"]
Maker = Literal["hip", "nvidia"]

_GFX = re.compile(r"gfx([1-9]\d{0,2})([0-9a-f])([0-9a-f])")
_SM = re.compile(r"sm_?([1-9]\d{0,2})(\d)[af]?")
_GROUP = re.compile(r"(gfx[0-9a-f]{2,5})(x?)-(all|dgpu|igpu|dcgpu)")
_EVERY = re.compile(r"(dgpu|igpu|dcgpu)-all")
_FAMILY = re.compile(r"gfx\d{1,3}(?:_[0-9a-f])?|gfx11[0-9a-f]x|sm_\d{1,3}x")
_KINDS: dict[str, frozenset[Kind]] = {
    "all": frozenset({"integrated", "discrete", "datacenter"}),
    "dgpu": frozenset({"discrete", "datacenter"}),
    "igpu": frozenset({"integrated"}),
    "dcgpu": frozenset({"datacenter"}),
}
_X_NAMES = 11
"""The major number whose sub-families end with ``x`` (``gfx115x``); those of others are ``gfx10_3``."""


_NOT_BUILT = "the name matches no GPU target that was built"


class GpuTarget(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A GPU target of AMD."""

    name: str
    number: tuple[int, int, int]
    """Major, minor, stepping."""
    kind: Kind
    products: tuple[str, ...] = ()
    """Some of those that have it."""
    also: tuple[str, ...] = ()
    """Other names of the same."""


class TargetTable(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What ``backends/data/amd-targets.toml`` holds."""

    target: tuple[GpuTarget, ...]

    def find(self, name: str) -> GpuTarget | None:
        """A target by its name, or by another name of it."""
        return next((each for each in self.target if name == each.name or name in each.also), None)


class Selection(msgspec.Struct, frozen=True, kw_only=True):
    """Which packages for GPUs an SDK gets, and by which names one can ask for them."""

    targets: tuple[str, ...]
    """Those that were built, in order: each gets a package."""
    families: dict[str, tuple[str, ...]]
    """Family that gets a package -> its targets. One that would hold a single target's code, or the same as another
    family's, gets none."""
    choices: dict[str, tuple[str, ...]]
    """Every name that can be chosen -> the targets that were built and that it stands for."""
    hierarchy: dict[str, tuple[str, ...]]
    """Each known target, built or not -> sub-family, family."""
    default: str = ""
    """What is installed where nothing else is known: a family or a target; empty where there is no GPU code."""
    apart: tuple[str, ...] = ()
    """Families that get no package, since their targets have different files under one path."""


def decode_targets(data: bytes, *, file: str) -> TargetTable:
    """Read the table.

    Raises:
        IntegrityError: it is not in its form, a target is there twice, or a number is not that of the name.
    """
    table = read_table(data, TargetTable, file=file, wrong="the file is not a valid table of targets")
    names = [name for each in table.target for name in (each.name, *each.also)]
    problems = [
        Problem(file=file, key=name, message="the target is listed twice") for name in {*names} if names.count(name) > 1
    ]
    problems += [
        Problem(file=file, key=each.name, message=f"the number {each.number} does not match the target's name")
        for each in table.target
        if number_of(each.name) != each.number
    ]
    if problems:
        raise IntegrityError(*problems)
    return table


AMD_TARGETS = shipped_file("amd-targets.toml", decode_targets)
"""The table that ships."""


def bare_target(text: str) -> str:
    """The target that a name stands for, in small letters and without features.

    ``gfx90a:sramecc+:xnack-``, ``amdgcn-amd-amdhsa--gfx90a`` and ``hipv4-amdgcn-amd-amdhsa--gfx90a:xnack-`` give
    ``gfx90a``; ``sm_90a`` and ``sm90`` give ``sm_90``. Anything else stays, without what is behind a colon.
    """
    name = text.strip().partition(":")[0].rpartition("--")[2].lower()
    found = _SM.fullmatch(name)
    return f"sm_{found[1]}{found[2]}" if found else name


def number_of(name: str) -> tuple[int, int, int] | None:
    """Major, minor and stepping of an AMD target's name: (9, 0, 10) of ``gfx90a``; ``None`` of any other name."""
    found = _GFX.fullmatch(name)
    return (int(found[1]), int(found[2], 16), int(found[3], 16)) if found else None


def is_target(name: str) -> bool:
    """Whether a name is that of one GPU, known or new."""
    return number_of(name) is not None or bool(_SM.fullmatch(name))


def hierarchy(name: str) -> tuple[str, ...]:
    """The groups of a target, near to far: (``gfx115x``, ``gfx11``); () of what is no target."""
    number = number_of(name)
    if number is not None:
        major, minor = number[0], number[1]
        near = f"gfx{major}{minor:x}x" if major == _X_NAMES else f"gfx{major}_{minor:x}"
        return (near, f"gfx{major}")
    found = _SM.fullmatch(name)
    return (f"sm_{found[1]}x",) if found else ()


def order_of(name: str) -> tuple[object, ...]:
    """A key that sorts targets by their numbers, and other names behind them."""
    number = number_of(name)
    if number is not None:
        return (0, *number, name)
    found = _SM.fullmatch(name)
    return (1, int(found[1]), int(found[2]), 0, name) if found else (2, 0, 0, 0, name)


def members(
    family: str, targets: Iterable[str], table: TargetTable, groups: Mapping[str, tuple[str, ...]] | None = None
) -> tuple[str, ...]:
    """Those of some targets that a name stands for: a target, sub-family, family, TheRock's group or one of ``groups``.

    Upper and lower case are the same: names of distributions have small letters only.
    """
    known = {name.lower(): tuple(inner) for name, inner in (groups or {}).items()}
    return tuple(sorted(_members(family, tuple(targets), table, known, frozenset()), key=order_of))


def _members(
    family: str,
    targets: tuple[str, ...],
    table: TargetTable,
    groups: Mapping[str, tuple[str, ...]],
    seen: frozenset[str],
) -> frozenset[str]:
    name = bare_target(family)
    found = {each for each in targets if name == each or name in hierarchy(each)}
    real = table.find(name)
    if real is not None and real.name in targets:
        found.add(real.name)
    found.update(each for each in targets if _in_group(each, name, table))
    for inner in groups.get(name, ()) if name not in seen else ():
        found |= _members(inner, targets, table, groups, seen | {name})
    return frozenset(found)


def kind_of(name: str, table: TargetTable) -> Kind:
    """What kind of GPU a target is; a new one is taken for a discrete one."""
    known = table.find(name)
    return known.kind if known is not None else "discrete"


def is_family(name: str) -> bool:
    """Whether a name is of the form of a sub-family, a family or one of TheRock's groups."""
    lowered = name.lower()
    return any(form.fullmatch(lowered) for form in (_FAMILY, _GROUP, _EVERY))


def select_targets(
    built: Iterable[str],
    section: Targets,
    table: TargetTable,
    *,
    families: Iterable[str] = (),
    rivals: Iterable[frozenset[str]] = (),
) -> Selection:
    """Decide which packages for GPUs there are.

    Each sub-family gets one if more than one of its targets was built; so does each of the manifest's groups, each
    group that artifacts were made for, and each that is asked for, a family (``gfx9``) too. Where two would hold the
    same targets, the one that is further ahead in this order stays: asked for, of the input, of the manifest,
    sub-family. A family whose targets have different files under one path gets a package only if it is asked for.

    Args:
        built: what GPU code and artifacts are for, features included: ``gfx90a:xnack-``, ``gfx110X-all``. Names of
            generic code and other words are left out.
        section: of the manifest.
        table: of AMD's targets.
        families: that shall get a package beside the others.
        rivals: targets and families of which artifacts bring different files under one path.

    Raises:
        UsageError: a family that is asked for, or the manifest's default, stands for no target that was built.
    """
    names = list(dict.fromkeys(built))
    bare = {bare_target(name) for name in names}
    targets = tuple(sorted((name for name in bare if is_target(name)), key=order_of))
    groups = {name: tuple(inner) for name, inner in section.groups.items()}
    asked = tuple(families)
    ofinput = [name for name in names if bare_target(name) not in targets and is_family(name)]
    nearest = [hierarchy(name)[0] for name in targets]
    candidates = [*asked, *ofinput, *groups, *nearest] if section.families else list(asked)

    def inside(name: str) -> tuple[str, ...]:
        return members(name, targets, table, groups)

    wishes = (*asked, section.default) if section.default and targets else asked
    hint = partial(_known_hint, targets=targets, groups=groups)
    problems = [Problem(key=name, message=_NOT_BUILT, hint=hint(name)) for name in wishes if not inside(name)]
    if problems:
        raise UsageError(*problems)
    sides = [[inside(name) for name in group] for group in rivals]
    chosen, apart = _choose({name: inside(name) for name in candidates}, asked, sides)
    every = dict.fromkeys([*targets, *chosen, *ofinput, *groups, *_names_of(targets)])
    return Selection(
        targets=targets,
        families=dict(sorted(chosen.items(), key=lambda item: (*map(order_of, item[1][:1]), item[0]))),
        choices={name: holds for name in every if (holds := inside(name))},
        hierarchy=_hierarchies(targets, section, table),
        default=section.default if targets and section.default not in {"", *apart} else _default(targets, chosen),
        apart=apart,
    )


def _choose(
    candidates: Mapping[str, tuple[str, ...]], asked: Iterable[str], sides: Iterable[Sequence[Iterable[str]]]
) -> tuple[dict[str, tuple[str, ...]], tuple[str, ...]]:
    """Families that get a package, and those that get none for the files of their targets."""
    chosen: dict[str, tuple[str, ...]] = {}
    apart: list[str] = []
    for name, holds in candidates.items():
        if len(holds) > 1 and holds not in chosen.values():
            if name in asked or not any(_apart(holds, group) for group in sides):
                chosen[name] = holds
            else:
                apart.append(name)
    return chosen, tuple(apart)


def _apart(holds: Iterable[str], sides: Iterable[Iterable[str]]) -> bool:
    """Whether targets are on more than one of the sides that have different files under one path."""
    return sum(not {*side}.isdisjoint(holds) for side in sides) > 1


def _in_group(target: str, name: str, table: TargetTable) -> bool:
    """Whether one of TheRock's groups has a target of AMD."""
    if number_of(target) is None:
        return False
    if every := _EVERY.fullmatch(name):
        return kind_of(target, table) in _KINDS[every[1]]
    found = _GROUP.fullmatch(name)
    if found is None:
        return False
    stem, open_end, kind = found.groups()
    fits = target[:-1] == stem if open_end else target == stem
    return fits and kind_of(target, table) in _KINDS[kind]


def _names_of(targets: Iterable[str]) -> Iterator[str]:
    """Names of groups that targets may belong to."""
    for target in targets:
        yield from hierarchy(target)
    for target in targets:
        if number_of(target) is not None:
            yield from (f"{target[:-1]}X-{word}" for word in _KINDS)
            yield from (f"{target}-{word}" for word in _KINDS)


def _hierarchies(targets: Iterable[str], section: Targets, table: TargetTable) -> dict[str, tuple[str, ...]]:
    known = [each.name for each in table.target] if section.table == "amd" else []
    return {name: hierarchy(name) for name in sorted({*known, *targets}, key=order_of)}


def _default(targets: tuple[str, ...], families: Mapping[str, tuple[str, ...]]) -> str:
    """The family with most targets, of several the one with the newest; else the newest target."""
    if families:
        return max(families, key=lambda name: (len(families[name]), order_of(families[name][-1])))
    return targets[-1] if targets else ""


def _known_hint(name: str, targets: Iterable[str], groups: Mapping[str, tuple[str, ...]]) -> str | None:
    return suggestion(name, {*targets, *groups, *(each for target in targets for each in hierarchy(target))}, "built")
