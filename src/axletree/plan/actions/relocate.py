"""``relocate``: a tree that loads on a clean host."""

from __future__ import annotations

import msgspec

from axletree.core.values import Digest
from axletree.plan.actions.packages import TreePart
from axletree.plan.actions.spec import ActionSpec, Facts, Parameters
from axletree.recipe.relocation import Relocate


class Bundled(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A package whose part of the tree takes in all libraries of this machine that nobody else brings."""

    part: TreePart
    requires: tuple[str, ...] = ()
    """What the recipe adds to its requirements."""
    provided_by: dict[str, tuple[str, ...]] = {}
    """Distribution -> patterns of SONAMEs that it brings, as the recipe says."""
    libraries: str = ""
    """Digest of the names, sizes and dates of this machine's libraries: which ones are needed shows the tree only."""


class RelocateParameters(Parameters, frozen=True, kw_only=True):
    """What a relocation does, and the data that it goes by."""

    tree: str
    """Name of the input that is relocated; the others lie beside it."""
    relocate: Relocate
    bundled: Bundled | None = None
    """For ``bundle = true`` of a package; a stage of the recipe takes in what it lists."""
    link: dict[str, str] = {}
    """Folder -> folder that gets a link to each of its entries."""
    drop_needed: dict[str, tuple[str, ...]] = {}
    """Pattern of files -> patterns of SONAMEs that they are to need no longer."""
    libraries: dict[str, str] = {}
    """SONAME -> SHA-256 of the library of this machine that may be taken in."""
    policy: Digest | None
    """Digest of the platform policy data."""
    providers: Digest | None
    """Digest of the lists of library providers."""


class GraftedLibrary(msgspec.Struct, frozen=True, kw_only=True):
    """A library that was taken in."""

    soname: str
    """The name that it was needed by."""
    path: str
    """Where it is in the wheel or tree."""
    size: int
    """Bytes of the original."""
    sha256: str
    """Hexadecimal digest of the original."""
    origin: str
    """Where it was found."""
    package: str
    """The system package that brought it, empty where that is not known; so are its version and its package URL."""
    version: str
    purl: str


class RelocateFacts(Facts, frozen=True, kw_only=True):
    """What was done."""

    grafts: tuple[GraftedLibrary, ...] = ()
    outside: tuple[tuple[str, str], ...] = ()
    """SONAME that is left to others -> who brings it."""
    renamed: dict[str, str] = {}
    saved: int = 0
    """Bytes of copies under other names that are gone."""
    shared: int = 0
    """Number of files that are those of sibling trees."""
    search_paths: dict[str, tuple[str, ...]] = {}
    cut: tuple[str, ...] = ()
    """Search path entries that were dropped."""
    edited: tuple[str, ...] = ()
    """Text files that changed."""
    dropped: dict[str, tuple[str, ...]] = {}
    """File -> libraries that it needs no longer."""
    cmake_left_out: tuple[str, ...] = ()
    build_paths: tuple[str, ...] = ()
    """Libraries whose data still names folders of the build."""


SPEC = ActionSpec(
    module="axletree.execute.actions.relocate",
    revision=3,
    parameters=RelocateParameters,
    facts=RelocateFacts,
    dated=True,
)
