"""The selector: the distribution that users ask for. It carries the runtime, and its extras name all other packages.

There are two flavours of it, and an index root has one of them at a version. The wheel is the same for everybody, so
its extra ``libraries`` means the default family and a lock file holds everywhere. The sdist is built where it is
installed, with a backend of its own that needs nothing but Python, and means the GPUs of that host.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from packaging.utils import canonicalize_name

from axletree.package.gzip_stored import gzip_stored
from axletree.package.sdk.shipped import FILE
from axletree.package.sdk.wheels import metadata, shipped_json
from axletree.package.tar import END, padding, tar_header
from axletree.package.wheel.metadata import Metadata, render_metadata
from axletree.package.wheel.names import dist_info_folder, stem
from axletree.package.wheel.writer import Member
from axletree_runtime._extras import extra_fields, extras_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from axletree.package.sdk.manifest import Manifest
    from axletree.package.sdk.shipped import SdkFile, SdkPackage

BACKEND = "_backend.py"
"""The module of the runtime that only the sdist has."""
_TAR_RECORD = 10240
"""Tar archives are whole records: POSIX, ``pax``, blocking factor 20."""


class SelectorSdist(NamedTuple):
    """An sdist, complete."""

    file: str
    """Its name (PEP 625)."""
    data: bytes
    files: int
    installed: int
    """Bytes of its files."""


def default_packages(sdk: SdkFile, *, family: str) -> frozenset[str]:
    """Distributions with the GPU code of a family or target: the smallest for all of it, else for each target of it."""
    wanted = {target for name, targets in sdk.families.items() if _same(name, family) for target in targets}
    groups: dict[str, list[SdkPackage]] = {}
    for each in sdk.packages:
        if each.kind == "device" and not wanted.isdisjoint(each.targets):
            groups.setdefault(each.package, []).append(each)
    found: set[str] = set()
    for group in groups.values():
        parts = [wanted] if any(wanted <= {*each.targets} for each in group) else [{target} for target in wanted]
        for part in parts:
            fitting = [each for each in group if part <= {*each.targets}]
            found |= {min(fitting, key=lambda each: (len(each.targets), each.dist)).dist} if fitting else set()
    return frozenset(found)


def _same(name: str, other: str) -> bool:
    return canonicalize_name(name) == canonicalize_name(other)


def selector_metadata(manifest: Manifest, sdk: SdkFile, *, family: str) -> Metadata:
    """The METADATA of the selector, with all packages pinned to its own version.

    Args:
        manifest: licence and addresses.
        sdk: all packages.
        family: family or target that is meant where none is named.
    """
    fields = metadata(manifest, dist=sdk.dist, version=sdk.version).fields
    chosen = default_packages(sdk, family=family)
    return Metadata(fields=(*fields, *extra_fields(sdk.packages, chosen, sdk.version)))


def selector_members(sdk: SdkFile, runtime: Mapping[str, bytes]) -> tuple[Member, ...]:
    """The files of the wheel.

    Args:
        sdk: what it says of the SDK.
        runtime: modules of the runtime, file name -> content.
    """
    folder = dist_info_folder(sdk.dist, sdk.version)
    points = f"[console_scripts]\n{sdk.command} = {sdk.module}.__main__:main\n"
    return (
        *(Member(path=f"{sdk.module}/{name}", data=data) for name, data in sorted(runtime.items()) if name != BACKEND),
        Member(path=f"{sdk.module}/{FILE}", data=shipped_json(sdk)),
        Member(path=f"{folder}/entry_points.txt", data=points.encode()),
    )


def selector_sdist(manifest: Manifest, sdk: SdkFile, runtime: Mapping[str, bytes], *, epoch: int) -> SelectorSdist:
    """The sdist (PEP 517, 518, 625, 643): the same bytes on any machine.

    Compressors differ between versions and processors, so it is stored: a few hundred kilobytes.

    Args:
        manifest: licence and addresses.
        sdk: what it says of the SDK.
        runtime: modules of the runtime, file name -> content.
        epoch: date of its files, seconds since 1970.
    """
    about = metadata(manifest, dist=sdk.dist, version=sdk.version).fields
    extras = [("Provides-Extra", extra) for extra in extras_of(sdk.packages, ())]
    fields = (*about, *extras, ("Dynamic", "Requires-Dist"))
    module = f'"{sdk.module}.{BACKEND.removesuffix(".py")}"'
    files = {
        "PKG-INFO": render_metadata(Metadata(fields=fields)),
        "pyproject.toml": f'[build-system]\nrequires = []\nbuild-backend = {module}\nbackend-path = ["."]\n'.encode(),
        f"{sdk.module}/{FILE}": shipped_json(sdk),
        **{f"{sdk.module}/{name}": data for name, data in runtime.items()},
    }
    folder = stem(sdk.dist, sdk.version)
    size = sum(map(len, files.values()))
    return SelectorSdist(f"{folder}.tar.gz", gzip_stored(_tar(folder, files, epoch)), len(files), size)


def _tar(folder: str, files: Mapping[str, bytes], epoch: int) -> bytes:
    parts = []
    for path in sorted(files):
        data = files[path]
        header = tar_header(f"{folder}/{path}", size=len(data), executable=False, mtime=epoch)
        parts += [header, data, padding(len(data))]
    archive = b"".join([*parts, END])
    return archive + bytes(-len(archive) % _TAR_RECORD)
