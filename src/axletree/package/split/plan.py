"""Split a wheel into several distributions: which file goes where and what changes in it, as values.

Nothing is inflated but the few files that change: members are taken over compressed, with the hashes of the wheel's
RECORD. Whether the parts still find each other's libraries is checked on what was written
(:mod:`axletree.package.split.proof`), when everything is read once anyway.
"""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING

import msgspec

from axletree.binary.elf.facts import ElfFacts
from axletree.binary.zip.records import EARLIEST
from axletree.core.errors import IntegrityError, Problem
from axletree.core.grouping import grouped
from axletree.core.values import canonical_json, digest_of
from axletree.package.bundled import is_bundled
from axletree.package.sbom.read import FOLDER as SBOM_FOLDER
from axletree.package.sbom.write import SBOM_NAME, Component, wheel_sbom
from axletree.package.split.assign import assign_files
from axletree.package.split.changes import change_files, with_check
from axletree.package.split.check import marker_path, render_check, render_marker
from axletree.package.split.metadata import part_metadata, share_requirements, split_version
from axletree.package.split.report import SplitFile, SplitReport, report_files, report_package, report_rules
from axletree.package.split.source import NATIVE
from axletree.package.wheel.info import WheelInfo, carry_dist_info
from axletree.package.wheel.metadata import Metadata
from axletree.package.wheel.names import WheelName, dist_info_folder, render_wheel_name, stem
from axletree.package.wheel.record import decode_hash, encode_hash
from axletree.package.wheel.repack import packed_members
from axletree.package.wheel.writer import Member, Packed

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from axletree.package.libraries.providers import Provider
    from axletree.package.split.changes import Changed
    from axletree.package.split.rules import OutputPackage, SplitRules
    from axletree.package.split.source import SplitSource

_LARGE = 64 << 20
_LICENCE = re.compile(r"licenses/.+|(LICEN[CS]E|COPYING|NOTICE|AUTHORS)[^/]*", re.IGNORECASE)


class SplitPart(msgspec.Struct, frozen=True, kw_only=True):
    """A wheel to be written."""

    name: WheelName
    metadata: Metadata
    wheel_info: WheelInfo
    members: tuple[Member, ...]
    siblings: tuple[str, ...]
    """Other parts that it requires."""
    independent: bool
    """Whether it must fit any Python."""
    identity: str
    """Stands for what the part holds and requires: parts that fit together know each other by it."""


class SplitPlan(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that a split makes, and the proof of it."""

    parts: tuple[SplitPart, ...]
    report: SplitReport
    origins: dict[str, str]
    """Path in a part -> path in the original, where it is another."""
    before: dict[str, ElfFacts]
    """Path in a part -> facts of a relocated file, as it was in the original."""


def plan_split(
    source: SplitSource, rules: SplitRules, *, providers: Sequence[Provider] = (), epoch: int = EARLIEST
) -> SplitPlan:
    """Plan the parts of a wheel. Each gets a bill of materials (PEP 770) beside those that the original has.

    Args:
        source: the wheel.
        rules: what goes where.
        providers: who owns which libraries: tells what the wheel bundles of others.
        epoch: date of the bills.

    Raises:
        IntegrityError: the rules are for another distribution, leave a file without a place, give two the same one, or
            a file is not as an edit expects it. Names everything that is wrong.
    """
    if source.name.project != rules.name:
        message = f"the file is a wheel of {source.name.project}, but these rules are for {rules.name}"
        raise IntegrityError(Problem(file=source.filename, message=message))
    return _Planner(source, rules, tuple(providers), epoch).plan()


class _Planner:
    """One wheel and its rules, and what follows from both."""

    def __init__(self, source: SplitSource, rules: SplitRules, providers: tuple[Provider, ...], epoch: int) -> None:
        self.source = source
        self.rules = rules
        self.providers = providers
        self.epoch = epoch
        module = rules.version_module
        text = (
            source.read(module).decode("utf-8", "replace") if module is not None and module in source.entries else None
        )
        self.version = split_version(source.metadata.version, module=text, label=rules.label)
        packed = packed_members(
            source.buffer,
            source.entries.values(),
            source.record,
            folder=source.dist_info,
            archive=source.filename,
        )
        self.members = {member.path: member for member in packed}
        inside = f"{source.dist_info}/"
        content = [path for path in self.members if not path.startswith(inside)]
        self.info = [path for path in self.members if path.startswith(inside)]
        self.places = assign_files(content, rules, soname=source.soname)
        self.by_package = grouped((place.package, place) for place in self.places if place.package is not None)
        filled = self.by_package.keys() | {rules.name}
        self.packages = tuple(package for package in rules.package if package.meta or package.name in filled)
        self.names = tuple(package.name for package in self.packages)
        self.shares = share_requirements(source.metadata, self.packages, main=rules.name)

    def plan(self) -> SplitPlan:
        kept = [place for places in self.by_package.values() for place in places]
        changes = change_files(self.source, self.rules, kept)
        parts = {each.name: self.part(each, changes) for each in self.packages if each.name != self.rules.name}
        if self.rules.check is not None and (required := self.required(self.rules.main)):
            check = render_check(
                name=self.rules.name,
                version=self.version,
                file=self.rules.check.file,
                markers=self.rules.check.markers,
                parts={name: parts[name].identity for name in required},
            )
            changes = with_check(self.source, changes, self.rules.check.file, check)
        parts[self.rules.name] = self.part(self.rules.main, changes)
        ordered = tuple(parts[name] for name in self.names)
        return SplitPlan(
            parts=ordered,
            report=self.report(ordered, changes),
            origins={place.target: place.path for place in kept if place.target != place.path},
            before={
                place.target: change.before
                for place in kept
                if (change := changes.get(place.path)) is not None and change.before is not None
            },
        )

    def required(self, package: OutputPackage) -> tuple[str, ...]:
        """All parts that a package requires, directly or not, in the order of the rules."""
        by_name = {each.name: each for each in self.packages}
        found: set[str] = set()
        waiting = list(self.siblings(package))
        while waiting:
            name = waiting.pop()
            if name not in found:
                found.add(name)
                waiting += self.siblings(by_name[name])
        return tuple(name for name in self.names if name in found - {package.name})

    def part(self, package: OutputPackage, changes: Mapping[str, Changed]) -> SplitPart:
        siblings = self.siblings(package)
        metadata = part_metadata(
            self.source.metadata,
            package,
            main=self.rules.name,
            version=self.version,
            siblings=siblings,
            shares=self.shares,
        )
        members = (*self.content_of(package, changes), *self.dist_info_of(package))
        native = any(NATIVE.search(member.path) or member.executable for member in members)
        name = self.wheel_name(package, native=native)
        identity = _identity(metadata, members)
        return SplitPart(
            name=name,
            metadata=metadata,
            wheel_info=WheelInfo(tags=name.tags, purelib=package.meta or self.source.wheel_info.purelib),
            members=(*members, *self.marker(package, identity), self.sbom(package, metadata, members)),
            siblings=siblings,
            independent=package.independent,
            identity=identity,
        )

    def siblings(self, package: OutputPackage) -> tuple[str, ...]:
        """The parts that a package requires, of those that are made."""
        if package.meta:
            return tuple(each.name for each in self.packages if not each.meta)
        return tuple(name for name in package.requires if name in self.names)

    def wheel_name(self, package: OutputPackage, *, native: bool) -> WheelName:
        """A part keeps the platform if it has files for one, and the Python unless it is independent of it."""
        original = self.source.name
        kept = not (package.independent or package.meta)
        return WheelName(
            project=package.name,
            version=self.version,
            python=original.python if kept else "py3",
            abi=original.abi if kept else "none",
            platform=original.platform if kept or native else "any",
        )

    def content_of(self, package: OutputPackage, changes: Mapping[str, Changed]) -> Iterator[Member]:
        """The files of a package at their new places; those of a ``.data`` folder in the package's own."""
        data = f"{self.source.dist_info.removesuffix('.dist-info')}.data/"
        own = f"{stem(package.name, self.version)}.data/"
        for path, _, _, target in self.by_package.get(package.name, ()):
            member = self.members[path]
            place = own + target[len(data) :] if target.startswith(data) else target
            change = changes.get(path)
            if change is not None:
                yield Member(path=place, data=change.data, executable=member.executable)
            elif place == path:
                yield member
            else:
                yield Member(path=place, data=member.data, size=member.size, executable=member.executable)

    def dist_info_of(self, package: OutputPackage) -> Iterator[Member]:
        """What of the metadata folder a package gets: the main one all, the others the licences."""
        folder = dist_info_folder(package.name, self.version)
        source = self.source.dist_info
        own = f"{folder}/{SBOM_FOLDER}/{SBOM_NAME}"
        for path, target in carry_dist_info(self.info, source=source, target=folder).items():
            if package.name == self.rules.name or (not package.meta and _LICENCE.fullmatch(path[len(source) + 1 :])):
                # A bill of an earlier repair stays beside the new one.
                kept = f"{folder}/{SBOM_FOLDER}/{source.removesuffix('.dist-info')}.cdx.json"
                yield msgspec.structs.replace(self.members[path], path=kept if target == own else target)

    def sbom(self, package: OutputPackage, metadata: Metadata, members: Sequence[Member]) -> Member:
        """The bill of materials of a package: sources whose licences travel are in what is compiled."""
        folder = dist_info_folder(package.name, self.version)
        compiled = any(NATIVE.search(member.path) for member in members)
        data = wheel_sbom(
            metadata,
            [member.path for member in members] if compiled else (),
            dist_info=folder,
            bundled=tuple(self.bundled(package)),
            epoch=self.epoch,
        )
        return Member(path=f"{folder}/{SBOM_FOLDER}/{SBOM_NAME}", data=data)

    def bundled(self, package: OutputPackage) -> Iterator[Component]:
        """The libraries of others in a package; large ones are not inflated for their SONAME."""
        for path, _, _, target in self.by_package.get(package.name, ()):
            if is_bundled(path, project=self.rules.name, providers=self.providers):
                name = self.source.soname(path) if self.source.entries[path].size <= _LARGE else None
                yield Component(
                    name=name or path.rpartition("/")[2],
                    origin="bundled",
                    sha256=decode_hash(_hash(self.members[path])).hex(),
                    paths=(target,),
                )

    def marker(self, package: OutputPackage, identity: str) -> Iterator[Member]:
        """The file that the check at import knows a package by: none for the main one, and for those without files."""
        if self.rules.check is not None and not package.meta and package.name != self.rules.name:
            data = render_marker(name=package.name, version=self.version, identity=identity)
            yield Member(path=marker_path(self.rules.check.markers, package.name), data=data)

    def report(self, parts: Sequence[SplitPart], changes: Mapping[str, Changed]) -> SplitReport:
        sizes = {path: entry.size for path, entry in self.source.entries.items()}
        return SplitReport(
            wheel=self.source.filename,
            version=self.version,
            install=f"{next((each.name for each in self.packages if each.meta), self.rules.name)}=={self.version}",
            packages=tuple(
                report_package(
                    name=render_wheel_name(part.name),
                    metadata=part.metadata,
                    sizes=[sizes[place.path] for place in self.by_package.get(package.name, ())],
                    identity=part.identity,
                    added=[member.path for member in self.marker(package, part.identity)],
                )
                for package, part in zip(self.packages, parts, strict=True)
            ),
            rules=report_rules(self.rules.rule, self.places, sizes),
            files=(
                *report_files(self.places, sizes, {path: change.kind for path, change in changes.items()}),
                *self.dist_info_report(sizes),
            ),
            requirements=self.shares,
        )

    def dist_info_report(self, sizes: Mapping[str, int]) -> Iterator[SplitFile]:
        """The files of the original's metadata folder: each package has its own METADATA, WHEEL and RECORD."""
        source = self.source.dist_info
        with_files = tuple(each.name for each in self.packages if not each.meta)
        for path in self.source.entries:
            if not path.startswith(f"{source}/"):
                continue
            file = path[len(source) + 1 :]
            if file in {"METADATA", "WHEEL", "RECORD"}:
                yield SplitFile(path=path, size=sizes[path], rule=0, packages=self.names, change="edited")
            elif not carry_dist_info((path,), source=source, target=source):
                yield SplitFile(path=path, size=sizes[path], rule=0)
            elif _LICENCE.fullmatch(file):
                yield SplitFile(path=path, size=sizes[path], rule=0, packages=with_files)
            else:
                yield SplitFile(path=path, size=sizes[path], rule=0, packages=(self.rules.name,))


def _identity(metadata: Metadata, members: Iterable[Member]) -> str:
    """Digest over the files and the requirements of a part."""
    content = sorted((member.path, _hash(member), member.executable) for member in members)
    return digest_of(canonical_json([metadata.name, metadata.version, metadata.requires, content]))[:16]


def _hash(member: Member) -> str:
    if isinstance(member.data, Packed):
        return member.data.hash
    assert isinstance(member.data, bytes)  # noqa: S101 (what changes is in memory)
    return encode_hash(hashlib.sha256(member.data).digest())
