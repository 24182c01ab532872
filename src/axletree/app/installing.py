"""Which command lines install what was published: those of the variants that are there, each set in one of its own."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from axletree.core.units import some_of
from axletree.plan.packaging import LISTINGS, root_of
from axletree.plan.siblings import conda_called
from axletree.view.report_data import InstallCommand

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from axletree.core.values import StageId
    from axletree.plan.graph import Plan
    from axletree.recipe.target import Target

Place = tuple[str, str]
"""What lists packages, ``index`` or ``channel``, and the root that it is in."""
_SHOWN = 2
_CALLS = {
    "index": {
        "pip": "pip install --extra-index-url {index} {wanted}",
        "uv": "uv pip install --extra-index-url {index} {wanted}",
    },
    "channel": {
        "conda": "conda install -c {channel} {wanted}",
        "micromamba": "micromamba install -c {channel} {wanted}",
        "pixi": "pixi workspace channel add {channel} && pixi add {wanted}",
    },
}
"""Kind of index -> client -> how it is called."""


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """Packages that one environment can hold."""

    variants: tuple[str, ...]
    """Whose packages they are."""
    versions: dict[str, str]
    """Package -> what a client is asked for: ``name==version``, for conda ``name=version``."""


def wanted(
    plan: Plan, targets: Iterable[Target], published: Iterable[StageId], *, conda_names: Mapping[str, str]
) -> dict[Place, list[Wanted]]:
    """What can be installed from each place: variants whose versions of a package differ can't be together.

    Args:
        plan: the run's.
        targets: of all its variants.
        published: stages that list packages and whose packages are in the output folder now.
        conda_names: package -> what conda calls the distribution.
    """
    listings = [stage for stage in plan.stages.values() if stage.action in LISTINGS]
    there = set(published)
    found: dict[Place, list[Wanted]] = {}
    for target in targets:
        mine = [stage for stage in listings if target.variant in stage.variants]
        lacking = {root_of(stage) for stage in mine if stage.id not in there}
        for place, versions in _asked(target, conda_names).items():
            if place[1] not in lacking:
                _join(found.setdefault(place, []), Wanted(variants=(target.variant,), versions=versions))
    return found


def _asked(target: Target, conda_names: Mapping[str, str]) -> dict[Place, dict[str, str]]:
    """Place -> package of a variant -> what a client is asked for."""
    found: dict[Place, dict[str, str]] = {}
    for package in target.packages:
        if "wheel" in package.formats:
            found.setdefault(("index", package.index), {})[package.name] = f"{package.name}=={package.version}"
        if package.conda is not None:
            name = conda_called(package, conda_names)
            found.setdefault(("channel", package.index), {})[name] = f"{name}={package.conda.version}"
    return found


def _join(groups: list[Wanted], new: Wanted) -> None:
    """Put a variant's packages to the first others that have no other version of one of them.

    Where each has a package that the other lacks, they may exclude each other, as pytorch-cpu and pytorch-gpu do.
    """
    for at, group in enumerate(groups):
        nested = group.versions.keys() <= new.versions.keys() or new.versions.keys() <= group.versions.keys()
        if nested and all(group.versions.get(name, spec) == spec for name, spec in new.versions.items()):
            groups[at] = Wanted(variants=group.variants + new.variants, versions={**group.versions, **new.versions})
            return
    groups.append(new)


def install_commands(out: Path, places: Mapping[Place, Sequence[Wanted]]) -> tuple[InstallCommand, ...]:
    """Command lines that install what was built.

    Args:
        out: the output folder.
        places: what can be installed from each.
    """
    commands: list[InstallCommand] = []
    for (kind, root), groups in places.items():
        folder = Path(os.path.normpath(out.absolute() / root))
        for group in groups:
            specs = " ".join(f"'{spec}'" for spec in group.versions.values())
            what = root if len(groups) == 1 else some_of(group.variants, _SHOWN)
            for tool, call in _CALLS[kind].items():
                command = call.format(
                    index=(folder / "simple").as_uri(), channel=(folder / "conda").as_uri(), wanted=specs
                )
                commands.append(InstallCommand(tool=tool, what=what, command=command))
    return tuple(commands)
