"""Reports of the commands on SDKs: what was built, laid out, fetched and uploaded, who owns what, which versions."""

from __future__ import annotations

from typing import Literal

import msgspec

from axletree.package.closure import OwnWheel
from axletree.package.sdk.claims import Clash

Selector = Literal["wheel", "sdist", "both"]
"""Flavours of the selector: the same for everybody, made where it is installed, or each in an index root of its own."""

Verdict = Literal["owned", "dropped", "unmatched", "disputed"]
"""Where a path of an SDK goes: to one package, nowhere by the manifest, to none, to several."""


class Installable(msgspec.Struct, frozen=True, kw_only=True):
    """What install commands follow from."""

    sdk: str
    """The distribution of the selector."""
    version: str
    """Version of all packages."""
    extras: tuple[str, ...]
    """Extras of the selector that request its packages: ``libraries``, ``devel``."""
    gpu_extras: tuple[str, ...]
    """Extras of the selector for named GPUs: ``libraries-FAMILY``, ``device-TARGET``."""
    default_family: str
    """The family that ``libraries`` means in the wheel, and in the sdist if no GPU is found; empty without GPU code."""


class SdkSdist(msgspec.Struct, frozen=True, kw_only=True):
    """A package that was built, as the selector's sdist is."""

    file: str
    """Relative to the output folder."""
    size: int
    """Bytes."""
    sha256: str
    files: int
    """Files of the SDK in it; of the devel package members of its payload."""
    installed: int
    """Bytes of these files."""


class SdkWheel(SdkSdist, frozen=True, kw_only=True, omit_defaults=True):
    """A wheel that was built."""

    targets: tuple[str, ...] = ()
    requires: tuple[str, ...] = ()
    system: tuple[str, ...] = ()
    """Libraries that hosts must bring, and no platform tag promises."""


class SdkReport(Installable, frozen=True, kw_only=True):
    """Built packages of an SDK: report of ``sdk build``."""

    out: str
    wheels: tuple[SdkWheel, ...]
    targets: tuple[str, ...]
    families: dict[str, tuple[str, ...]]
    prefix: str
    """Prefix of environment variables."""
    selector: Selector
    sdist: SdkSdist | None
    dropped: int
    """Entries of the input that the manifest drops."""
    notes: tuple[str, ...]
    """Notes about the input and the build."""


class UploadedFile(msgspec.Struct, frozen=True, kw_only=True):
    """A package in the store."""

    path: str
    """Relative to the store."""
    size: int
    sha256: str
    state: Literal["new", "there"]


class UploadedIndex(Installable, frozen=True, kw_only=True):
    """An index of the store."""

    url: str
    """Address of its root, without a trailing slash."""
    at_install: bool
    """Whether its selector makes its choice at install time."""
    variable: str
    """Variable that names a family for a choice at install time."""
    wheels: tuple[OwnWheel, ...]
    """Packages that it lists, by their addresses."""


class UploadReport(msgspec.Struct, frozen=True, kw_only=True):
    """Uploaded packages, or those that would be: report of ``sdk upload``."""

    folder: str
    """Folder of the packages, relative to the store."""
    files: tuple[UploadedFile, ...]
    indexes: tuple[UploadedIndex, ...]
    dry_run: bool
    notes: tuple[str, ...] = ()


class LaidArtifact(msgspec.Struct, frozen=True, kw_only=True):
    """A written artifact."""

    name: str
    """Path of its folder or archive."""
    files: int
    """Files and links."""
    size: int
    """Bytes of its files."""
    packed: int = 0
    """Bytes of its archive; 0 for a folder."""


class LaidOut(msgspec.Struct, frozen=True, kw_only=True):
    """Written artifacts: report of ``sdk lay-out``."""

    folder: str
    artifacts: tuple[LaidArtifact, ...]
    """Sorted by name."""
    linked: int = 0
    """Files that are hard links to the input."""
    copied: int = 0
    notes: tuple[str, ...] = ()
    """Notes about reading the input."""


class FetchedFile(msgspec.Struct, frozen=True, kw_only=True):
    """An archive in the output folder."""

    filename: str
    size: int
    sha256: str
    state: Literal["fetched", "there"]
    """``there``: it was already in the folder, with the right content."""


class Fetched(msgspec.Struct, frozen=True, kw_only=True):
    """Archives in a folder: report of ``sdk fetch``."""

    run_id: str
    folder: str
    files: tuple[FetchedFile, ...]
    """Sorted by the name of the artifact."""


class SdkVersions(msgspec.Struct, frozen=True, kw_only=True):
    """Versions of an SDK's packages: report of ``sdk version``."""

    variables: dict[str, str]
    """Versions under the names that build systems read: ``rocm_package_version``, ``rocm_deb_package_version``."""


class MisorderedVersions(msgspec.Struct, frozen=True, kw_only=True):
    """Two versions that pip orders incorrectly or treats as equal."""

    distribution: str
    """Empty for versions that were passed directly."""
    older: str
    newer: str
    why: str


class VersionOrder(msgspec.Struct, frozen=True, kw_only=True):
    """Compared versions and errors: report of ``sdk check-versions``."""

    compared: int
    """Versions."""
    faults: tuple[MisorderedVersions, ...]


class OwnedPackage(msgspec.Struct, frozen=True, kw_only=True):
    """A package of an SDK and the entries that the manifest assigns to it."""

    name: str
    dist: str
    kind: str
    files: int
    size: int
    """Bytes."""
    artifacts: dict[str, int]
    """Artifact -> number of its entries."""


class DroppedPath(msgspec.Struct, frozen=True, kw_only=True):
    """Dropped entries, and the reason."""

    path: str
    claim: str
    why: str


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """The source of an entry."""

    path: str
    artifact: str
    component: str
    target: str


class ClaimText(msgspec.Struct, frozen=True, kw_only=True):
    """A claim of the manifest."""

    claim: str
    """Its package and number: ``core, claim 2``."""
    text: str
    """What it selects."""


class DisputedPath(Place, frozen=True, kw_only=True):
    """Entries that several packages claim."""

    claims: tuple[ClaimText, ...]


class FileVerdict(msgspec.Struct, frozen=True, kw_only=True):
    """The package of a requested file."""

    path: str
    target: str
    verdict: Verdict
    claims: tuple[str, ...]
    """The claims that match it, in order of precedence."""


class OwnershipReport(msgspec.Struct, frozen=True, kw_only=True):
    """The owner of each entry of an SDK: report of ``sdk explain``."""

    sdk: str
    packages: tuple[OwnedPackage, ...]
    dropped: tuple[DroppedPath, ...]
    unmatched: tuple[Place, ...]
    """Entries that no package claims."""
    disputed: tuple[DisputedPath, ...]
    clashes: tuple[Clash, ...]
    unused: tuple[str, ...]
    """Claims that match nothing in this input."""
    notes: tuple[str, ...]
    """Notes about reading the input."""
    files: tuple[FileVerdict, ...]
    """Answers for the requested paths."""
    missing: tuple[str, ...]
    """Requested paths that do not exist."""
