"""A conda channel made on this machine, of an interpreter and of wheels: what a client needs where there is no network.

The packages are for environments of this machine alone.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from packaging.utils import canonicalize_name

from axletree.binary.elf.facts import read_elf
from axletree.host.archive import map_file
from axletree.host.conda import write_conda_file
from axletree.host.files import replace_file
from axletree.host.grafts import graft_folders
from axletree.host.libraries import find_library
from axletree.host.shipped_data import read_shipped
from axletree.host.wheels import open_wheel
from axletree.package.conda.dist import conda_package_from_dist
from axletree.package.conda.interpreter import interpreter_packages
from axletree.package.conda.local import local_names, local_table
from axletree.package.conda.neighbours import CONDA_NEIGHBOURS
from axletree.package.conda.platforms import conda_subdir
from axletree.package.conda.repodata import CHANNEL, REPODATA, by_subdir, channel_file, index_files, read_repodata
from axletree.package.conda.runtimes import RuntimeLibrary, runtime_packages, runtime_sonames
from axletree.package.wheel.repack import packed_members

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from axletree.core.records import Interpreter
    from axletree.host.conda import CondaPackageFile
    from axletree.package.conda.model import CondaFile, CondaPackage
    from axletree.package.conda.repodata import ChannelFile
    from axletree.package.conda.requires import Names

_LEVEL = 1  # read once, on this machine


class LocalPackage(msgspec.Struct, frozen=True, kw_only=True):
    """A package of such a channel."""

    name: str
    version: str
    distribution: str
    """What it was made of."""


def make_channel(
    folder: Path, *, interpreter: Interpreter, python: str, wheels: Sequence[Path], names: Names
) -> tuple[LocalPackage, ...]:
    """Write the channel ``conda`` into a folder: ``python``, this machine's runtimes, and a package for each wheel.

    The runtimes are those of its compilers, libstdc++ and the like, on which packages that were built here depend.

    Args:
        folder: exists.
        interpreter: the Python that environments get.
        python: ``3.11`` or ``3.13t``: how it is called.
        wheels: of one environment, which need nothing beside each other.
        names: distribution -> conda packages.

    Returns:
        The packages made of wheels.

    Raises:
        IntegrityError: a wheel is damaged or can't become a package.
        HostError: the folder can't be written.
    """
    subdir = conda_subdir(interpreter.platform.replace("-", "_"))
    made = interpreter_packages(
        program=interpreter.path,
        version=interpreter.version,
        free_threaded=interpreter.free_threaded,
        subdir=subdir,
    )
    written = [_write(folder, package, files) for package, files in (*made, *_runtimes(interpreter, subdir))]
    opened = {canonicalize_name(wheel.metadata.name): wheel for wheel in map(open_wheel, wheels)}
    called = local_names(opened, names)
    table = local_table(called, names)
    local: list[LocalPackage] = []
    for distribution, wheel in opened.items():
        package, files = conda_package_from_dist(
            packed_members(wheel.view, wheel.entries, wheel.record, folder=wheel.folder, archive=wheel.path.name),
            wheel.metadata,
            wheel.wheel_info,
            subdir=subdir,
            python=python,
            name=called[distribution],
            build="0",
            names=table,
        )
        written.append(_write(folder, package, files))
        local.append(LocalPackage(name=package.name, version=package.version, distribution=distribution))
    write_index(folder, [channel_line(file) for file in written])
    return tuple(local)


def _runtimes(interpreter: Interpreter, subdir: str) -> Iterator[tuple[CondaPackage, tuple[CondaFile, ...]]]:
    """What this machine has of libstdc++ and its like: packages that were compiled here depend on them."""
    known = read_shipped(CONDA_NEIGHBOURS)
    like = read_elf(map_file(Path(interpreter.path)))
    folders = graft_folders()
    found = {name: find_library(name, folders, like=like) for name in runtime_sonames(known)}
    libraries = {
        name: RuntimeLibrary(facts=library.facts, data=library.path.read_bytes())
        for name, library in found.items()
        if library is not None
    }
    return runtime_packages(libraries, known, subdir=subdir)


def read_channel(folder: Path) -> tuple[ChannelFile, ...]:
    """What the channel below a folder lists.

    Raises:
        IntegrityError: an index of it can't be read.
    """
    pages = sorted(folder.glob(f"{CHANNEL}/*/{REPODATA}"))
    return tuple(
        line for page in pages for line in read_repodata(page.read_bytes(), subdir=page.parent.name, file=str(page))
    )


def write_index(folder: Path, lines: Iterable[ChannelFile]) -> None:
    """Write the indexes of the channel below a folder."""
    for subdir, files in by_subdir(lines).items():
        for path, data in index_files(files, subdir=subdir).items():
            replace_file(folder / path, data)


def md5_of(path: Path) -> str:
    """MD5 of a file, which channels have beside SHA-256."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, lambda: hashlib.md5(usedforsecurity=False)).hexdigest()


def _write(folder: Path, package: CondaPackage, files: Sequence[CondaFile]) -> CondaPackageFile:
    return write_conda_file(folder / CHANNEL / package.subdir, package, files, level=_LEVEL)


def channel_line(file: CondaPackageFile) -> ChannelFile:
    """What the index of a channel says of a package that was written.

    Raises:
        OSError: it can't be read.
    """
    return channel_file(file.facts, md5=md5_of(file.path), sha256=file.sha256)
