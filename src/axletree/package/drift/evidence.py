"""One statement of one file about one dependency: the only thing that verdicts are made from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import msgspec
from packaging.ranges import VersionRange
from packaging.version import Version

if TYPE_CHECKING:
    from collections.abc import Collection

Column = Literal["vendored", "tree", "cmake", "ci", "requires", "wheel", "linked", "recipe", "newest"]
"""Where a statement is from: the commit of a submodule; a version written in a vendored copy; CMake files; CI scripts
and pins; the project's own requirements; METADATA of a wheel; libraries of a wheel; the recipe; a channel or index."""
Role = Literal["requires", "pin", "mention", "asks", "offers"]
"""``requires``: must hold. ``pin``: what upstream has, builds or tests with. ``mention``: it is used, in any version.
``asks``: the recipe's. ``offers``: what can be had."""
Phase = Literal["", "build", "run", "test"]
Confidence = Literal["certain", "likely", "guess"]

UPSTREAM: tuple[Column, ...] = ("requires", "wheel", "vendored", "tree", "cmake", "ci", "linked")
"""Columns that say what upstream does, the most telling first."""


class Evidence(msgspec.Struct, frozen=True, kw_only=True):
    """A statement and where it stands."""

    dependency: str
    column: Column
    role: Role
    file: str
    """Path from the source tree, or the file as the user gave it."""
    line: int | None = None
    """Counted from 1."""
    text: str
    """As it stands there."""
    spec: str
    """Its meaning in short: ``>=1.13.3``, ``2.21.5``, ``3.7.0rc2+``, a commit; ``*`` for any version."""
    range: VersionRange | None
    """The versions that it allows; ``None`` where it names none, as a commit does."""
    confidence: Confidence = "certain"
    phase: Phase = ""
    when: str = ""
    """The condition that it stands under: a marker, a selector, variants."""
    gpus: tuple[str, ...] = ()
    """The GPU worlds that it is about (``cu126``, ``cu12``, ``cpu``); empty for all."""
    optional: str = ""
    """The extra that asks for it."""
    project: str = ""
    """The distribution that a package index has, where it speaks of one."""
    note: str = ""
    """What one should know to judge it."""


def place(evidence: Evidence) -> str:
    """Where a statement stands: ``cmake/Dependencies.cmake:112``."""
    return evidence.file if evidence.line is None else f"{evidence.file}:{evidence.line}"


def share_gpu(one: Evidence, other: Evidence) -> bool:
    """Whether two statements may be about one build: ``cu12`` is about ``cu126`` too."""
    return share_worlds(one.gpus, other.gpus)


def share_worlds(some: Collection[str], others: Collection[str]) -> bool:
    """Whether two lists of GPU worlds have one in common; an empty one has all."""
    return not (some and others) or any(a.startswith(b) or b.startswith(a) for a in some for b in others)


def cuda_label(version: str) -> str:
    """``12.6.3`` as it stands in local versions: ``cu126``."""
    release = Version(version).release
    return "cu" + "".join(map(str, release[:2]))
