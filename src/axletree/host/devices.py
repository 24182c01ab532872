"""Devices that programs in an image see: those that every program may expect, and GPUs only if they are passed on.

An image has no devices of its own. Containers get the same few, so what runs in an image finds the same on all hosts.
With GPUs come the libraries of the NVIDIA driver, which have to be of the release of the host's kernel module; ROCm's
are the wheels' own.
"""

from __future__ import annotations

import fnmatch
import os
from pathlib import Path
from typing import TYPE_CHECKING

from axletree.host.mounts import MS_NOSUID, bind, bind_read_only, mount

if TYPE_CHECKING:
    from collections.abc import Iterable

_COMMON = ("full", "mqueue", "null", "pts", "random", "shm", "tty", "urandom", "zero")
_GPUS = ("dri", "dxg", "kfd", "nvidia*")
_LINKS = {
    "fd": "/proc/self/fd",
    "ptmx": "pts/ptmx",
    "stderr": "/proc/self/fd/2",
    "stdin": "/proc/self/fd/0",
    "stdout": "/proc/self/fd/1",
}
_DRIVER = (
    "libcuda.so*",
    "libcudadebugger.so*",
    "libnvcuvid.so*",
    "libnvidia-allocator.so*",
    "libnvidia-cfg.so*",
    "libnvidia-encode.so*",
    "libnvidia-gpucomp.so*",
    "libnvidia-ml.so*",
    "libnvidia-nvvm*.so*",
    "libnvidia-opencl.so*",
    "libnvidia-ptxjitcompiler.so*",
)
"""Libraries of the NVIDIA driver that programs without a display use."""
CUDA_DRIVER = "libcuda.so.1"
"""The library in whose folder the others are."""


def shown_devices(present: Iterable[str], *, gpus: bool) -> tuple[str, ...]:
    """Which entries of the host's ``/dev`` programs in an image see."""
    wanted = (*_COMMON, *(_GPUS if gpus else ()))
    return tuple(sorted(name for name in present if any(fnmatch.fnmatchcase(name, each) for each in wanted)))


def driver_libraries(present: Iterable[str]) -> tuple[str, ...]:
    """Which files of the folder of :data:`CUDA_DRIVER` programs in an image need to use the GPUs."""
    return tuple(sorted(name for name in present if any(fnmatch.fnmatchcase(name, each) for each in _DRIVER)))


def show_devices(place: Path, *, gpus: bool, source: Path = Path("/dev")) -> str | None:
    """Fill the ``/dev`` of an image; what the kernel refuses to show there, ``None`` if it shows everything.

    Args:
        place: the folder.
        gpus: whether GPUs are among the devices.
        source: where the devices are.
    """
    if not mount("devices", place, "tmpfs", flags=MS_NOSUID, options="mode=755,size=64k"):
        return str(source)
    for name in shown_devices(os.listdir(source), gpus=gpus):  # noqa: PTH208 (names)
        target = place / name
        if (source / name).is_dir():
            target.mkdir()
        else:
            target.touch()
        if not bind(source / name, target):
            return str(source / name)
    for name, leads_to in _LINKS.items():
        (place / name).symlink_to(leads_to)
    return None


def show_driver(place: Path, folders: Iterable[Path]) -> str | None:
    """Show the libraries of the NVIDIA driver in a folder, read-only; the one that the kernel refuses to show.

    Args:
        place: an empty folder; it stays so where the host has no such driver.
        folders: where the loader of this host looks for libraries.
    """
    folder = next((each for each in folders if (each / CUDA_DRIVER).is_file()), None)
    if folder is None:
        return None
    for name in driver_libraries(os.listdir(folder)):  # noqa: PTH208 (names)
        source, target = (folder / name).resolve(), place / name
        if not source.is_file():
            continue
        target.touch()
        if not (bind(source, target) and bind_read_only(target)):
            return str(source)
    return None
