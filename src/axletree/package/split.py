"""Split a wheel into several distributions: which file goes where and what changes in it, as values.

Nothing is inflated but the few files that change: members are taken over compressed, with the hashes of the wheel's
RECORD. Whether the parts still find each other's libraries is checked on what was written
(:mod:`axletree.package.split_proof`), when everything is read once anyway.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

import msgspec
from packaging.utils import canonicalize_name
from packaging.version import Version

from axletree.binary.elf import ElfFacts, is_elf, read_elf
from axletree.binary.members import MemberSource, read_member
from axletree.binary.source import BufferSource
from axletree.binary.zips import ZipEntry, read_directory
from axletree.core.errors import IntegrityError, Problem
from axletree.core.values import canonical_json, digest_of
from axletree.package.metadata import Metadata, parse_metadata
from axletree.package.names import WheelName, dist_info_folder, parse_wheel_name, render_wheel_name, stem
from axletree.package.part_check import insert_check, marker_path, render_check, render_marker
from axletree.package.partition import glob_matches
from axletree.package.record import RecordEntry, parse_record
from axletree.package.repack import packed_members
from axletree.package.split_assign import assign_files
from axletree.package.split_metadata import part_metadata, share_requirements, split_version
from axletree.package.split_relocate import library_folders, relocate
from axletree.package.split_report import SplitFile, SplitReport, report_files, report_package, report_rules
from axletree.package.wheel_info import WheelInfo, carry_dist_info, parse_wheel_info
from axletree.package.writer import Member

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from axletree.package.split_report import Change
    from axletree.package.split_rules import Package, SplitRules, TextEdit

_FORMAT = 1
"""Part of what identifies a split: raised when the same rules make other packages."""
_MAX_CHANGED = 256 << 20
"""Most bytes of a file that is changed; it is in memory as a whole."""
_NATIVE = re.compile(r"\.(so(\.\d+)*|dylib|dll|pyd|a|lib|exe)$")
_LICENCE = re.compile(r"licenses/.+|(LICEN[CS]E|COPYING|NOTICE|AUTHORS)[^/]*", re.IGNORECASE)


class SplitSource(msgspec.Struct, frozen=True, kw_only=True):
    """The wheel that is split."""

    filename: str
    name: WheelName
    buffer: bytes | memoryview
    """The archive; what is planned looks into it."""
    entries: dict[str, ZipEntry]
    """Path -> member, folders left out."""
    dist_info: str
    metadata: Metadata
    wheel_info: WheelInfo
    record: tuple[RecordEntry, ...]


class Part(msgspec.Struct, frozen=True, kw_only=True):
    """A wheel to be written."""

    name: WheelName
    metadata: Metadata
    wheel_info: WheelInfo
    members: tuple[Member, ...]
    siblings: tuple[str, ...]
    """Other parts that it requires."""
    independent: bool
    """Whether it must fit any Python."""


class SplitPlan(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that a split makes, and the proof of it."""

    parts: tuple[Part, ...]
    report: SplitReport
    origins: dict[str, str]
    """Path in a part -> path in the original, where it is another."""
    before: dict[str, ElfFacts]
    """Path in a part -> facts of a relocated file, as it was in the original."""


class _Change(NamedTuple):
    """New content of a file."""

    data: bytes
    kind: Change
    before: ElfFacts | None = None


def read_split_source(buffer: bytes | memoryview, *, filename: str) -> SplitSource:
    """Read the directory and the metadata of a wheel.

    Raises:
        IntegrityError: it is no wheel, its archive or metadata are damaged, or it is one of several variants.
    """
    name = parse_wheel_name(filename)
    if name.variant:
        hint = "split the plain wheel; variants are made of the parts"
        raise IntegrityError(Problem(file=filename, message=f"is the variant {name.variant!r}", hint=hint))
    entries = {entry.name: entry for entry in read_directory(buffer, archive=filename) if not entry.directory}
    folder = dist_info_folder(name.project, name.version)
    if f"{folder}/METADATA" not in entries:  # names that are not normalised
        folder = next((path.rpartition("/")[0] for path in entries if path.endswith(".dist-info/METADATA")), folder)
    texts: dict[str, bytes] = {}
    for file in ("METADATA", "WHEEL", "RECORD"):
        entry = entries.get(f"{folder}/{file}")
        if entry is None:
            raise IntegrityError(Problem(file=filename, key=f"{folder}/{file}", message="is missing"))
        texts[file] = read_member(buffer, entry, archive=filename, limit=_MAX_CHANGED)
    metadata = parse_metadata(texts["METADATA"], file=f"{folder}/METADATA")
    if (canonicalize_name(metadata.name), Version(metadata.version)) != (name.project, Version(name.version)):
        message = f"is {metadata.name} {metadata.version} by its metadata, which its file name denies"
        raise IntegrityError(Problem(file=filename, message=message))
    return SplitSource(
        filename=filename,
        name=name,
        buffer=buffer,
        entries=entries,
        dist_info=folder,
        metadata=metadata,
        wheel_info=parse_wheel_info(texts["WHEEL"], file=f"{folder}/WHEEL"),
        record=parse_record(texts["RECORD"], file=f"{folder}/RECORD"),
    )


def plan_split(source: SplitSource, rules: SplitRules) -> SplitPlan:
    """Plan the parts of a wheel.

    Raises:
        IntegrityError: the rules are for another distribution, leave a file without a place, give two the same one, or
            a file is not as an edit expects it. Names everything that is wrong.
    """
    if source.name.project != rules.name:
        message = f"is {source.name.project}, but these rules split {rules.name}"
        raise IntegrityError(Problem(file=source.filename, message=message))
    return _Planner(source, rules).plan()


class _Planner:
    """One wheel and its rules, and what follows from both."""

    def __init__(self, source: SplitSource, rules: SplitRules) -> None:
        self.source = source
        self.rules = rules
        module = rules.version_module
        text = self.read(module).decode("utf-8", "replace") if module in source.entries and module else None
        self.version = split_version(source.metadata.version, module=text, label=rules.label)
        self.split = digest_of(canonical_json([_FORMAT, source.record, rules]))[:16]
        packed = packed_members(
            source.buffer,
            source.entries.values(),
            source.record,
            folder=source.dist_info,
            archive=source.filename,
        )
        self.members = {member.path: member for member in packed}
        inside = f"{source.dist_info}/"
        self.content = [path for path in self.members if not path.startswith(inside)]
        self.places = assign_files(self.content, rules, soname=self.soname)
        filled = {place.package for place in self.places}
        self.packages = tuple(
            package for package in rules.package if package.meta or package.name in filled | {rules.name}
        )
        self.names = tuple(package.name for package in self.packages)
        self.shares = share_requirements(source.metadata, self.packages, main=rules.name)

    def plan(self) -> SplitPlan:
        changes = self.changes()
        parts = tuple(self.part(package, changes) for package in self.packages)
        kept = [place for place in self.places if place.package is not None]
        return SplitPlan(
            parts=parts,
            report=self.report(parts, changes),
            origins={place.target: place.path for place in kept if place.target != place.path},
            before={
                place.target: change.before
                for place in kept
                if (change := changes.get(place.path)) and change.before is not None
            },
        )

    def read(self, path: str) -> bytes:
        return read_member(
            self.source.buffer, self.source.entries[path], archive=self.source.filename, limit=_MAX_CHANGED
        )

    def soname(self, path: str) -> str | None:
        """The SONAME of a shared library; inflates it."""
        if not _NATIVE.search(path):
            return None
        member = MemberSource(self.source.buffer, self.source.entries[path], archive=self.source.filename)
        first = b""
        for chunk in member.scan():
            first = first or chunk[:4]
        return read_elf(member, name=path).soname if first == b"\x7fELF" else None

    def changes(self) -> dict[str, _Change]:
        """New content of the files that change.

        Raises:
            IntegrityError: a file is missing or not as an edit expects it.
        """
        problems: list[Problem] = []
        texts: dict[str, str] = {}
        kept = {place.path for place in self.places if place.package is not None}
        for number, edit in enumerate(self.rules.edit):
            if edit.when is None or glob_matches(edit.when, self.content):
                problems += self.edit(number, edit, texts, kept)
        check = self.rules.check
        if check is not None and self.marked and not problems:
            if check.file in kept:
                text = texts.get(check.file) or self.text(check.file)
                texts[check.file] = insert_check(text, self.check_source(check.file, check.markers), file=check.file)
            else:
                problems.append(Problem(key=check.file, message="is where the check at import goes, but is not there"))
        if problems:
            raise IntegrityError(*problems)
        edited = {path: _Change(text.encode(), "edited") for path, text in texts.items()}
        return edited | dict(self.relocated())

    def relocated(self) -> Iterator[tuple[str, _Change]]:
        """The files that rules relocate, and that have to change for it."""
        folders = library_folders(place.target for place in self.places if place.package is not None)
        for path, number, package, target in self.places:
            if package is not None and self.rules.rule[number].relocate:
                source = BufferSource(self.read(path))
                found = relocate(source, target=target, folders=folders) if is_elf(source.read(0, 4)) else None
                if found is not None:
                    yield path, _Change(found.data, "relocated", found.before)

    def edit(self, number: int, edit: TextEdit, texts: dict[str, str], kept: set[str]) -> Iterator[Problem]:
        """Apply one edit to the texts read so far."""
        key = f"edit[{number}]"
        hint = "the file is not the one that these rules were made for: look at what it does now, and adapt them"
        if edit.file not in kept:
            yield Problem(file=edit.file, key=key, message="there is no such file to edit", hint=hint)
            return
        if edit.file not in texts:
            texts[edit.file] = self.text(edit.file)
        count = texts[edit.file].count(edit.find)
        if count != edit.count:
            message = f"its text is there {count} times, not {edit.count}"
            yield Problem(file=edit.file, key=key, message=message, excerpt=edit.find.strip()[:120], hint=hint)
        texts[edit.file] = texts[edit.file].replace(edit.find, edit.replace)

    def text(self, path: str) -> str:
        try:
            return self.read(path).decode()
        except UnicodeDecodeError as error:
            raise IntegrityError(Problem(file=path, message=f"is no UTF-8 text: {error.reason}")) from error

    @property
    def marked(self) -> tuple[str, ...]:
        """The packages that carry a marker: all that hold files, but the one that looks for them."""
        return tuple(package.name for package in self.packages if not package.meta and package.name != self.rules.name)

    def check_source(self, file: str, markers: str) -> str:
        return render_check(
            name=self.rules.name,
            version=self.version,
            split=self.split,
            file=file,
            markers=markers,
            parts=self.marked,
            everything=(self.rules.name, *self.marked),
        )

    def part(self, package: Package, changes: Mapping[str, _Change]) -> Part:
        siblings = self.siblings(package)
        metadata = part_metadata(
            self.source.metadata,
            package,
            main=self.rules.name,
            version=self.version,
            siblings=siblings,
            shares=self.shares,
        )
        members = (*self.content_of(package, changes), *self.dist_info_of(package), *self.added(package))
        native = any(_NATIVE.search(member.path) or member.executable for member in members)
        name = self.wheel_name(package, native=native)
        return Part(
            name=name,
            metadata=metadata,
            wheel_info=WheelInfo(tags=name.tags, purelib=package.meta or self.source.wheel_info.purelib),
            members=members,
            siblings=siblings,
            independent=package.independent,
        )

    def siblings(self, package: Package) -> tuple[str, ...]:
        """The parts that a package requires, of those that are made."""
        if package.meta:
            return tuple(each.name for each in self.packages if not each.meta)
        return tuple(name for name in package.requires if name in self.names)

    def wheel_name(self, package: Package, *, native: bool) -> WheelName:
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

    def content_of(self, package: Package, changes: Mapping[str, _Change]) -> Iterator[Member]:
        """The files of a package at their new places; those of a ``.data`` folder in the package's own."""
        data = f"{self.source.dist_info.removesuffix('.dist-info')}.data/"
        own = f"{stem(package.name, self.version)}.data/"
        for path, _, owner, target in self.places:
            if owner != package.name:
                continue
            member = self.members[path]
            place = own + target[len(data) :] if target.startswith(data) else target
            change = changes.get(path)
            if change is not None:
                yield Member(path=place, data=change.data, executable=member.executable)
            elif place == path:
                yield member
            else:
                yield Member(path=place, data=member.data, size=member.size, executable=member.executable)

    def dist_info_of(self, package: Package) -> Iterator[Member]:
        """What of the metadata folder a package gets: the main one all, the others the licences."""
        folder = dist_info_folder(package.name, self.version)
        source = self.source.dist_info
        for path, target in carry_dist_info(self.members, source=source, target=folder).items():
            if package.name == self.rules.name or (not package.meta and _LICENCE.fullmatch(path[len(source) + 1 :])):
                yield msgspec.structs.replace(self.members[path], path=target)

    def added(self, package: Package) -> Iterator[Member]:
        """What a package has beside the files of the original."""
        if self.rules.check is not None and package.name in self.marked:
            data = render_marker(name=package.name, version=self.version, split=self.split)
            yield Member(path=marker_path(self.rules.check.markers, package.name), data=data)

    def report(self, parts: Sequence[Part], changes: Mapping[str, _Change]) -> SplitReport:
        sizes = {path: entry.size for path, entry in self.source.entries.items()}
        return SplitReport(
            wheel=self.source.filename,
            version=self.version,
            split=self.split,
            install=f"{next((each.name for each in self.packages if each.meta), self.rules.name)}=={self.version}",
            packages=tuple(
                report_package(
                    name=render_wheel_name(part.name),
                    metadata=part.metadata,
                    sizes=[sizes[place.path] for place in self.places if place.package == part.name.project],
                    added=[member.path for member in self.added(package)],
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
        everybody = self.names
        for path in self.source.entries:
            if not path.startswith(f"{source}/"):
                continue
            file = path[len(source) + 1 :]
            if file in {"METADATA", "WHEEL", "RECORD"}:
                yield SplitFile(path=path, size=sizes[path], rule=0, packages=everybody, change="edited")
            elif not carry_dist_info((path,), source=source, target=source):
                yield SplitFile(path=path, size=sizes[path], rule=0)
            elif _LICENCE.fullmatch(file):
                yield SplitFile(path=path, size=sizes[path], rule=0, packages=(self.rules.name, *self.marked))
            else:
                yield SplitFile(path=path, size=sizes[path], rule=0, packages=(self.rules.name,))
