"""Unpack wheels."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import msgspec

from axletree.host.wheels import Unpacked, open_wheel, unpack_as_it_is

if TYPE_CHECKING:
    from pathlib import Path


class UnpackedWheels(msgspec.Struct, frozen=True, kw_only=True):
    """Unpacked wheels: report of ``unpack``."""

    wheels: tuple[Unpacked, ...]


def unpack(path: Path, *, out: Path) -> Unpacked:
    """Unpack a wheel into ``NAME-VERSION`` below a folder, checked against its RECORD.

    Raises:
        HostError: the wheel can't be read, or the folder not be written.
        IntegrityError: it is no sound wheel, or ``NAME-VERSION`` exists there. Nothing is left behind then.
    """
    wheel = open_wheel(path)
    folder = out / wheel.folder.removesuffix(".dist-info")
    return unpack_as_it_is(wheel, folder, threads=len(os.sched_getaffinity(0)))
