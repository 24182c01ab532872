"""Repair a wheel: take in what is missing, leave what others bring, and give it the tag that its symbols allow."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from axletree.binary.edits import EditedSource, iter_source
from axletree.binary.elf.edit import ElfChange, plan_edit
from axletree.binary.elf.verify import verify_edit
from axletree.binary.source import BufferSource
from axletree.binary.zip.directory import ZipEntry, read_directory
from axletree.binary.zip.members import MemberSource
from axletree.binary.zip.records import EARLIEST
from axletree.core.errors import IntegrityError, Problem, UsageError
from axletree.host.archive import map_file, write_wheel_file
from axletree.host.grafts import library_finder
from axletree.host.libraries import search_folders
from axletree.host.shipped_data import read_shipped
from axletree.package.libraries.graft import LeftOut, graft_components, grafted_library, plan_grafts
from axletree.package.libraries.policy import (
    MANYLINUX_POLICIES,
    Policy,
    broken_needs,
    lowest_policy,
    promised_libraries,
    symbol_needs,
)
from axletree.package.libraries.providers import LIBRARY_PROVIDERS, required_names
from axletree.package.sbom.read import FOLDER as SBOMS
from axletree.package.sbom.read import read_bundled
from axletree.package.sbom.write import SBOM_NAME, wheel_sbom
from axletree.package.wheel.info import GENERATOR, carry_dist_info
from axletree.package.wheel.names import dist_info_folder, render_wheel_name
from axletree.package.wheel.repack import packed_members, renamed_members
from axletree.package.wheel.scan import WheelScan, scan_wheel
from axletree.package.wheel.tags import single_machine
from axletree.package.wheel.writer import Member
from axletree.plan.actions.relocate import GraftedLibrary

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from axletree.binary.elf.facts import ElfFacts
    from axletree.binary.source import Source
    from axletree.package.libraries.graft import Graft, Grafting
    from axletree.package.wheel.metadata import Metadata

MAX_GRAFT = 64_000_000
"""Bytes of one library from which on taking it in is more likely a mistake than a wish."""


class RepairedWheel(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a repair."""

    wheel: str
    """File name of the repaired wheel."""
    path: Path
    """The written wheel."""
    size: int
    platform: str
    """Its new platform tag."""
    before: str
    """Its old platform tag."""
    grafts: tuple[GraftedLibrary, ...]
    relinked: tuple[str, ...]
    """Files of the wheel whose names or search path changed."""
    left: tuple[LeftOut, ...]
    """Libraries that were left to their providers."""


class RepairedWheels(msgspec.Struct, frozen=True, kw_only=True):
    """Repaired wheels: report of ``repair``."""

    wheels: tuple[RepairedWheel, ...]


class _Input(msgspec.Struct, frozen=True, kw_only=True):
    path: Path
    view: memoryview
    scan: WheelScan
    entries: dict[str, ZipEntry]


def repair_wheel(
    path: Path,
    out: Path,
    *,
    policy: str | None = None,
    library_path: Sequence[Path] = (),
    max_graft: int = MAX_GRAFT,
    epoch: int = EARLIEST,
    threads: int = 1,
) -> RepairedWheel:
    """Write a repaired copy of a wheel.

    Args:
        path: the wheel, which stays as it is.
        out: folder for the result.
        policy: the platform tag that it must reach, such as ``manylinux_2_28``; by default the lowest it can.
        library_path: folders in which libraries are looked for first.
        max_graft: most bytes of one library that is taken in.
        epoch: date of the members.
        threads: how many compress at once.

    Raises:
        UsageError: no such policy.
        HostError: a file can't be read or written.
        IntegrityError: it is no Linux wheel, is damaged, needs what is nowhere, or needs newer symbols than the policy
            allows. Nothing is written then.
    """
    given = _read(path)
    facts = {member.path: member.facts for member in given.scan.elfs}
    machine = _machine(given.scan, facts)
    policies = read_shipped(MANYLINUX_POLICIES)
    target = _policy(policy, policies, machine)
    grafting = plan_grafts(
        facts,
        stem=given.scan.wheel.dist_info.removesuffix(".dist-info").rpartition("-")[0],
        system=target.libraries if target else promised_libraries(facts, policies, machine),
        providers=read_shipped(LIBRARY_PROVIDERS),
        required=required_names(given.scan.wheel.metadata.requires if given.scan.wheel.metadata else ()),
        find=library_finder(search_folders(library_path)),
        limit=max_graft,
    )
    whole = {**facts, **{graft.path: graft.library.facts for graft in grafting.grafts}}
    platform = _platform(whole, policies, target, machine)
    target_path, size = _write(given, out, grafting, platform, epoch=epoch, threads=threads)
    return RepairedWheel(
        wheel=path.name,
        path=target_path,
        size=size,
        platform=platform,
        before=given.scan.wheel.name.platform,
        grafts=tuple(map(grafted_library, grafting.grafts)),
        relinked=tuple(relink.path for relink in grafting.relinks if relink.soname is None),
        left=grafting.left,
    )


def _read(path: Path) -> _Input:
    view = map_file(path)
    scan = scan_wheel(view, filename=path.name)
    wheel = scan.wheel
    trouble = [Problem(file=path.name, message=text) for text in wheel.unreadable]
    trouble += [Problem(file=path.name, key=issue.path, message=issue.detail) for issue in wheel.record_issues]
    trouble += [Problem(file=path.name, key=file, message=text) for file, text in scan.damaged_elfs]
    if trouble:
        raise IntegrityError(*trouble[:20], hint="a damaged wheel cannot be repaired; build it again")
    entries = {entry.name: entry for entry in read_directory(view, archive=path.name) if not entry.directory}
    return _Input(path=path, view=view, scan=scan, entries=entries)


def _machine(scan: WheelScan, facts: Mapping[str, ElfFacts]) -> str:
    name = scan.wheel.filename
    foreign = sorted({member.format for member in scan.wheel.members} & {"mach-o", "pe"})
    machine = single_machine(facts)
    if foreign or machine is None:
        found = f"contains {' and '.join(foreign)} files" if foreign else "contains no ELF files for a processor"
        raise IntegrityError(
            Problem(file=name, message=f"the file is not a Linux wheel: it {found}, so there is nothing to repair")
        )
    if "musllinux" in scan.wheel.name.platform:
        raise IntegrityError(
            Problem(
                file=name,
                message=(
                    "the file is a musllinux wheel, which can be repaired only on a musl system, such as Alpine Linux"
                ),
            )
        )
    return machine


def _policy(text: str | None, policies: Sequence[Policy], machine: str) -> Policy | None:
    if text is None:
        return None
    name = text.removesuffix(f"_{machine}")
    found = next((policy for policy in policies if name in {policy.name, *policy.aliases}), None)
    if found is None or machine not in found.versions:
        known = ", ".join(policy.name for policy in policies if machine in policy.versions)
        raise UsageError(f"--policy: {text!r} is not available for {machine}", hint=f"use one of these: {known}")
    return found


def _platform(facts: Mapping[str, ElfFacts], policies: Sequence[Policy], target: Policy | None, machine: str) -> str:
    needs = symbol_needs(facts)
    reached = target or lowest_policy(needs, policies, machine)
    if target is not None and (broken := broken_needs(needs, target, machine)):
        problems = [
            Problem(file=need.path, key=need.library, message=f"needs {need.family}_{need.version}") for need in broken
        ]
        lowest = lowest_policy(needs, policies, machine)
        hint = f"{target.name} does not allow these versions; " + (
            f"the lowest tag for this wheel is {lowest.name}" if lowest else "no manylinux tag allows them all"
        )
        raise IntegrityError(*problems[:20], hint=hint + "; for a lower tag, build the wheel on an older system")
    if reached is None:
        return f"linux_{machine}"
    return ".".join(f"{name}_{machine}" for name in (reached.name, *reached.aliases))


def _edited_members(given: _Input, grafting: Grafting, archive: str) -> Iterator[tuple[str, Member]]:
    """Path -> what goes there, for grafts and for files of the wheel that must find them."""
    origins = {graft.path: graft.library.origin for graft in grafting.grafts}
    for relink in grafting.relinks:
        source: Source
        if relink.path in origins:
            source, executable = BufferSource(map_file(Path(origins[relink.path]))), True
        else:
            entry = given.entries[relink.path]
            member = MemberSource(given.view, entry, archive=archive)
            for _ in member.scan():
                pass  # random access needs one pass
            source, executable = member, entry.executable
        change = ElfChange(
            rpath=relink.search, kind=relink.kind, soname=relink.soname, replace_needed=dict(relink.needed)
        )
        edited = EditedSource(source, plan_edit(source, change, name=relink.path))
        verify_edit(source, edited, change, name=relink.path)
        yield (
            relink.path,
            Member(path=relink.path, data=partial(iter_source, edited), size=edited.size, executable=executable),
        )


def _unchanged(given: _Input, edited: Mapping[str, Member], *, without: str) -> tuple[Member, ...]:
    wheel = given.scan.wheel
    kept = [entry for name, entry in given.entries.items() if name not in edited and name != without]
    return packed_members(given.view, kept, wheel.record or (), folder=wheel.dist_info, archive=wheel.filename)


def _sbom(given: _Input, path: str, metadata: Metadata, grafts: Sequence[Graft], epoch: int) -> bytes:
    """The bill with what was taken in, now and before: the libraries that a bill there names are still in the wheel."""
    archive, source = given.scan.wheel.filename, given.scan.wheel.dist_info
    earlier = given.entries.get(path)
    before = b"" if earlier is None else b"".join(MemberSource(given.view, earlier, archive=archive).scan())
    bundled = (*(read_bundled(before, file=path) if before else ()), *graft_components(grafts))
    folder = dist_info_folder(metadata.name, metadata.version)
    paths = carry_dist_info(given.entries, source=source, target=folder).values()
    return wheel_sbom(metadata, paths, dist_info=folder, bundled=bundled, epoch=epoch)


def _write(
    given: _Input, out: Path, grafting: Grafting, platform: str, *, epoch: int, threads: int
) -> tuple[Path, int]:
    wheel = given.scan.wheel
    if wheel.metadata is None or wheel.wheel_info is None:
        raise IntegrityError(Problem(file=wheel.filename, message="the wheel has no METADATA file or no WHEEL file"))
    edited = dict(_edited_members(given, grafting, wheel.filename))
    sbom = f"{wheel.dist_info}/{SBOMS}/{SBOM_NAME}"
    members = [*edited.values()]
    if grafting.grafts or sbom not in given.entries:  # a bill of an earlier repair stays true where nothing is added
        members.append(Member(path=sbom, data=_sbom(given, sbom, wheel.metadata, grafting.grafts, epoch)))
        members += _unchanged(given, edited, without=sbom)
    else:
        members += _unchanged(given, edited, without="")
    name = msgspec.structs.replace(wheel.name, platform=platform)
    info = msgspec.structs.replace(wheel.wheel_info, tags=name.tags, generator=GENERATOR)
    target = out / render_wheel_name(name)
    if target.exists() and target.samefile(given.path):
        raise UsageError(f"{target} would overwrite the input wheel", hint="choose a different folder with --out")
    folder = dist_info_folder(wheel.metadata.name, wheel.metadata.version)
    written = write_wheel_file(
        out,
        name,
        renamed_members(members, source=wheel.dist_info, target=folder),
        metadata=wheel.metadata,
        wheel_info=info,
        epoch=epoch,
        threads=threads,
    )
    return written.path, written.size
