"""What the actions share that pack, audit and list packages."""

from __future__ import annotations

import msgspec

from axletree.core.values import Digest
from axletree.plan.actions.spec import Facts, Parameters


class Described(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A package, as its recipe describes it."""

    name: str
    version: str
    """Full version with its local label, normalised (PEP 440)."""
    summary: str
    license: str | None = None
    prefix: str = ""
    """Folder of the wheel in which the files lie."""
    build_tag: int | None = None
    requires: tuple[str, ...] = ()
    requires_python: str | None = None
    relabel: bool = False
    """Whether the recipe's word counts, whatever was built."""
    source_version: str | None = None
    """The recipe's own version, where packages are called otherwise by ``--release``."""


class Taken(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a package takes of a tree that several share."""

    files: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()


class TreePart(msgspec.Struct, frozen=True, kw_only=True):
    """Which part of a tree a package gets."""

    package: str
    siblings: dict[str, Taken]
    """Each package of the tree, this one too -> what it takes."""


class PackParameters(Parameters, frozen=True, kw_only=True):
    """Of an action that writes an archive."""

    part: TreePart
    compressor: str
    """Name and version of the compressor: part of the bytes."""
    level: int


class Waived(msgspec.Struct, frozen=True, kw_only=True):
    """A finding that the recipe accepts."""

    rule: str
    where: str
    """File pattern for the place that it names."""
    reason: str


class AuditParameters(Parameters, frozen=True, kw_only=True):
    """Of an action that audits an archive."""

    glibc: str | None = None
    """Version that it must not go above."""
    policy: Digest | None
    """Digest of the platform policy data."""
    waive: tuple[Waived, ...] = ()
    """Findings that the recipe accepts."""


class PackedFacts(Facts, frozen=True, kw_only=True):
    """The archive that was written."""

    filename: str
    size: int
    """Bytes."""
    sha256: Digest
