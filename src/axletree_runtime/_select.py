"""What to ask pip for on a host: the selector's extras for its GPUs, and the distributions that they bring."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ._families import Wanted, choose, find_family, find_target_family, wanted_here

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ._sdk import Sdk, SdkPackage


@dataclass(frozen=True)
class Selection:
    """What is to be installed, explained."""

    requirement: str
    """``rocm[device-gfx942,devel]==7.1.0``."""
    extras: tuple[str, ...]
    dists: tuple[str, ...]
    """All distributions that it installs, the selector first."""
    family: str
    targets: tuple[str, ...]
    by: str
    """What decided: ``environment``, ``detection``, ``default`` or ``--for``."""
    reasons: tuple[str, ...]

    def as_json(self) -> dict[str, Any]:
        """The same for programs."""
        return {name: list(value) if isinstance(value, tuple) else value for name, value in vars(self).items()}


def select(sdk: Sdk, extras: Sequence[str], *, named: Sequence[str] = ()) -> Selection:
    """Extras in which what is for single GPUs stands for the GPUs that are wanted.

    Args:
        sdk: the SDK.
        extras: what is asked for: ``libraries``, ``devel``. An extra for a family or target stays as it is.
        named: families or targets; none: those of this host.

    Raises:
        ValueError: there is no such extra, family or target; the text has the choices.
    """
    known = sdk.extras()
    unknown = [extra for extra in extras if extra not in known]
    if unknown:
        raise ValueError(
            f"{sdk.file.dist} does not provide these extras: {', '.join(unknown)}; available: {', '.join(known)}"
        )
    wanted = _named(sdk, named) if named else wanted_here(sdk)
    reasons = list(wanted.reasons)
    chosen: list[str] = []
    for extra in extras:
        packages = _for_gpus(sdk, extra)
        if not packages:
            chosen.append(extra)
            continue
        for each, reason in choose_packages(sdk, packages, wanted):
            chosen.append(each.extra)
            reasons.append(reason)
    extras = tuple(dict.fromkeys(chosen))
    return Selection(
        requirement=sdk.requirement(list(extras)),
        extras=extras,
        dists=_dists(sdk, extras),
        family=find_target_family(sdk.file, wanted)[0],
        targets=wanted.targets,
        by=wanted.by,
        reasons=tuple(dict.fromkeys(reasons)),
    )


def _named(sdk: Sdk, names: Sequence[str]) -> Wanted:
    families = list(dict.fromkeys(find_family(sdk.file, name, "--for") for name in names))
    targets = tuple(dict.fromkeys(target for family in families for target in sdk.file.families[family]))
    reason = f"set by --for {','.join(names)}"
    return Wanted(targets, families[0] if len(families) == 1 else "", "--for", (reason,))


def _for_gpus(sdk: Sdk, extra: str) -> list[SdkPackage]:
    """Packages with GPU code of which an extra wants one; none where the extra names its package itself."""
    gpus = [each for each in sdk.file.packages if each.targets]
    if extra == "device":
        return gpus
    groups = {each.package for each in sdk.file.packages if each.extra == extra and not each.targets}
    return [each for each in gpus if each.package in groups]


def choose_packages(sdk: Sdk, packages: list[SdkPackage], wanted: Wanted) -> list[tuple[SdkPackage, str]]:
    """The package of each group for all that is wanted; where there is none, as few as serve it together."""
    groups: dict[str, list[SdkPackage]] = {}
    for each in packages:
        groups.setdefault(each.package, []).append(each)
    found: list[tuple[SdkPackage, str]] = []
    for group in groups.values():
        choice = choose(sdk.file, group, wanted)
        found += [(choice.package, reason) for reason in choice.reasons if choice.package]
        while choice.missing:
            left = choice.missing
            choice = choose(sdk.file, group, Wanted(left))
            if choice.missing == left:  # nothing has code for any of them
                break
            found += [(choice.package, reason) for reason in choice.reasons if choice.package]
    return found


def _dists(sdk: Sdk, extras: Sequence[str]) -> tuple[str, ...]:
    """What the selector with these extras installs: its own pins, as the builder writes them."""
    chosen = [each for each in sdk.file.packages if each.extra in extras or (not each.extra and not each.targets)]
    if "device-all" in extras:
        chosen += [each for each in sdk.file.packages if len(each.targets) == 1]
    groups = {each.package for each in chosen if each.targets}
    chosen += [each for each in sdk.file.packages if each.package in groups and not each.targets]
    return (sdk.file.dist, *sorted({each.dist for each in chosen}))
