"""Which GPU targets are wanted, and which of several packages with GPU code serves them: one rule for all who ask.

``select`` asks it of all packages that were built, the runtime of those that are installed.
"""

from __future__ import annotations

import difflib
import os
import re
import sys
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from ._detect import detect, is_on, own_tools, strip_features
from ._host import Host

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ._detect import Detection
    from ._sdk import Sdk, SdkFile, SdkPackage

_GENERIC = {
    "gfx9-generic": ("gfx900", "gfx902", "gfx904", "gfx906", "gfx909", "gfx90c"),
    "gfx9-4-generic": ("gfx940", "gfx941", "gfx942", "gfx950"),
    "gfx10-1-generic": ("gfx1010", "gfx1011", "gfx1012", "gfx1013"),
    "gfx10-3-generic": ("gfx1030", "gfx1031", "gfx1032", "gfx1033", "gfx1034", "gfx1035", "gfx1036"),
    "gfx11-generic": ("gfx1100", "gfx1101", "gfx1102", "gfx1103", "gfx1150", "gfx1151", "gfx1152", "gfx1153"),
    "gfx12-generic": ("gfx1200", "gfx1201"),
}
"""LLVM, AMDGPU usage: generic processors."""
_SM = re.compile(r"(sm|compute)_(\d+)([af]?)")


@dataclass(frozen=True)
class Wanted:
    """GPU targets that a program is to run on."""

    targets: tuple[str, ...]
    """The most important first; none where no GPU was found."""
    family: str = ""
    """The family or target that somebody named."""
    by: str = "default"
    """``environment``, ``detection``, ``default``, or what named it."""
    reasons: tuple[str, ...] = ()


@dataclass(frozen=True)
class Choice:
    """A package for the GPUs that are wanted, explained."""

    package: SdkPackage | None
    reasons: tuple[str, ...]
    missing: tuple[str, ...] = ()
    """Wanted targets that it has no code for."""


def serves(code: str, gpu: str) -> bool:
    """Whether a GPU runs code that was made for a target.

    NVIDIA: code for ``sm_80`` runs on ``sm_86``, that for ``sm_90a`` on nothing else, ``compute_80`` on all later ones.
    """
    code, gpu = strip_features(code), strip_features(gpu)
    made, has = _SM.fullmatch(code), _SM.fullmatch(gpu)
    if not (made and has):
        return code == gpu or gpu in _GENERIC.get(code, ())
    kind, suffix = made[1], made[3]
    compiled, runs = divmod(int(made[2]), 10), divmod(int(has[2]), 10)
    if suffix == "a":
        return compiled == runs
    return compiled <= runs and (kind == "compute" or compiled[0] == runs[0])


def serves_all(package: SdkPackage, gpus: Iterable[str]) -> bool:
    """Whether a package has code for each of some GPUs."""
    return all(_serves_one(package.targets, gpu) for gpu in gpus)


def find_family(sdk: SdkFile, name: str, source: str) -> str:
    """A family or target by its name, whatever its case; a target that has none of its own gives its nearest family.

    Raises:
        ValueError: there is no such one; the text has the choices.
    """
    same = [family for family in sdk.families if _folded(family) == _folded(name)]
    if same:
        return same[0]
    serving = [family for family, targets in sdk.families.items() if _serves_one(targets, strip_features(name).lower())]
    if serving:
        return min(serving, key=lambda family: (len(sdk.families[family]), family))
    near = difflib.get_close_matches(name.lower(), sdk.families, n=1, cutoff=0.6)
    hint = f" (did you mean {near[0]}?)" if near else ""
    raise ValueError(f"{source}={name} is not one of {', '.join(sorted(sdk.families)) or 'no families'}{hint}")


def find_wanted(sdk: SdkFile, host: Host | None = None, *, detection: Detection | None = None) -> Wanted:
    """Targets that a program wants here: what the environment says, else the host's GPUs, else none.

    Raises:
        ValueError: the environment names what the SDK does not have.
    """
    host = host or Host()
    variable = f"{sdk.prefix}_TARGET_FAMILY"
    named = host.environ.get(variable, "").strip()
    family = find_family(sdk, named, variable) if named else ""
    if detection is None:
        detection = detect(sdk, host)
    if not family:
        by = "detection" if detection.targets else "default"
        return Wanted(detection.targets, "", by, detection.reasons)
    targets = sdk.families[family]
    here = tuple(target for target in detection.targets if _serves_one(targets, target))
    reasons = (f"set by {variable}={named}", *detection.reasons)
    return Wanted(here or targets, family, "environment", reasons)


@lru_cache(maxsize=8)
def _wanted_here(sdk: Sdk, _variables: tuple[tuple[str, str], ...]) -> Wanted:
    wanted = find_wanted(sdk.file, detection=detect(sdk.file, tools=own_tools(sdk)))
    if is_on(sdk.setting("VERBOSE")):
        sys.stderr.write("".join(f"{sdk.file.command}: {reason}\n" for reason in wanted.reasons))
    return wanted


def wanted_here(sdk: Sdk) -> Wanted:
    """Targets that this process wants, found again only where variables that decide have changed; see above."""
    deciding = ("HIP_", "ROCR_", "CUDA_", "HSA_OVERRIDE", f"{sdk.file.prefix}_")
    return _wanted_here(sdk, tuple(sorted((k, v) for k, v in os.environ.items() if k.startswith(deciding))))


def find_target_family(sdk: SdkFile, wanted: Wanted) -> tuple[str, str]:
    """The smallest family that has code for what is wanted, and why it is this one.

    An SDK without GPU code has none: empty.
    """
    if wanted.family or not sdk.families:
        return wanted.family, f"set by {wanted.by}" if wanted.family else "this SDK has no GPU families"
    extras = {package.extra for package in sdk.packages if package.targets}
    size = {
        family: (len(targets), not extras & {f"device-{_folded(family)}", f"libraries-{_folded(family)}"}, family)
        for family, targets in sdk.families.items()
    }
    for gpus, what in ((wanted.targets, "has code for"), (wanted.targets[:1], "has code for the first GPU,")):
        fitting = [family for family in size if all(_serves_one(sdk.families[family], gpu) for gpu in gpus)]
        if gpus and fitting:
            return min(fitting, key=size.__getitem__), f"the smallest family that {what} {', '.join(gpus)}"
    default = sdk.default_family or min(size)
    if not wanted.targets:
        return default, "the default because no GPU was found"
    return default, f"the default because this SDK has no code for {', '.join(wanted.targets)}"


def choose(sdk: SdkFile, packages: Sequence[SdkPackage], wanted: Wanted) -> Choice:
    """Of packages with the same libraries for several GPUs the one to use.

    That of the named family; else the smallest that has code for all wanted GPUs; else the one for the first GPU and
    as many others as there can be. Where no GPU is wanted or none is served, the default family, else the one for most.
    """
    ordered = sorted(packages, key=lambda each: (len(each.targets), each.kind != "device", each.dist))
    if not ordered:
        return Choice(None, ("the SDK does not include a package with GPU code",), wanted.targets)
    if wanted.family:
        named = [each for each in ordered if set(each.targets) == set(sdk.families[wanted.family])]
        if named:
            return Choice(named[-1], (f"{named[-1].dist}: set by {wanted.by}",))
    gpus = wanted.targets
    full = [each for each in ordered if gpus and serves_all(each, gpus)]
    if full:
        return Choice(full[0], (f"{full[0].dist}: the smallest package that has code for {', '.join(gpus)}",))
    partly = [each for each in ordered if gpus and serves_all(each, gpus[:1])]
    if partly:
        best = max(partly, key=lambda each: sum(_serves_one(each.targets, gpu) for gpu in gpus))
        missing = tuple(gpu for gpu in gpus if not _serves_one(best.targets, gpu))
        return Choice(best, (f"{best.dist}: has code for {gpus[0]}, but not for {', '.join(missing)}",), missing)
    default = set(sdk.families.get(sdk.default_family, ()))
    usual = next((each for each in ordered if set(each.targets) == default), ordered[-1])
    why = f"no package has code for {', '.join(gpus)}" if gpus else "no GPU was found"
    what = "the package for the default family" if set(usual.targets) == default else "the package for the most targets"
    return Choice(usual, (f"{usual.dist}: {what}, because {why}",), gpus)


def _folded(name: str) -> str:
    """A name of a family as extras have it: ``gfx94X_dcgpu`` -> ``gfx94x-dcgpu``."""
    return re.sub(r"[-_.]+", "-", strip_features(name)).lower()


def _serves_one(targets: Iterable[str], gpu: str) -> bool:
    return any(serves(code, gpu) for code in targets)
