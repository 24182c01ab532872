"""What planning needs to know of files it may not read itself: locks, digests of patches and tests, the source."""

from __future__ import annotations

import msgspec

from axletree.core.images import StageImage
from axletree.core.values import Digest
from axletree.plan.actions.fetch import PinnedSource
from axletree.plan.actions.spec import ActionSpec
from axletree.plan.actions.table import ACTIONS
from axletree.recipe.conda_locks import CondaLock
from axletree.recipe.locks import PyLock

NO_COMMIT = "0" * 40
"""Commit of a source that is not locked, in a plan that nobody runs."""


class LockedEnvironment(msgspec.Struct, frozen=True, kw_only=True):
    """The content of an environment."""

    python: dict[str, str]
    """The interpreter's identity: version, implementation, ABI, platform; no path."""
    lock: PyLock


class PlanInputs(msgspec.Struct, frozen=True, kw_only=True):
    """Everything read beforehand for a plan."""

    source: PinnedSource
    extras: dict[str, PinnedSource] = {}
    """Name in the recipe's ``sources`` -> what pins it."""
    actions: dict[str, ActionSpec] = msgspec.field(default_factory=lambda: ACTIONS)
    """Action -> its declaration: those that ship, and those of other distributions that the recipe names."""
    environments: dict[str, LockedEnvironment] = {}
    """Lock file name -> content."""
    conda: dict[str, CondaLock] = {}
    """File name of the lock of a conda environment -> content."""
    images: dict[str, StageImage] = {}
    """Name in the recipe -> the image that is locked."""
    interpreters: dict[str, tuple[str, ...]] = {}
    """Python version -> folders of its own that the interpreter of this machine lies in, as far as they are its own."""
    files: dict[str, Digest] = {}
    """Path relative to the recipe -> digest of its content, for patches and test files, those of folders too."""
    compressor: str = ""
    """Name and version of the deflate library: part of what packing makes."""
    generator: str = ""
    """Name and version that packing writes into wheels."""
    driver_libraries: tuple[str, ...] = ()
    """Patterns of SONAMEs that GPU drivers bring, for audits."""
    policy: Digest | None = None
    """Digest of the platform policy data: part of what tags and audit say."""
    providers: Digest | None = None
    """Digest of the lists of library providers: part of what audits say."""
    libraries: dict[tuple[str, ...], dict[str, str]] = {}
    """What a relocation may graft, by its patterns and folders -> SONAME -> SHA-256 of this machine's library."""
    host_libraries: str = ""
    """Digest of the names, sizes and dates of this machine's libraries, where a package takes in what it needs."""
    clients: dict[str, str] = {}
    """Installer -> version, for tests."""
    platform: str = ""
    """Platform of this machine, ``linux-x86_64``: for packages that are for one Python but have no machine code."""
    conda_names: dict[str, str] = {}
    """Package of the recipe -> what conda calls the distribution."""
    conda_table: Digest | None = None
    """Digest of the table of conda names: part of what dependencies are."""
    conda_neighbours: Digest | None = None
    """Digest of the table of neighbours: dependencies on compilers' runtimes follow from it."""
    conda_owners: Digest | None = None
    """Digest of all that is known of the owners of paths and libraries, for audits of conda packages."""
    conda_compressor: str = ""
    """Name and version of the compressor of conda packages."""
