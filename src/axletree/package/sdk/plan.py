"""The plan of an SDK's packages: what goes into which wheel, decided before anything is written."""

from __future__ import annotations

from typing import Literal

import msgspec

from axletree.binary.elf.edit import ElfChange
from axletree.package.sdk.entries import SdkEntry
from axletree.package.sdk.shipped import PackageFile


class PlatformFile(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A file of a platform folder."""

    path: str
    """Below the platform folder."""
    entry: SdkEntry
    """Where its content comes from; of a launcher the link that it stands for."""
    role: Literal["file", "launcher"] = "file"
    launches: str = ""
    """Of a launcher: the program, relative to its own folder."""
    change: ElfChange | None = None
    thin: tuple[str, ...] = ()
    """GPU targets whose code stays; empty: all of it as it is."""


class PackagePlan(msgspec.Struct, frozen=True, kw_only=True):
    """One wheel with a platform folder."""

    shipped: PackageFile
    items: tuple[PlatformFile, ...]
    """Sorted by path."""
    requires: tuple[str, ...] = ()
    """Distributions that are pinned to the same version."""
    extra: str = ""
    """Extra of the selector that asks for it; empty: always installed."""
    summary: str = ""


class DevelItem(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A member of the devel payload."""

    path: str
    kind: Literal["file", "link", "folder"]
    entry: SdkEntry | None = None
    """Content; files only."""
    link: str = ""
    """Relative target: a file of a platform folder beside (``../../_rocm_sdk_core/lib/x.so``), or within the tree."""
    executable: bool = False
    change: ElfChange | None = None


class SdkPlan(msgspec.Struct, frozen=True, kw_only=True):
    """All packages of an SDK."""

    packages: tuple[PackagePlan, ...]
    devel: tuple[DevelItem, ...]
    """Sorted by path, folders before what is in them; empty where the manifest has no devel package."""
    devel_package: PackageFile | None
    devel_requires: tuple[str, ...] = ()
    """Distributions that the devel package requires."""
    notes: tuple[str, ...] = ()
    """What was dropped or decided that a reader of the report should know."""
