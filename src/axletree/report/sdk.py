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
    """The selector's distribution."""
    version: str
    """Of all packages."""
    extras: tuple[str, ...]
    """Of the selector, which ask for its packages: ``libraries``, ``devel``."""
    gpu_extras: tuple[str, ...]
    """Of it, for GPUs that are named: ``libraries-FAMILY``, ``device-TARGET``."""
    default_family: str
    """What ``libraries`` means in the wheel, and in the sdist where no GPU is found; empty without GPU code."""


class SdkWheel(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A wheel that was built."""

    file: str
    size: int
    """Bytes."""
    sha256: str
    files: int
    """Files of the SDK in it; of the devel package members of its payload."""
    installed: int
    """Bytes of these files."""
    targets: tuple[str, ...] = ()
    requires: tuple[str, ...] = ()
    system: tuple[str, ...] = ()
    """Libraries that hosts must bring, and no platform tag promises."""


class SdkSdist(msgspec.Struct, frozen=True, kw_only=True):
    """The selector as an sdist."""

    file: str
    """Relative to the output folder."""
    size: int
    """Bytes."""
    sha256: str
    files: int
    installed: int
    """Bytes of its files."""


class SdkReport(Installable, frozen=True, kw_only=True):
    """Packages of an SDK that were built: report of ``sdk build``."""

    out: str
    wheels: tuple[SdkWheel, ...]
    targets: tuple[str, ...]
    families: dict[str, tuple[str, ...]]
    prefix: str
    """Of environment variables."""
    selector: Selector
    sdist: SdkSdist | None
    dropped: int
    """Entries of the input that go nowhere, by the manifest."""
    notes: tuple[str, ...]
    """What a user should know of the input and of the build."""


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
    """Of its root, without a slash at the end."""
    at_install: bool
    """Whether its selector chooses where it is installed."""
    variable: str
    """That names a family for what chooses where it is installed."""
    wheels: tuple[OwnWheel, ...]
    """That it lists, by their addresses."""


class UploadReport(msgspec.Struct, frozen=True, kw_only=True):
    """What was uploaded, or would be: report of ``sdk upload``."""

    folder: str
    """Of the packages, relative to the store."""
    files: tuple[UploadedFile, ...]
    indexes: tuple[UploadedIndex, ...]
    dry_run: bool
    notes: tuple[str, ...] = ()


class LaidArtifact(msgspec.Struct, frozen=True, kw_only=True):
    """An artifact that was written."""

    name: str
    """Of its folder, or of its archive."""
    files: int
    """Files and links."""
    size: int
    """Bytes of its files."""
    packed: int = 0
    """Bytes of its archive; 0 of a folder."""


class LaidOut(msgspec.Struct, frozen=True, kw_only=True):
    """What was written: report of ``sdk lay-out``."""

    folder: str
    artifacts: tuple[LaidArtifact, ...]
    """Sorted by name."""
    linked: int = 0
    """Files that are hard links to those that were read."""
    copied: int = 0
    notes: tuple[str, ...] = ()
    """What a user should know of the reading of the input."""


class FetchedFile(msgspec.Struct, frozen=True, kw_only=True):
    """An archive in the output folder."""

    filename: str
    size: int
    sha256: str
    state: Literal["fetched", "there"]
    """``there``: it lay in the folder already, with the right content."""


class Fetched(msgspec.Struct, frozen=True, kw_only=True):
    """Archives in a folder: report of ``sdk fetch``."""

    run_id: str
    folder: str
    files: tuple[FetchedFile, ...]
    """Sorted by name of the artifact."""


class SdkVersions(msgspec.Struct, frozen=True, kw_only=True):
    """Versions of an SDK's packages: report of ``sdk version``."""

    variables: dict[str, str]
    """As build systems read them: ``rocm_package_version``, ``rocm_deb_package_version``."""


class MisorderedVersions(msgspec.Struct, frozen=True, kw_only=True):
    """Two versions of which pip takes the older for the newer, or for neither."""

    distribution: str
    """Empty for versions that were given as such."""
    older: str
    newer: str
    why: str


class VersionOrder(msgspec.Struct, frozen=True, kw_only=True):
    """What was compared, and what is wrong: report of ``sdk check-versions``."""

    compared: int
    """Versions."""
    faults: tuple[MisorderedVersions, ...]


class OwnedPackage(msgspec.Struct, frozen=True, kw_only=True):
    """A package of an SDK and what the manifest gives it."""

    name: str
    dist: str
    kind: str
    files: int
    size: int
    """Bytes."""
    artifacts: dict[str, int]
    """Artifact -> how many of its entries."""


class DroppedPath(msgspec.Struct, frozen=True, kw_only=True):
    """What goes nowhere, and why."""

    path: str
    claim: str
    why: str


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """Where an entry comes from."""

    path: str
    artifact: str
    component: str
    target: str


class ClaimText(msgspec.Struct, frozen=True, kw_only=True):
    """A claim of the manifest."""

    claim: str
    """Whose it is, and which: ``core, claim 2``."""
    text: str
    """What it takes."""


class DisputedPath(Place, frozen=True, kw_only=True):
    """What several packages claim."""

    claims: tuple[ClaimText, ...]


class FileVerdict(msgspec.Struct, frozen=True, kw_only=True):
    """Where a file goes that was asked for."""

    path: str
    target: str
    verdict: Verdict
    claims: tuple[str, ...]
    """What would take it, in the order in which they are asked."""


class OwnershipReport(msgspec.Struct, frozen=True, kw_only=True):
    """Who owns what of an SDK: report of ``sdk explain``."""

    sdk: str
    packages: tuple[OwnedPackage, ...]
    dropped: tuple[DroppedPath, ...]
    unmatched: tuple[Place, ...]
    """What no package claims."""
    disputed: tuple[DisputedPath, ...]
    clashes: tuple[Clash, ...]
    unused: tuple[str, ...]
    """Claims that took nothing of this input."""
    notes: tuple[str, ...]
    """What a user should know of the reading of the input."""
    files: tuple[FileVerdict, ...]
    """Of the paths that were asked for."""
    missing: tuple[str, ...]
    """Paths that were asked for and are not there."""
