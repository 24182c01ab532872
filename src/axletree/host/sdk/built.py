"""The packages of an SDK that were built, as they lie in a folder."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from axletree.binary.zip.members import read_member
from axletree.core.errors import IntegrityError, Problem
from axletree.core.values import Digest
from axletree.host.archive import digest_file
from axletree.host.files import file_errors
from axletree.host.wheels import open_wheel
from axletree.package.index import distribution_of
from axletree.package.sdk.shipped import FILE, SdkFile
from axletree.package.wheel.metadata import Metadata

if TYPE_CHECKING:
    from axletree.host.wheels import OpenWheel

_LIMIT = 16 << 20


class BuiltFile(msgspec.Struct, frozen=True, kw_only=True):
    """A wheel or sdist."""

    path: Path
    project: str
    """Normalised name of its distribution."""
    version: str
    size: int
    sha256: Digest
    metadata: Metadata | None = None
    """Of a wheel."""
    metadata_bytes: bytes | None = None
    sdk: SdkFile | None = None
    """What it knows of the SDK, if it is a selector."""


def read_built(folder: Path) -> tuple[BuiltFile, ...]:
    """The wheels and sdists in a folder, not below it, by name. What begins with a dot is passed over.

    Raises:
        HostError: the folder or a file can't be read.
        IntegrityError: one is no sound wheel or sdist; names all of them.
    """
    with file_errors(folder):
        paths = sorted(path for path in folder.iterdir() if path.name.endswith((".whl", ".tar.gz")))
    found: list[BuiltFile] = []
    problems: list[Problem] = []
    for path in paths:
        if path.name.startswith("."):
            continue
        try:
            found.append(_wheel(path) if path.suffix == ".whl" else _sdist(path))
        except IntegrityError as error:
            problems.extend(error.problems)
    if problems:
        raise IntegrityError(*problems)
    return tuple(found)


def selector_file(wheel: OpenWheel) -> tuple[str, SdkFile] | None:
    """What a selector's wheel knows of its SDK, and the member that says so; ``None`` for other wheels."""
    for entry in wheel.entries:
        module, _, name = entry.name.partition("/")
        if name == FILE and not module.startswith("_"):
            sdk = _decode(read_member(wheel.view, entry, archive=wheel.path.name, limit=_LIMIT))
            if sdk is not None:
                return entry.name, sdk
    return None


def _wheel(path: Path) -> BuiltFile:
    wheel = open_wheel(path)
    entry = next(each for each in wheel.entries if each.name == f"{wheel.folder}/METADATA")
    found = selector_file(wheel)
    return BuiltFile(
        path=path,
        project=wheel.name.project,
        version=wheel.name.version,
        size=path.stat().st_size,
        sha256=digest_file(path),
        metadata=wheel.metadata,
        metadata_bytes=read_member(wheel.view, entry, archive=path.name, limit=_LIMIT),
        sdk=found[1] if found else None,
    )


def _sdist(path: Path) -> BuiltFile:
    project, version = distribution_of(path.name)
    sdk: SdkFile | None = None
    try:
        with tarfile.open(path, "r:gz") as archive:
            for member in archive:
                if member.isfile() and member.name.count("/") == 2 and member.name.endswith(f"/{FILE}"):
                    stream = archive.extractfile(member) or io.BytesIO()
                    sdk = _decode(stream.read(_LIMIT))
    except (tarfile.TarError, EOFError, OSError) as error:
        raise IntegrityError(Problem(file=str(path), message=f"the file is not a valid sdist: {error}")) from error
    size = path.stat().st_size
    return BuiltFile(path=path, project=project, version=version, size=size, sha256=digest_file(path), sdk=sdk)


def _decode(data: bytes) -> SdkFile | None:
    try:
        return msgspec.json.decode(data, type=SdkFile)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return None
