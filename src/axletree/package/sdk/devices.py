"""Which files of a package hold code of GPUs, and which packages for families and targets that gives."""

from __future__ import annotations

import posixpath
import re
from typing import TYPE_CHECKING

import msgspec
from packaging.utils import canonicalize_name

from axletree.core.errors import IntegrityError, Problem
from axletree.core.units import some_of
from axletree.package.gpu.arch import parse_code
from axletree.package.sdk.entries import GENERIC
from axletree.package.sdk.plan import PlatformFile

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from axletree.package.sdk.entries import SdkEntry
    from axletree.package.sdk.manifest import Package
    from axletree.package.sdk.targets import Selection

_TARGET = re.compile(r"(?<![a-z0-9])gfx([0-9a-f]{3,})")
_UNITS = (2, 3)
"""Digits that MIOpen puts behind a target for the number of compute units: ``gfx90a68.kdb``."""
_SHOWN = 3
_DATA = re.compile(r"\.(?:co|dat|hsaco|kdb|kpack|db|txt|bc|yaml|json|fdb|model|tn)$|\.kdb\.bz2$|\.db\.txt$")
"""Kinds of files that libraries keep kernels, and what they know of GPUs, in."""


class DevicePackage(msgspec.Struct, frozen=True, kw_only=True):
    """What goes into a package for a family or one target."""

    name: str
    """The family or the target."""
    targets: tuple[str, ...]
    dist: str
    folder: str
    extra: str
    """Of the selector: ``libraries-gfx9``, ``device-gfx90a``."""
    items: tuple[PlatformFile, ...]


class Split(msgspec.Struct, frozen=True, kw_only=True):
    """A package with what holds GPU code taken out."""

    neutral: tuple[PlatformFile, ...]
    devices: tuple[DevicePackage, ...]
    """Families first."""
    notes: tuple[str, ...] = ()


def folder_of(dist: str) -> str:
    """The platform folder of a distribution: ``_rocm_sdk_core``."""
    return "_" + dist.replace("-", "_")


def split_devices(
    package: Package,
    items: Sequence[PlatformFile],
    code: Mapping[str, Sequence[str]],
    selection: Selection,
    *,
    asked: Collection[str] = (),
) -> Split:
    """Take what holds GPU code out of a package.

    Args:
        package: of kind ``libraries``; its ``device`` and ``family`` name the distributions.
        items: its files; of those that artifacts for single targets bring several may have one path.
        code: where its content lies -> architectures of the GPU code in a file.
        selection: which families and targets get packages.
        asked: SONAMEs that files of the SDK need: such a library is in all packages for GPUs, also in those for GPUs
            that it has no code for, since nothing that needs it could be loaded without it.

    Raises:
        IntegrityError: two files of one path are for the same GPU, or for all.
    """
    served = [(item, targets_of(item, code, selection, asked)) for item in items]
    neutral = tuple(item for item, serves in served if not serves)
    strangers = [item.path for item in neutral if item.entry.target != GENERIC or _names_targets(item)]
    named = [(package.family, name, tuple(members)) for name, members in selection.families.items()]
    named += [(package.device, name, (name,)) for name in selection.targets]
    devices: list[DevicePackage] = []
    problems = list(_disputes("all GPUs", neutral))
    for template, name, members in named:
        filled = (template or f"{package.dist}-{{}}").replace("{family}", name).replace("{target}", name)
        filled = filled.replace("{}", name)
        chosen = tuple(
            msgspec.structs.replace(item, thin=members) if item.entry.source in code else item
            for item, serves in served
            if not serves.isdisjoint(members)
        )
        problems += _disputes(name, chosen)
        extra = f"{'device' if template == package.device else 'libraries'}-{canonicalize_name(name)}"
        devices.append(
            DevicePackage(
                name=name,
                targets=members,
                dist=canonicalize_name(filled),
                folder=folder_of(filled),
                extra=extra,
                items=chosen,
            )
        )
    if problems:
        hint = (
            "a package for a family cannot contain two files with the same path: exclude these GPUs, or drop the file"
        )
        raise IntegrityError(*problems, hint=hint)
    told = some_of(sorted(strangers), _SHOWN)
    notes = (
        (f"{told}: included in {package.dist}, because the code is for GPUs that have no package of their own",)
        if strangers
        else ()
    )
    return Split(neutral=neutral, devices=tuple(each for each in devices if each.items), notes=notes)


def _disputes(name: str, items: Sequence[PlatformFile]) -> Iterator[Problem]:
    first: dict[str, PlatformFile] = {}
    for item in items:
        other = first.setdefault(item.path, item)
        if other is not item:
            message = (
                f"the file is in {other.entry.artifact} for {other.entry.target} and in {item.entry.artifact} for "
            )
            yield Problem(file=item.path, key=name, message=message + item.entry.target)


def targets_of(
    item: PlatformFile, code: Mapping[str, Sequence[str]], selection: Selection, asked: Collection[str] = ()
) -> frozenset[str]:
    """The GPU targets with packages that a file is for, by the code in it, its artifact, or its name; empty: for all.

    What is for targets without packages only is for all as well: it has to be somewhere.
    """
    archs = code.get(item.entry.source)
    if archs:
        needed = item.entry.target == GENERIC and posixpath.basename(item.path) in asked
        found = frozenset(selection.targets) if needed else processors(archs)
    elif item.entry.target != GENERIC:
        plain = item.entry.target.partition(":")[0]
        found = frozenset(selection.choices.get(plain, (plain,)))
    else:
        found = frozenset(_built(digits, selection.targets) for digits in _names_targets(item))
    return found & frozenset(selection.targets)


def _names_targets(item: PlatformFile) -> list[str]:
    """Digits of the targets that the name of a data file says, with what is behind them."""
    return _TARGET.findall(item.path) if _DATA.search(item.path) else []


def _built(digits: str, targets: Iterable[str]) -> str:
    """The target that digits in a file's name mean."""
    name = f"gfx{digits}"
    return next((each for each in targets if name.startswith(each) and len(name) - len(each) in {0, *_UNITS}), name)


def processors(archs: Iterable[str]) -> frozenset[str]:
    """Targets without features, of architectures as code says them: ``gfx90a`` of ``gfx90a:xnack-``."""
    return frozenset(
        parsed.processor or parsed.name
        for arch in archs
        if (parsed := parse_code(arch)) is not None and parsed.form == "binary"
    )


def built_for(entries: Iterable[SdkEntry], code: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    """All targets and families that anything in the tree was built for, sorted."""
    found = {target for archs in code.values() for target in processors(archs)}
    return tuple(sorted(found | {entry.target for entry in entries if entry.target != GENERIC}))


def rivals(entries: Iterable[SdkEntry]) -> frozenset[frozenset[str]]:
    """Targets and families whose artifacts bring different files under one path."""
    found: dict[str, set[str]] = {}
    for entry in entries:
        if entry.target != GENERIC and entry.kind == "file":
            found.setdefault(entry.path, set()).add(entry.target)
    return frozenset(frozenset(targets) for targets in found.values() if len(targets) > 1)
