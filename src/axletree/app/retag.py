"""Give wheels other tags, another build tag or another local version."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from packaging.utils import canonicalize_name
from packaging.version import Version

from axletree.binary.zip.records import EARLIEST
from axletree.core.errors import IntegrityError, Problem, UsageError
from axletree.host.archive import write_wheel_file
from axletree.host.wheels import open_wheel
from axletree.package.wheel.names import dist_info_folder, render_wheel_name
from axletree.package.wheel.record import SIGNATURES
from axletree.package.wheel.repack import packed_members, renamed_members
from axletree.package.wheel.retag import change_info, change_metadata, change_name

if TYPE_CHECKING:
    from axletree.host.wheels import OpenWheel
    from axletree.package.wheel.retag import Wishes


class Retagged(msgspec.Struct, frozen=True, kw_only=True):
    """A retagged wheel."""

    wheel: Path
    size: int
    """Size in bytes."""
    unsigned: bool
    """Whether the old wheel was signed; the new one is not."""


class RetaggedWheels(msgspec.Struct, frozen=True, kw_only=True):
    """Retagged wheels: report of ``retag``."""

    wheels: tuple[Retagged, ...]


def retag(
    path: Path,
    wishes: Wishes,
    *,
    out: Path | None = None,
    epoch: int = EARLIEST,
    threads: int = 1,
    verify: bool = True,
) -> Retagged:
    """Write a wheel of the same content under another name; nothing is compressed again.

    Args:
        path: the wheel, which stays as it is.
        wishes: what shall be other.
        out: folder for the new wheel; its own if ``None``. A wheel of that name there is replaced.
        epoch: date of the members.
        threads: how many verify at once.
        verify: read the new wheel back before it gets its name.

    Raises:
        HostError: the wheel can't be read, or the new one not be written.
        IntegrityError: it is no sound wheel.
        UsageError: a wish is not possible, or nothing would change.
    """
    wheel = open_wheel(path)
    _require_one_name(wheel)
    name = change_name(wheel.name, wishes)
    if render_wheel_name(name) == render_wheel_name(wheel.name):
        raise UsageError(
            f"{path.name} already has the requested tags and version",
            hint="choose different values for --python, --abi, --platform, --build or --local",
        )
    metadata = change_metadata(wheel.metadata, wheel.name, name)
    members = packed_members(wheel.view, wheel.entries, wheel.record, folder=wheel.folder, archive=path.name)
    folder = path.parent if out is None else out
    written = write_wheel_file(
        folder,
        name,
        renamed_members(members, source=wheel.folder, target=dist_info_folder(metadata.name, metadata.version)),
        metadata=metadata,
        wheel_info=change_info(wheel.wheel_info, wheel.name, name),
        epoch=epoch,
        threads=threads,
        verify=verify,
    )
    signatures = {f"{wheel.folder}/{signature}" for signature in SIGNATURES}
    return Retagged(
        wheel=written.path, size=written.size, unsigned=any(entry.name in signatures for entry in wheel.entries)
    )


def _require_one_name(wheel: OpenWheel) -> None:
    """Installers refuse a wheel whose file name and METADATA disagree, so nothing of it may be carried on."""
    said = (canonicalize_name(wheel.metadata.name), str(Version(wheel.metadata.version)))
    if said != (wheel.name.project, wheel.name.version):
        message = f"the wheel has METADATA for {' '.join(said)}, which does not match the file name"
        hint = "to name it after its METADATA, run axletree unpack and axletree pack"
        raise IntegrityError(Problem(file=wheel.path.name, message=message, hint=hint))
