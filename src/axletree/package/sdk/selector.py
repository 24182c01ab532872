"""The selector: the distribution that users ask for. It carries the runtime, and its extras name all other packages."""

from __future__ import annotations

from typing import TYPE_CHECKING

from packaging.utils import canonicalize_name

from axletree.package.sdk.shipped import FILE
from axletree.package.sdk.wheels import metadata, shipped_json
from axletree.package.wheel.metadata import Metadata
from axletree.package.wheel.names import dist_info_folder
from axletree.package.wheel.writer import Member

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from axletree.package.sdk.manifest import Manifest
    from axletree.package.sdk.shipped import SdkFile, SdkPackage


def selector_extras(sdk: SdkFile, *, family: str) -> dict[str, tuple[str, ...]]:
    """Extra -> distributions that it installs, sorted by extra.

    ``libraries`` is the part that all GPUs share and what one family needs; ``libraries-FAMILY`` and
    ``device-TARGET`` the same for another; ``device`` and ``device-all`` what GPUs need, alone.

    Args:
        sdk: all packages.
        family: family or target that is meant where none is named.
    """
    extras: dict[str, list[str]] = {}
    shared = {each.package: each for each in sdk.packages if each.kind != "device"}
    for each in sdk.packages:
        if each.extra and each.kind != "device":
            extras.setdefault(each.extra, []).append(each.dist)
    for each in sdk.packages:
        if each.kind != "device":
            continue
        extras.setdefault(each.extra, []).extend([shared[each.package].dist, each.dist])
        if _is_for(each, family):
            extras.setdefault(shared[each.package].extra, []).append(each.dist)
            extras.setdefault("device", []).append(each.dist)
        if len(each.targets) == 1:
            extras.setdefault("device-all", []).append(each.dist)
    return {extra: tuple(dict.fromkeys(extras[extra])) for extra in sorted(extras)}


def _is_for(package: SdkPackage, family: str) -> bool:
    return package.extra in {f"libraries-{canonicalize_name(family)}", f"device-{canonicalize_name(family)}"}


def selector_metadata(manifest: Manifest, sdk: SdkFile, *, family: str) -> Metadata:
    """The METADATA of the selector, with all packages pinned to its own version."""
    always = [f"{each.dist}=={sdk.version}" for each in sdk.packages if not each.extra and each.kind != "device"]
    fields = metadata(manifest, dist=sdk.dist, version=sdk.version, requires=always).fields
    return Metadata(fields=(*fields, *_extra_fields(selector_extras(sdk, family=family), sdk.version)))


def _extra_fields(extras: Mapping[str, tuple[str, ...]], version: str) -> Iterator[tuple[str, str]]:
    for extra, dists in extras.items():
        yield "Provides-Extra", extra
        for dist in dists:
            yield "Requires-Dist", f"{dist}=={version} ; extra == '{extra}'"


def selector_members(sdk: SdkFile, runtime: Mapping[str, bytes]) -> tuple[Member, ...]:
    """The files of the selector.

    Args:
        sdk: what it says of the SDK.
        runtime: modules of the runtime, file name -> content.
    """
    folder = dist_info_folder(sdk.dist, sdk.version)
    points = f"[console_scripts]\n{sdk.command} = {sdk.module}.__main__:main\n"
    return (
        *(Member(path=f"{sdk.module}/{name}", data=data) for name, data in sorted(runtime.items())),
        Member(path=f"{sdk.module}/{FILE}", data=shipped_json(sdk)),
        Member(path=f"{folder}/entry_points.txt", data=points.encode()),
    )
