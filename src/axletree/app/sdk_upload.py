"""Put the packages of an SDK into a store, in TheRock's layout: verified, whole, and never twice."""

from __future__ import annotations

import posixpath
import shutil
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import quote

import msgspec
from packaging.version import Version

from axletree.app.index_root import Addition, StagedFile, add_to_roots, index_line, staging
from axletree.app.listings import listed_wheels
from axletree.app.sdk_selector import AT_INSTALL
from axletree.binary.zip.records import EARLIEST
from axletree.core.errors import IntegrityError, Problem, PublishError, UsageError
from axletree.host.archive import digest_file, write_wheel_file
from axletree.host.files import file_errors
from axletree.host.indexes import local_path, redact
from axletree.host.sdk.built import BuiltFile, read_built, selector_file
from axletree.host.wheels import open_wheel
from axletree.package.closure import OwnWheel
from axletree.package.index import distribution_of
from axletree.package.sdk.release import check_flavour, check_pins, distributions_of
from axletree.package.sdk.upload import (
    GENERIC,
    all_pins,
    for_folder,
    for_sdk,
    gpu_folders,
    placed_packages,
    upload_folder,
)
from axletree.package.sdk.wheels import REQUIRES_PYTHON, shipped_json
from axletree.package.wheel.names import parse_wheel_name
from axletree.package.wheel.repack import packed_members
from axletree.package.wheel.writer import Member
from axletree.report.sdk import UploadedFile, UploadedIndex, UploadReport

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from axletree.host.folder_lock import Note
    from axletree.package.index import IndexFile
    from axletree.package.sdk.release import Flavour
    from axletree.package.sdk.shipped import SdkFile

INSTALL = "install.md"
"""The file that says how to install what lies beside it."""


class UploadRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What is asked for."""

    source: Path
    """Index root that ``sdk build`` wrote."""
    store: str
    """A folder."""
    run_id: str
    platform: str
    group: str
    per_family: bool = False
    """An index for each GPU family."""
    url: str | None = None
    """Address under which the store is served."""
    dry_run: bool = False


class _Root(NamedTuple):
    """An index root of the store."""

    folder: str
    """Below that of the packages; empty: that itself."""
    files: tuple[BuiltFile, ...]
    linked: tuple[IndexFile, ...]
    sdk: SdkFile | None
    """What its selector knows; None where it has none."""


def upload_sdk(
    request: UploadRequest, *, instructions: Callable[[UploadReport], str], note: Note = lambda _: None
) -> UploadReport:
    """Put the packages of an index root into a store: all of them, their pages and instructions, or nothing.

    Args:
        request: what and where to.
        instructions: the text of the file that says how to install them.
        note: told whom this waits for, when somebody else writes into the same indexes.

    Raises:
        UsageError: a name is none, the store is no folder, or there is no selector.
        IntegrityError: a package is damaged, is not what its index says, or requires one that is not there.
        PublishError: the store has a file of the same name with other content, or both flavours of the selector.
        HostError: something can't be read or written.
    """
    store = local_path(request.store)
    if store is None:
        hint = (
            "specify a folder that is mounted from or synchronized with the server, and pass the server's URL as --url"
        )
        raise UsageError(
            f"{redact(request.store)} is not a folder, and servers have no common upload protocol", hint=hint
        )
    folder = upload_folder(request.run_id, request.platform, request.group)
    place = store.absolute() / folder
    built, sdists = _read_source(request.source)
    _check_platform(request.platform, built)
    with ExitStack() as stack:
        if request.dry_run:
            scratch = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        else:
            scratch = stack.enter_context(staging(place))
        roots = _roots(built, sdists, scratch, per_family=request.per_family)
        notes = (
            ("leaving out the selector's sdist, which selects a family during installation",)
            if request.per_family and sdists
            else ()
        )
        if request.dry_run:
            return _report(request, folder, place, roots, _states(place, roots), notes)
        report: UploadReport | None = None

        def decide() -> list[Addition]:
            nonlocal report
            states = _states(place, roots)
            report = _report(request, folder, place, roots, states, notes)
            texts = {INSTALL: instructions(report).encode()}
            return [*_additions(place, roots, states, scratch), Addition(out=place, staged=(), texts=texts)]

        add_to_roots([*(place / root.folder for root in roots), place], decide, durable=True, note=note)
        assert report is not None  # noqa: S101 (it was decided)
        return report


def _read_source(source: Path) -> tuple[tuple[BuiltFile, ...], tuple[BuiltFile, ...]]:
    """The packages of a root, and those of the root below it with the other selector; all are sound and complete."""
    built = read_built(source)
    sdists = read_built(source / AT_INSTALL) if (source / AT_INSTALL).is_dir() else ()
    selectors = [each for each in (*built, *sdists) if each.sdk is not None]
    if not selectors:
        hint = "specify a folder written by axletree sdk build"
        raise UsageError(f"{source} does not contain an SDK's selector", hint=hint)
    for root, files in ((source, built), (source / AT_INSTALL, sdists)):
        _check_listed(root, files)
        for each in files:
            if each.sdk is not None:
                other = [file.path.name for file in files]
                flavour: Flavour = "wheel" if each.metadata else "sdist"
                check_flavour(each.project, each.version, flavour, other, root=str(root))
    pins = [all_pins(each.sdk) for each in selectors if each.sdk is not None]
    wheels = [each.metadata for each in built if each.metadata is not None]
    check_pins([*wheels, *pins], distributions_of(each.path.name for each in (*built, *sdists)))
    return built, sdists


def _check_platform(platform: str, built: Iterable[BuiltFile]) -> None:
    """Wheels are for the platform that the run is said to be of."""
    prefix = {"linux": ("linux", "manylinux", "musllinux"), "windows": ("win",)}[platform]
    problems = [
        Problem(file=str(each.path), message=f"the wheel is not built for {platform}")
        for each in built
        if each.metadata is not None and not parse_wheel_name(each.path.name).platform.startswith((*prefix, "any"))
    ]
    if problems:
        raise UsageError(*problems)


def _check_listed(root: Path, files: Iterable[BuiltFile]) -> None:
    """Packages are what the pages beside them say."""
    listed = listed_wheels(root)
    problems = [
        Problem(
            file=str(each.path),
            message="the wheel was changed or damaged after it was built, so it does not match its index",
        )
        for each in files
        if each.path.name in listed and listed[each.path.name].sha256 != each.sha256
    ]
    if problems:
        raise IntegrityError(*problems)


def _roots(built: Sequence[BuiltFile], sdists: Sequence[BuiltFile], scratch: Path, *, per_family: bool) -> list[_Root]:
    """The index roots of an upload."""
    if per_family:
        return _family_roots(built, scratch)
    root = _Root("", tuple(built), (), _newest(built))
    if sdists:
        others = [each for each in built if each.sdk is None]
        return [root, _Root(AT_INSTALL, tuple(sdists), _links(others, ".."), _newest(sdists))]
    return [root]


def _states(place: Path, roots: Iterable[_Root]) -> dict[str, dict[str, bool]]:
    """Which files of each root are there already."""
    return {root.folder: {each.path.name: _state(place / root.folder, each) for each in root.files} for root in roots}


def _report(
    request: UploadRequest,
    folder: str,
    place: Path,
    roots: Sequence[_Root],
    states: Mapping[str, Mapping[str, bool]],
    notes: tuple[str, ...],
) -> UploadReport:
    base = (redact(request.url) if request.url else place.parents[2].as_uri()).rstrip("/")
    built = [each for root in roots for each in root.files]
    files = (
        UploadedFile(
            path="/".join(part for part in (folder, root.folder, each.path.name) if part),
            size=each.size,
            sha256=each.sha256,
            state="there" if states[root.folder][each.path.name] else "new",
        )
        for root in roots
        for each in root.files
    )
    return UploadReport(
        folder=folder,
        files=tuple(files),
        indexes=tuple(_index(f"{base}/{quote(folder)}", root, built) for root in roots if root.sdk is not None),
        dry_run=request.dry_run,
        notes=notes,
    )


def _state(root: Path, file: BuiltFile) -> bool:
    """Whether a root has a file already, whole and listed.

    Raises:
        PublishError: it has another one of this name.
    """
    target = root / file.path.name
    if not target.exists():
        return False
    with file_errors(target):
        found = digest_file(target)
    if found != file.sha256:
        message = (
            f"the file is already in the store with different content (sha256 {found[:16]}..., now "
            f"{file.sha256[:16]}...)"
        )
        hint = "choose a different --run-id, --artifact-group or version"
        raise PublishError(Problem(file=str(target), message=message, hint=hint))
    return file.path.name in listed_wheels(root)


def _additions(
    place: Path, roots: Sequence[_Root], states: Mapping[str, Mapping[str, bool]], scratch: Path
) -> list[Addition]:
    """What each root gets: copies of what it has not yet."""
    additions = []
    for number, root in enumerate(roots):
        new = [each for each in root.files if not states[root.folder][each.path.name]]
        there = [each for each in root.files if states[root.folder][each.path.name]]
        staged = [_copy(each, scratch / f"{number}") for each in new]
        linked = (*root.linked, *_links(there, ""))
        additions.append(Addition(out=place / root.folder, staged=staged, linked=linked, links_page=True))
    return additions


def _copy(file: BuiltFile, folder: Path) -> StagedFile:
    """Copy a package into the staging folder and read the copy back."""
    target = folder / file.path.name
    with file_errors(file.path, "the file cannot be copied"):
        folder.mkdir(exist_ok=True)
        shutil.copyfile(file.path, target)
        found = digest_file(target)
    if found != file.sha256:
        raise IntegrityError(Problem(file=str(file.path), message="the file changed while it was being copied"))
    return _staged(file, target)


def _staged(file: BuiltFile, path: Path) -> StagedFile:
    requires = file.metadata.get("Requires-Python") if file.metadata else REQUIRES_PYTHON
    return StagedFile(
        path=path, size=file.size, sha256=file.sha256, metadata=file.metadata_bytes, requires_python=requires
    )


def _links(files: Iterable[BuiltFile], folder: str) -> tuple[IndexFile, ...]:
    return tuple(msgspec.structs.replace(index_line(_staged(each, each.path)), folder=folder) for each in files)


def _newest(files: Iterable[BuiltFile]) -> SdkFile | None:
    found = [each.sdk for each in files if each.sdk is not None]
    return max(found, key=lambda sdk: Version(sdk.version), default=None)


def _family_roots(built: Sequence[BuiltFile], scratch: Path) -> list[_Root]:
    """A root for what all GPUs share, and one for each family: its packages, a selector for it, links to the rest."""
    selectors = [each for each in built if each.sdk is not None and each.metadata is not None]
    if len(selectors) != 1 or len([each for each in built if each.sdk is not None]) != 1:
        hint = "build a single version into its own folder with axletree sdk build --selector wheel"
        raise UsageError("--per-family needs the selector as a wheel, and only one version of it", hint=hint)
    (selector,) = selectors
    sdk = selector.sdk
    assert sdk is not None  # noqa: S101 (it was chosen for it)
    places = placed_packages(sdk)
    files = {each.project: each for each in built if each.project in places}
    roots = [_Root(GENERIC, tuple(file for dist, file in files.items() if places[dist] == GENERIC), (), None)]
    for name in gpu_folders(sdk):
        own = for_folder(sdk, name)
        wanted = {each.dist for each in own.packages}
        mine = [file for dist, file in files.items() if places[dist] == name]
        links = [
            line
            for dist, file in files.items()
            if dist in wanted and places[dist] != name
            for line in _links([file], f"../{places[dist]}")
        ]
        made = _selector_for(selector, own, scratch / f"for-{name}")
        roots.append(_Root(name, (*mine, made), tuple(links), own))
    return roots


def _selector_for(selector: BuiltFile, sdk: SdkFile, folder: Path) -> BuiltFile:
    """The selector with what the index of a family says of the SDK; nothing else of it changes."""
    wheel = open_wheel(selector.path)
    found = selector_file(wheel)
    assert found is not None  # noqa: S101 (it was read before)
    members = packed_members(wheel.view, wheel.entries, wheel.record, folder=wheel.folder, archive=selector.path.name)
    changed = [Member(path=each.path, data=shipped_json(sdk)) if each.path == found[0] else each for each in members]
    folder.mkdir()
    written = write_wheel_file(
        folder,
        wheel.name,
        changed,
        metadata=for_sdk(wheel.metadata, sdk),
        wheel_info=wheel.wheel_info,
        epoch=EARLIEST,
        digest=True,
    )
    (made,) = read_built(written.path.parent)
    return made


def _index(base: str, root: _Root, built: Sequence[BuiltFile]) -> UploadedIndex:
    assert root.sdk is not None  # noqa: S101 (others have no instructions)
    sdk = root.sdk
    known = {each.path.name: each for each in (*built, *root.files)}  # a family's selector has a name that is in both
    places = {each.path.name: root.folder for each in root.files}
    places |= {line.filename: posixpath.normpath(posixpath.join(root.folder, line.folder)) for line in root.linked}
    wheels = tuple(
        OwnWheel(filename=name, url=_below(base, place, name), requires=metadata.requires)
        for name, place in places.items()
        if (metadata := known[name].metadata) is not None
    )
    return UploadedIndex(
        url=_below(base, root.folder),
        at_install=(sdk.dist, sdk.version) not in {distribution_of(wheel.filename) for wheel in wheels},
        sdk=sdk.dist,
        version=sdk.version,
        extras=tuple(dict.fromkeys(each.extra for each in sdk.packages if each.extra and each.kind != "device")),
        gpu_extras=tuple(each.extra for each in sdk.packages if each.kind == "device"),
        default_family=sdk.default_family,
        variable=f"{sdk.prefix}_TARGET_FAMILY",
        wheels=wheels,
    )


def _below(base: str, *parts: str) -> str:
    """The address of something below another; ``.`` and nothing are that itself."""
    return "/".join([base, *(quote(part) for part in parts if part not in ("", "."))])
