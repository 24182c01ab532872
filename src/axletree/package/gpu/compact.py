"""A library with the code of some GPUs only, and with as few bytes as that leaves.

What can be moved is moved (offload bundles of AMD that nothing but their wrappers points to); elsewhere dropped code
becomes zeros, as :mod:`axletree.package.gpu.thin` has it, and a note says why.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from axletree.binary.edits import EditedSource
from axletree.binary.elf.edit import ElfChange, plan_edit
from axletree.binary.elf.verify import verify_edit
from axletree.binary.gpu.compact import Compaction, plan_compaction
from axletree.binary.gpu.registered import Registered, read_registered
from axletree.binary.gpu.scan import read_containers
from axletree.binary.gpu.verify import verify_compaction
from axletree.package.gpu.arch import Gpu, parse_gpu
from axletree.package.gpu.read import DeviceFile, read_file_code
from axletree.package.gpu.thin import ArchSaving, ThinnedFile, ThinRules, check_thinned, thin_file

if TYPE_CHECKING:
    from collections.abc import Sequence

    from axletree.binary.edits import Edit
    from axletree.binary.source import Source


class LibraryCode(NamedTuple):
    """What is read of a library once, for any number of results."""

    file: DeviceFile
    registered: Registered | str
    """What points to its code; why that can't be moved, as words."""
    source: Source
    """What it was read from."""


class Thinning(NamedTuple):
    """What is done to the GPU code of one library."""

    thinned: ThinnedFile
    compaction: Compaction | None
    notes: tuple[str, ...]

    def source(self, original: Source) -> Source:
        """The library as it is then."""
        if self.compaction is not None:
            return self.compaction.source(original)
        return EditedSource(original, self.thinned.edits)

    @property
    def saved(self) -> int:
        """Bytes of code and padding that are not in the file any longer."""
        return 0 if self.compaction is None else self.compaction.saved

    @property
    def changed(self) -> bool:
        """Whether the library is another one then."""
        return bool(self.compaction or self.thinned.edits)


class ThinLibrary(NamedTuple):
    """A library that holds the code of some GPUs only."""

    source: Source
    """Its content; reads the original, which must stay open."""
    thinning: Thinning
    """What was done to its GPU code."""
    edits: tuple[Edit, ...]
    """What was done to its header after that: with both, its content can be had of the original again."""

    @property
    def size(self) -> int:
        """Bytes."""
        return self.source.size

    @property
    def archs(self) -> tuple[ArchSaving, ...]:
        """What stays of the code for each architecture."""
        return self.thinning.thinned.archs

    @property
    def notes(self) -> tuple[str, ...]:
        """What could not be done and why, one sentence each."""
        return self.thinning.notes

    @property
    def compacted(self) -> bool:
        """Whether dropped code takes no bytes; else it became zeros, or there was none to drop."""
        return self.thinning.compaction is not None

    @property
    def saved(self) -> int:
        """Bytes that thinning made it smaller by."""
        return self.thinning.saved


def read_library(source: Source, *, name: str) -> LibraryCode:
    """Read where a library's GPU code lies and what points to it; only headers and tables are touched.

    Raises:
        IntegrityError: it is no sound ELF file.
    """
    return registered_code(source, read_file_code(source, name=name))


def registered_code(source: Source, file: DeviceFile) -> LibraryCode:
    """What :func:`read_library` reads beyond the code itself, for a file whose code was read as it went by."""
    return LibraryCode(file, read_registered(source, file.code, name=file.path), source)


def plan_thinning(code: LibraryCode, rules: ThinRules, *, name: str) -> Thinning:
    """Decide what of a library's GPU code stays, and where.

    Args:
        code: the library; its source must still be open. Code is read only where bundles are compressed as a whole.
        rules: what to keep.
        name: what errors call it.

    Raises:
        IntegrityError: as :func:`~axletree.package.gpu.thin.thin_file`.
    """
    plan = code.registered
    if not isinstance(plan, str):
        thinned = thin_file(code.file.code, rules, name=name, repack=True)
        compaction = plan_compaction(code.source, plan, thinned.kept) if thinned.archs else ""
        if isinstance(compaction, Compaction):
            return Thinning(thinned, compaction, thinned.left)
        plan = compaction
    thinned = thin_file(code.file.code, rules, name=name)
    notes = thinned.left
    amd = any(container.maker == "hip" for each in code.file.code for container in each.containers)
    if thinned.edits and amd:
        notes = (*notes, f"dropped code is replaced with zeros, so the file size does not change: {plan}")
    return Thinning(thinned, None, notes)


def check_thinning(original: Source, result: Source, code: LibraryCode, thinning: Thinning, *, name: str) -> None:
    """Prove by reading it that a result is what was planned.

    Raises:
        IntegrityError: it is not.
    """
    compaction, thinned = thinning.compaction, thinning.thinned
    if compaction is not None and not isinstance(code.registered, str):
        verify_compaction(original, result, code.registered, thinned.kept, compaction, name=name)
    elif thinned.edits:
        sections = [read_containers(result, each.section) for each in code.file.code]
        check_thinned(sections, thinned, name=name)


def thin_library(
    source: Source,
    *,
    name: str,
    gpus: Sequence[str | Gpu],
    change: ElfChange | None = None,
    allow_missing: bool = False,
    code: LibraryCode | None = None,
) -> ThinLibrary:
    """A library for some GPUs, checked against the original.

    Args:
        source: the library. Nothing of its code is held in memory.
        name: what errors call it.
        gpus: those it must run on: ``gfx90a``, ``gfx90a:xnack-``.
        change: names to change in it as well, such as its search path.
        allow_missing: accept kernels that hold nothing for these GPUs in the original either.
        code: what :func:`read_library` said of the same source; read here if ``None``.

    Raises:
        UsageError: a GPU is none.
        IntegrityError: the library is damaged, has nothing for a wanted GPU, or can't be changed so.
    """
    wanted = tuple(parse_gpu(gpu) if isinstance(gpu, str) else gpu for gpu in gpus)
    code = code or read_library(source, name=name)
    thinning = plan_thinning(code, ThinRules(gpus=wanted, allow_missing=allow_missing), name=name)
    result = thinning.source(source)
    check_thinning(source, result, code, thinning, name=name)
    edits: tuple[Edit, ...] = ()
    if change is not None:
        edits = plan_edit(result, change, name=name)
        changed = EditedSource(result, edits)
        verify_edit(result, changed, change, name=name)
        result = changed
    return ThinLibrary(result, thinning, edits)
