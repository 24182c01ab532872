"""Which command lines install what was published: those of the variants that are there, each set in one of its own."""

from __future__ import annotations

import os
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Literal

import msgspec

from axletree.core.units import some_of
from axletree.host.files import file_errors
from axletree.host.wheels import open_wheel
from axletree.package.closure import OwnWheel, closures
from axletree.package.index import read_index
from axletree.package.install import conda_commands, wheel_commands
from axletree.package.wheel.metadata import parse_metadata
from axletree.package.wheel.names import parse_wheel_name
from axletree.plan.actions.listing import ListingFacts
from axletree.plan.actions.spec import facts_of
from axletree.plan.packaging import LISTINGS, root_of
from axletree.view.report_data import InstallCommand

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from axletree.core.records import StageRecord
    from axletree.core.values import StageId
    from axletree.plan.graph import Plan

Kind = Literal["index", "channel"]
Place = tuple[Kind, str]
"""What lists packages, and the root that it is in."""
_KINDS: dict[str, Kind] = {"index": "index", "channel": "channel"}
"""Action that lists packages -> what it makes; archives are for no installer."""
_SHOWN = 2


class InstallGroup(msgspec.Struct, frozen=True, kw_only=True):
    """Packages that one environment can hold."""

    variants: tuple[str, ...]
    """Whose packages they are."""
    files: dict[str, str]
    """Package -> its file, relative to the root: two variants may have one version of it, but other files."""


def wanted(plan: Plan, published: Mapping[StageId, StageRecord]) -> dict[Place, list[InstallGroup]]:
    """What can be installed from each place: variants whose files of a package differ can't be together.

    Args:
        plan: the run's.
        published: stages that list packages and whose packages are in the output folder now.
    """
    listings = [stage for stage in plan.stages.values() if stage.action in LISTINGS]
    found: dict[Place, list[InstallGroup]] = {}
    for variant in plan.variants:
        mine = [stage for stage in listings if variant in stage.variants]
        lacking = {root_of(stage) for stage in mine if stage.id not in published}
        for stage in mine:
            kind, root = _KINDS.get(stage.action), root_of(stage)
            if root not in lacking and kind is not None:
                names = [file.filename for file in facts_of(published[stage.id], ListingFacts).files]
                files = {_package(name): name for name in names}
                _join(found.setdefault((kind, root), []), InstallGroup(variants=(variant,), files=files))
    return found


def _package(filename: str) -> str:
    """The package that a file is of, a wheel or a conda package."""
    name = PurePosixPath(filename).name
    return name.rsplit("-", 2)[0] if name.endswith(".conda") else parse_wheel_name(name).project


def _join(groups: list[InstallGroup], new: InstallGroup) -> None:
    """Put a variant's packages to the first others that have no other file of one of them.

    Where each has a package that the other lacks, they may exclude each other, as pytorch-cpu and pytorch-gpu do.
    """
    for at, group in enumerate(groups):
        nested = group.files.keys() <= new.files.keys() or new.files.keys() <= group.files.keys()
        if nested and all(group.files.get(name, file) == file for name, file in new.files.items()):
            groups[at] = InstallGroup(variants=group.variants + new.variants, files={**group.files, **new.files})
            return
    groups.append(new)


def install_commands(out: Path, places: Mapping[Place, Sequence[InstallGroup]]) -> tuple[InstallCommand, ...]:
    """Command lines that install what was built, and nothing else of the same names.

    Args:
        out: the output folder.
        places: what can be installed from each.

    Raises:
        IntegrityError: a page of a root, or the metadata of a wheel there, can't be understood.
        HostError: it can't be read.
    """
    commands: list[InstallCommand] = []
    for (kind, root), groups in places.items():
        folder = Path(os.path.normpath(out.absolute() / root))
        for group in groups:
            named = folder.name if root == "." else root  # the output folder itself says nothing by a dot
            what = named if len(groups) == 1 else some_of(group.variants, _SHOWN)
            if kind == "channel":
                called = [
                    PurePosixPath(file).name.removesuffix(".conda").rsplit("-", 2) for file in group.files.values()
                ]
                packages = [(name, version, build) for name, version, build in called]
                texts = {what: conda_commands((folder / "conda").as_uri(), packages)}
            else:
                texts = _wheels(folder, _others(out, places, group, but=root), group, what)
            commands += [
                InstallCommand(tool=tool, what=label, command=command)
                for label, found in texts.items()
                for tool, command in found.items()
            ]
    return tuple(commands)


def _wheels(folder: Path, others: Sequence[Path], group: InstallGroup, what: str) -> dict[str, dict[str, str]]:
    """What it is for -> client -> command."""
    own = {name: folder / file for name, file in group.files.items()}
    found = closures(offers_of(own.values()), Root(folder, others).find)
    return {f"{what}, {each.target}" if len(found) > 1 else what: wheel_commands(each) for each in found}


def _others(out: Path, places: Mapping[Place, Sequence[InstallGroup]], group: InstallGroup, *, but: str) -> list[Path]:
    """Wheels of the same variants in other roots."""
    return [
        Path(os.path.normpath(out.absolute() / root / file))
        for (kind, root), groups in places.items()
        if kind == "index" and root != but
        for each in groups
        if set(each.variants) & set(group.variants)
        for file in each.files.values()
    ]


class Root:
    """The wheels of an index root, and some of others, by distribution: read when they are asked for."""

    def __init__(self, folder: Path, others: Iterable[Path] = ()) -> None:
        """Read nothing yet.

        Args:
            folder: the root, absolute.
            others: wheels elsewhere.
        """
        self.folder = folder
        self.others = tuple(others)

    def find(self, project: str) -> list[OwnWheel]:
        """Its wheels of a distribution (normalised name).

        Raises:
            IntegrityError: its page, or the metadata of a wheel, can't be understood.
            HostError: it can't be read.
        """
        page = self.folder / "simple" / project / "index.json"
        lines = read_index(_read(page), file=str(page)) if page.exists() else ()
        here = [self.folder / line.path for line in lines if line.filename.endswith(".whl") and not line.yanked]
        there = [path for path in self.others if parse_wheel_name(path.name).project == project]
        return offers_of(path for path in (*there, *here) if path.exists())


def offers_of(paths: Iterable[Path]) -> list[OwnWheel]:
    """Wheels on disk, with what they require.

    Raises:
        IntegrityError: the metadata of one can't be understood.
        HostError: it can't be read.
    """
    return list(_offers(paths))


def _offers(paths: Iterable[Path]) -> Iterator[OwnWheel]:
    for path in paths:
        beside = path.with_name(f"{path.name}.metadata")  # quicker than the directory of an archive of 10,000 members
        known = parse_metadata(_read(beside), file=str(beside)) if beside.exists() else open_wheel(path).metadata
        yield OwnWheel(
            filename=path.name,
            url=Path(os.path.normpath(path.absolute())).as_uri(),
            requires=known.requires,
            requires_python=known.get("Requires-Python"),
        )


def _read(path: Path) -> bytes:
    with file_errors(path):
        return path.read_bytes()
