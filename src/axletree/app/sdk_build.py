"""Build the packages of an SDK from its files: wheels for run time, the devel package, the selector, the index."""

from __future__ import annotations

import posixpath
import re
from functools import partial
from importlib.resources import files
from typing import TYPE_CHECKING, NamedTuple

import msgspec
from packaging.version import InvalidVersion, Version

from axletree.app.index_root import StagedFile, staged_wheel, staging
from axletree.app.sdk_selector import check_release, place_sdk, sdist_root, stage_sdist
from axletree.binary.zip.deflate import LEVEL
from axletree.binary.zip.records import EARLIEST
from axletree.core.errors import UsageError
from axletree.host.archive import write_wheel_file
from axletree.host.sdk.content import Contents
from axletree.host.sdk.facts import read_sdk_facts
from axletree.host.shipped_data import read_shipped
from axletree.package.libraries.platforms import parse_platform
from axletree.package.libraries.policy import MANYLINUX_POLICIES, promised_libraries
from axletree.package.sdk.claims import assign, require_owned
from axletree.package.sdk.devel_tar import tar_chunks, tar_size
from axletree.package.sdk.devices import built_for, rivals
from axletree.package.sdk.machines import host_files
from axletree.package.sdk.planning import Known, describe_sdk, plan_sdk
from axletree.package.sdk.selector import selector_members, selector_metadata, selector_sdist
from axletree.package.sdk.targets import AMD_TARGETS, select_targets
from axletree.package.sdk.wheels import REQUIRES_PYTHON, devel_members, metadata, module_of, package_members
from axletree.package.wheel.info import WheelInfo
from axletree.package.wheel.names import WheelName
from axletree.package.wheel.tags import platform_tag, single_machine
from axletree.package.wheel.writer import Member
from axletree.report.sdk import SdkReport, SdkSdist, SdkWheel, Selector

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from axletree.binary.elf.facts import ElfFacts
    from axletree.host.archive import WheelFile
    from axletree.host.folder_lock import Note
    from axletree.package.sdk.entries import SdkEntry
    from axletree.package.sdk.machines import HostFiles
    from axletree.package.sdk.manifest import Manifest
    from axletree.package.sdk.plan import DevelItem, PackagePlan, SdkPlan
    from axletree.package.sdk.selector import SelectorSdist
    from axletree.package.sdk.shipped import PackageFile, SdkFile
    from axletree.package.wheel.metadata import Metadata


_TAG = re.compile(r"[a-z0-9_]+")


class SdkRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What is asked for."""

    version: str | None = None
    """In place of the manifest's."""
    platform: str | None = None
    """Platform tag of the wheels; otherwise what their files allow."""
    families: tuple[str, ...] = ()
    """Families that get packages beside those that do anyway."""
    level: int = LEVEL
    """Deflate level; 0 stores."""
    epoch: int = EARLIEST
    threads: int = 1
    selector: Selector = "wheel"
    """Flavours: the same for everybody, made where it is installed, or each in a root of its own."""


class _Wheel(NamedTuple):
    """A wheel that is to be written."""

    metadata: Metadata
    tag: str
    members: tuple[Member, ...]
    files: int
    installed: int
    shipped: PackageFile | None


def build_sdk(
    manifest: Manifest,
    entries: Sequence[SdkEntry],
    request: SdkRequest,
    *,
    out: Path,
    environ: Mapping[str, str],
    note: Note = lambda _: None,
) -> SdkReport:
    """Build all packages into an index root: all of them and its pages, or nothing.

    Args:
        manifest: what the packages are.
        entries: the files of the SDK.
        request: version, compression.
        out: the root; made if it is not there.
        environ: may name a compiler (``CC``) and a platform tag (``PREFIX_WHEEL_PLATFORM_TAG``).
        note: told whom this waits for, when somebody else writes into the index root.

    Raises:
        UsageError: no version, or none that PEP 440 knows; no platform tag, or one for other machines.
        IntegrityError: files that nobody owns or two own, links that lead nowhere, libraries that nobody brings.
        PublishError: other files of these names are in the root.
        HostError: a file can't be read or written, or no C compiler is there.
    """
    version = _version(manifest, request)
    ownership = require_owned(assign(entries, manifest))
    facts = read_sdk_facts(entries)
    host = host_files(facts.elfs, {entry.source: entry.path for entry in entries})
    known = _known(manifest, entries, ownership.packages, facts.code, host, request.families)
    plan = plan_sdk(manifest, known, version=version)
    sdk = describe_sdk(manifest, known, plan, version=version)
    contents = Contents(environ)
    platform = _checked_platform(manifest, request, environ, host.machine)
    with staging(out) as folder:
        wheels = [*_packages(manifest, plan, known, contents, platform, request.epoch), _selector_wheel(manifest, sdk)]
        described = [wheel.metadata for wheel in wheels]
        check_release(out, sdk, request.selector, described)  # better now than when all is packed
        chosen = wheels[:-1] if request.selector == "sdist" else wheels
        written = [(wheel, _write(folder, wheel, request)) for wheel in chosen]
        staged = [staged_wheel(file, REQUIRES_PYTHON) for _, file in written]
        made = selector_sdist(manifest, sdk, runtime_modules(), epoch=request.epoch)
        sdist = stage_sdist(folder, made) if request.selector != "wheel" else None
        order = place_sdk(out, request.selector, staged, sdist, sdk=sdk, metadata=described, note=note)
    return SdkReport(
        sdk=sdk.sdk,
        version=version,
        out=str(out),
        wheels=tuple(_report(wheel, file) for (wheel, _), file in zip(written, staged, strict=True)),
        targets=known.selection.targets,
        families=known.selection.families,
        extras=tuple(dict.fromkeys(each.extra for each in sdk.packages if each.extra and each.kind != "device")),
        gpu_extras=tuple(each.extra for each in sdk.packages if each.kind == "device"),
        default_family=sdk.default_family,
        prefix=sdk.prefix,
        selector=request.selector,
        sdist=_sdist_report(made, sdist, out, request.selector) if sdist is not None else None,
        dropped=len(ownership.dropped),
        notes=(*order, *facts.unread, *host.notes, *_apart(known), *plan.notes, *contents.notes),
    )


def _apart(known: Known) -> Iterator[str]:
    if known.selection.apart:
        names = " and ".join(known.selection.apart)
        yield f"no package for family {names}: artifacts for its GPUs contain different files with the same path"


def _version(manifest: Manifest, request: SdkRequest) -> str:
    text = manifest.sdk.version if request.version is None else request.version
    if text is None:
        raise UsageError("the manifest has no version", hint="set it with --version")
    try:
        return str(Version(text))
    except InvalidVersion:
        raise UsageError(f"{text!r} is not a valid version (PEP 440)") from None


def _checked_platform(
    manifest: Manifest, request: SdkRequest, environ: Mapping[str, str], machine: str | None
) -> str | None:
    """The platform tag that was asked for."""
    tag = request.platform or environ.get(f"{manifest.sdk.prefix}_WHEEL_PLATFORM_TAG") or None
    policies = read_shipped(MANYLINUX_POLICIES)
    for each in tag.split(".") if tag is not None else ():
        found = parse_platform(each, policies)
        if not _TAG.fullmatch(each) or not found.linux or not found.machine:
            hint = "use a tag such as manylinux_2_28_x86_64 or linux_x86_64"
            raise UsageError(f"{tag!r} is not a Linux platform tag", hint=hint)
        if machine is not None and found.machine != machine:
            raise UsageError(f"platform tag {tag!r} is for {found.machine}, but the SDK is for {machine}")
    return tag


def _known(
    manifest: Manifest,
    entries: Sequence[SdkEntry],
    owned: dict[str, tuple[SdkEntry, ...]],
    code: dict[str, tuple[str, ...]],
    host: HostFiles,
    families: tuple[str, ...],
) -> Known:
    libraries = (entry for each in manifest.package if each.kind == "libraries" for entry in owned[each.name])
    built, table = built_for(entries, code), read_shipped(AMD_TARGETS)
    selection = select_targets(built, manifest.targets, table, families=families, rivals=rivals(libraries))
    return Known(
        entries=tuple(entries),
        owned=owned,
        facts=host.facts,
        code=code,
        selection=selection,
        promised=promised_libraries(host.facts, read_shipped(MANYLINUX_POLICIES), host.machine),
    )


def _packages(
    manifest: Manifest, plan: SdkPlan, known: Known, contents: Contents, platform: str | None, epoch: int
) -> Iterator[_Wheel]:
    """What the selector chooses from."""
    for each in plan.packages:
        yield _runtime_wheel(manifest, each, known, contents, platform)
    yield from _devel_wheel(manifest, plan, known, contents, platform, epoch)


def _runtime_wheel(
    manifest: Manifest, plan: PackagePlan, known: Known, contents: Contents, platform: str | None
) -> _Wheel:
    shipped = plan.shipped
    found = [(item, contents.of_item(item)) for item in plan.items]
    members = [
        Member(
            path=posixpath.join(shipped.folder, item.path),
            data=content.chunks,
            size=content.size,
            executable=item.role == "launcher" or item.entry.executable,
        )
        for item, content in found
    ]
    elfs = _elfs(known, (item.entry for item in plan.items if item.role == "file"))
    return _Wheel(
        metadata=metadata(
            manifest,
            dist=shipped.dist,
            version=shipped.version,
            summary=plan.summary,
            requires=[f"{dist}=={shipped.version}" for dist in plan.requires],
        ),
        tag=platform or _platform(shipped, elfs),
        members=(*members, *package_members(shipped, runtime=manifest.sdk.module)),
        files=len(members),
        installed=sum(content.size for _, content in found),
        shipped=shipped,
    )


def _devel_wheel(
    manifest: Manifest, plan: SdkPlan, known: Known, contents: Contents, platform: str | None, epoch: int
) -> Iterator[_Wheel]:
    shipped = plan.devel_package
    if shipped is None:
        return
    package = next(each for each in manifest.package if each.kind == "devel")
    own = {item.path: contents.of_devel(item) for item in plan.devel if item.kind == "file"}

    def size(item: DevelItem) -> int:
        return own[item.path].size

    payload = Member(
        path=f"{module_of(shipped.dist)}/_devel.tar",
        data=partial(tar_chunks, plan.devel, lambda item: own[item.path], epoch=epoch),
        size=tar_size(plan.devel, size),
    )
    requires = [f"{dist}=={shipped.version}" for dist in plan.devel_requires]
    elfs = _elfs(known, (item.entry for item in plan.devel if item.entry is not None))
    yield _Wheel(
        metadata=metadata(
            manifest, dist=shipped.dist, version=shipped.version, summary=package.summary, requires=requires
        ),
        tag=platform or _platform(shipped, elfs),
        members=(payload, *devel_members(shipped, runtime=manifest.sdk.module)),
        files=len(plan.devel),
        installed=sum(content.size for content in own.values()),
        shipped=shipped,
    )


def _selector_wheel(manifest: Manifest, sdk: SdkFile) -> _Wheel:
    members = selector_members(sdk, runtime_modules())
    return _Wheel(
        metadata=selector_metadata(manifest, sdk, family=sdk.default_family),
        tag="any",
        members=members,
        files=len(members),
        installed=sum(len(member.data) for member in members if isinstance(member.data, bytes)),
        shipped=None,
    )


def runtime_modules() -> dict[str, bytes]:
    """The modules of the runtime that goes into selectors: file name -> content."""
    return {
        each.name: each.read_bytes()
        for each in files("axletree_runtime").iterdir()
        if each.name.endswith((".py", ".typed"))
    }


def _elfs(known: Known, entries: Iterable[SdkEntry]) -> dict[str, ElfFacts]:
    return {entry.path: known.facts[entry.source] for entry in entries if entry.source in known.facts}


def _platform(shipped: PackageFile, elfs: dict[str, ElfFacts]) -> str:
    """The lowest manylinux tag that its files allow; where hosts must bring more than that promises, plain Linux."""
    own = {path: facts for path, facts in elfs.items() if facts.dynamic}
    tag = platform_tag(own, read_shipped(MANYLINUX_POLICIES))
    machine = single_machine(own)
    return f"linux_{machine}" if shipped.system and machine is not None else tag


def _write(folder: Path, wheel: _Wheel, request: SdkRequest) -> WheelFile:
    info = WheelInfo(tags=(f"py3-none-{wheel.tag}",), purelib=wheel.tag == "any")
    name = WheelName(
        project=wheel.metadata.name,
        version=wheel.metadata.version,
        python="py3",
        abi="none",
        platform=wheel.tag,
    )
    return write_wheel_file(
        folder,
        name,
        wheel.members,
        metadata=wheel.metadata,
        wheel_info=info,
        epoch=request.epoch,
        level=request.level,
        threads=request.threads,
        digest=True,
    )


def _report(wheel: _Wheel, file: StagedFile) -> SdkWheel:
    shipped = wheel.shipped
    return SdkWheel(
        file=file.path.name,
        size=file.size,
        sha256=file.sha256,
        files=wheel.files,
        installed=wheel.installed,
        targets=shipped.targets if shipped else (),
        requires=wheel.metadata.requires,
        system=tuple(need.soname for need in shipped.system) if shipped else (),
    )


def _sdist_report(made: SelectorSdist, staged: StagedFile, out: Path, selector: Selector) -> SdkSdist:
    return SdkSdist(
        file=(sdist_root(out, selector) / made.file).relative_to(out).as_posix(),
        size=staged.size,
        sha256=staged.sha256,
        files=made.files,
        installed=made.installed,
    )
