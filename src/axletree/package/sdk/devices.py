"""Which files of a package hold code of GPUs, and which packages for families and targets that gives."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import msgspec
from packaging.utils import canonicalize_name

from axletree.core.errors import IntegrityError, Problem
from axletree.package.gpu.arch import parse_code
from axletree.package.sdk.entries import GENERIC
from axletree.package.sdk.plan import Item

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from axletree.package.sdk.entries import Entry
    from axletree.package.sdk.manifest import Package
    from axletree.package.sdk.targets import Selection

_TARGET = re.compile(r"(?<![a-z0-9])gfx\d{1,3}[0-9a-f]{2}(?![0-9a-f])")
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
    items: tuple[Item, ...]


class Split(msgspec.Struct, frozen=True, kw_only=True):
    """A package with what holds GPU code taken out."""

    neutral: tuple[Item, ...]
    devices: tuple[DevicePackage, ...]
    """Families first."""


def folder_of(dist: str) -> str:
    """The platform folder of a distribution: ``_rocm_sdk_core``."""
    return "_" + dist.replace("-", "_")


def split_devices(
    package: Package,
    items: Sequence[Item],
    code: Mapping[str, Sequence[str]],
    selection: Selection,
) -> Split:
    """Take what holds GPU code out of a package.

    Args:
        package: of kind ``libraries``; its ``device`` and ``family`` name the distributions.
        items: its files; of those that artifacts for single targets bring several may have one path.
        code: where its content lies -> architectures of the GPU code in a file.
        selection: which families and targets get packages.

    Raises:
        IntegrityError: two files of one path are for the same GPU.
    """
    served = [(item, targets_of(item, code, selection)) for item in items]
    neutral = tuple(item for item, serves in served if not serves)
    named = [(package.family, name, tuple(members)) for name, members in selection.families.items()]
    named += [(package.device, name, (name,)) for name in selection.targets]
    devices: list[DevicePackage] = []
    problems: list[Problem] = []
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
        hint = "artifacts for single targets that bring one file make no package for a family: set families = false"
        raise IntegrityError(*problems, hint=hint)
    return Split(neutral=neutral, devices=tuple(each for each in devices if each.items))


def _disputes(name: str, items: Sequence[Item]) -> Iterator[Problem]:
    first: dict[str, Item] = {}
    for item in items:
        other = first.setdefault(item.path, item)
        if other is not item:
            message = f"comes from {other.entry.artifact} for {other.entry.target} and from {item.entry.artifact} for "
            yield Problem(file=item.path, key=name, message=message + item.entry.target)


def targets_of(item: Item, code: Mapping[str, Sequence[str]], selection: Selection) -> frozenset[str]:
    """The GPU targets that a file is for, by the code in it, its artifact, or its name; empty: for all."""
    archs = code.get(item.entry.source)
    if archs:
        return processors(archs)
    if item.entry.target != GENERIC:
        plain = item.entry.target.partition(":")[0]
        return frozenset(selection.choices.get(plain, (plain,)))
    return frozenset(_TARGET.findall(item.path)) if _DATA.search(item.path) else frozenset()


def processors(archs: Iterable[str]) -> frozenset[str]:
    """Targets without features, of architectures as code says them: ``gfx90a`` of ``gfx90a:xnack-``."""
    return frozenset(
        parsed.processor or parsed.name
        for arch in archs
        if (parsed := parse_code(arch)) is not None and parsed.form == "binary"
    )


def built_for(entries: Iterable[Entry], code: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    """All targets and families that anything in the tree was built for, sorted."""
    found = {target for archs in code.values() for target in processors(archs)}
    return tuple(sorted(found | {entry.target for entry in entries if entry.target != GENERIC}))
