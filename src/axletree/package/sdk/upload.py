"""Where an SDK's packages lie in a store: ``RUN-PLATFORM/python/GROUP``, as TheRock's runs upload them.

Below that all of them together, or each GPU family in an index root of its own that links what is for all GPUs.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import msgspec
from packaging.utils import canonicalize_name

from axletree.core.errors import Problem, UsageError
from axletree.package.sdk.selector import default_packages
from axletree.package.wheel.metadata import Metadata
from axletree_runtime._extras import extra_fields

if TYPE_CHECKING:
    from axletree.package.sdk.shipped import SdkFile

GENERIC = "generic"
"""Folder of what is for all GPUs."""
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_GROUP = re.compile(r"[A-Za-z0-9][A-Za-z0-9.:+_-]*")


def upload_folder(run_id: str, platform: str, group: str) -> str:
    """The folder of a run's packages, relative to the store.

    Raises:
        UsageError: a part is no name of a folder.
    """
    problems = [
        Problem(key=option, message=f"{text[:100]!r} is not a valid folder name", hint=hint)
        for option, text, pattern, hint in (
            ("--run-id", run_id, _NAME, "use letters, digits, '.', '_' and '-'"),
            ("--artifact-group", group, _GROUP, "use a name such as gfx94X-dcgpu"),
        )
        if not pattern.fullmatch(text)
    ]
    if problems:
        raise UsageError(*problems)
    return f"{run_id}-{platform}/python/{group}"


def gpu_folders(sdk: SdkFile) -> dict[str, tuple[str, ...]]:
    """Folder -> GPU targets: one for each family that has a package, and for each target that is in none of them."""
    devices = [each for each in sdk.packages if each.kind == "device"]
    names = {f"libraries-{canonicalize_name(name)}": name for name in sdk.families}
    folders = {
        names.get(each.extra, each.extra.partition("-")[2]): each.targets for each in devices if len(each.targets) > 1
    }
    inside = {target for targets in folders.values() for target in targets}
    alone = {target for each in devices for target in each.targets} - inside
    return dict(sorted((folders | {target: (target,) for target in alone}).items()))


def placed_packages(sdk: SdkFile) -> dict[str, str]:
    """Distribution -> folder that its file is in. What several families have is in the first, the others link it."""
    folders = gpu_folders(sdk)
    places: dict[str, str] = {}
    for each in sdk.packages:
        fitting = (name for name, targets in folders.items() if {*each.targets} <= {*targets})
        places[each.dist] = next(fitting, GENERIC) if each.kind == "device" else GENERIC
    return places


def for_folder(sdk: SdkFile, folder: str) -> SdkFile:
    """What the selector in the index of a family knows: this family is the default, and there are no others."""
    targets = set(gpu_folders(sdk)[folder])
    return msgspec.structs.replace(
        sdk,
        packages=tuple(each for each in sdk.packages if each.kind != "device" or targets.issuperset(each.targets)),
        families={name: holds for name, holds in sdk.families.items() if targets.issuperset(holds)},
        default_family=folder,
    )


def for_sdk(metadata: Metadata, sdk: SdkFile) -> Metadata:
    """The selector's METADATA with the extras of another choice of packages."""
    kept = tuple(field for field in metadata.fields if field[0] not in {"Provides-Extra", "Requires-Dist"})
    chosen = default_packages(sdk, family=sdk.default_family)
    return Metadata(fields=(*kept, *extra_fields(sdk.packages, chosen, sdk.version)), description=metadata.description)


def all_pins(sdk: SdkFile) -> Metadata:
    """A METADATA that requires every package: what an sdist of the selector may come to want."""
    pins = [("Requires-Dist", f"{each.dist}=={sdk.version}") for each in sdk.packages]
    return Metadata(fields=(("Name", sdk.dist), ("Version", sdk.version), *pins))
