"""Which code of a file other GPUs need, as edits that take it out, and what that saves.

Each container keeps the entries that a wanted GPU's driver may pick (:func:`~axletree.package.gpu.arch.choose`), so it
picks what it picked before. PTX goes where a binary runs, as whoever installs a wheel for one GPU needs no compiling
for later ones; code for link-time optimisation stays, as no driver loads it and only its maker knows who does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from axletree.binary.edits import Edit
from axletree.binary.elf.verify import REPORT
from axletree.binary.gpu.thin import thin_container
from axletree.core.errors import IntegrityError, Problem
from axletree.package.gpu.arch import Gpu, choose, gpu_of, order, parse_code

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from axletree.binary.gpu.code import Container, DeviceSection
    from axletree.binary.gpu.scan import SectionCode
    from axletree.package.gpu.arch import CodeArch


_NOT_THINNED = "nothing was written, because the result would"


class ThinRules(msgspec.Struct, frozen=True, kw_only=True):
    """What shall be kept."""

    gpus: tuple[Gpu, ...]
    keep_ptx: bool = False
    """Keep all PTX, so that later GPUs can compile it."""
    allow_missing: bool = False
    """Where a container holds nothing for a GPU, which then can't use its kernels with the original either, keep its
    smallest entry in place of refusing."""


class ArchSaving(msgspec.Struct, frozen=True, kw_only=True):
    """What happens to the code for one architecture."""

    arch: str
    entries: int
    size: int
    """Bytes before."""
    kept_entries: int
    kept_size: int


class ThinnedFile(msgspec.Struct, frozen=True, kw_only=True):
    """What thinning does to one file."""

    edits: tuple[Edit, ...] = ()
    archs: tuple[ArchSaving, ...] = ()
    """By architecture, sorted."""
    missing: int = 0
    """Containers that hold nothing for a wanted GPU."""
    exact: int = 0
    """Containers whose code for a wanted GPU is for exactly that one (suffix ``a``): no other of its family runs it."""
    kept: dict[int, frozenset[int]] = msgspec.field(default_factory=dict)
    """Offset of a container -> indices of the entries that stay; containers that are not named stay whole."""
    left: tuple[str, ...] = ()
    """Code that could not be thinned and why, one sentence each."""

    @property
    def dropped(self) -> int:
        """Bytes that are zeros now."""
        return sum(arch.size - arch.kept_size for arch in self.archs)


def thin_file(code: Sequence[SectionCode], rules: ThinRules, *, name: str, repack: bool = False) -> ThinnedFile:
    """Decide what of a file's GPU code stays.

    Args:
        code: its sections with their containers.
        rules: what to keep.
        name: what errors call the file.
        repack: whether the caller packs compressed bundles again by what is said to be kept; edits can't, and leave
            them whole.

    Raises:
        IntegrityError: a section is damaged, or a container has nothing that a wanted GPU runs. Names all of them.
    """
    thinning = _Thinning(rules, name, repack=repack)
    for section in code:
        thinning.add(section)
    if thinning.problems:
        raise IntegrityError(*thinning.problems)
    return thinning.result()


class _Thinning:
    """Walks the containers of a file and adds up."""

    def __init__(self, rules: ThinRules, name: str, *, repack: bool) -> None:
        self._rules = rules
        self._repack = repack
        self._name = name
        self._edits: list[Edit] = []
        self._kept: dict[int, frozenset[int]] = {}
        self._totals: dict[str, list[int]] = {}
        self._missing = 0
        self._exact = 0
        self._packed: dict[str, int] = {}
        self._codes: dict[str, CodeArch | None] = {}
        self._unserved: dict[tuple[str, str, tuple[str, ...]], list[int]] = {}
        self._damage: list[Problem] = []

    @property
    def problems(self) -> list[Problem]:
        """What stands against it; containers without code for a GPU are counted together."""
        found = list(self._damage)
        for (section, gpu, archs), offsets in self._unserved.items():
            many = f"{len(offsets)} containers" if len(offsets) > 1 else "a container"
            message = (
                f"{many} in {section} (the first at offset {offsets[0]}) would be empty: code for "
                f"{', '.join(archs)} does not run on {gpu}"
            )
            found.append(Problem(file=self._name, message=message))
        if self._unserved:
            hint = (
                "choose an architecture that the file contains, or use --allow-missing if that GPU never uses these "
                "kernels"
            )
            found[-1] = msgspec.structs.replace(found[-1], hint=hint)
        return found

    def add(self, code: SectionCode) -> None:
        """Decide for all containers of a section."""
        section = code.section.name
        makers = {container.maker for container in code.containers}
        if not makers & {gpu.maker for gpu in self._rules.gpus}:
            return
        if code.damaged is not None:
            self._damage.append(Problem(file=self._name, key=section, message=code.damaged))
            return
        for container in code.containers:
            if container.packing != "none" and not self._repack:
                self._packed[section] = self._packed.get(section, 0) + 1
                self._count(container, range(len(container.entries)))
                continue
            kept = self._kept[container.offset] = self._keep(container, section)
            if container.packing == "none":
                self._edits += thin_container(container, kept)
            self._count(container, kept)

    def result(self) -> ThinnedFile:
        """All of it."""
        archs = [
            ArchSaving(arch=arch, entries=total[0], size=total[1], kept_entries=total[2], kept_size=total[3])
            for arch, total in sorted(self._totals.items(), key=lambda item: order(item[0]))
        ]
        left = [
            f"{count} compressed offload bundles in {section} remain unchanged: each is compressed as a single block"
            for section, count in self._packed.items()
        ]
        return ThinnedFile(
            edits=tuple(self._edits),
            archs=tuple(archs),
            missing=self._missing,
            exact=self._exact,
            kept=self._kept,
            left=tuple(left),
        )

    def _code(self, arch: str) -> CodeArch | None:
        if arch not in self._codes:
            self._codes[arch] = parse_code(arch)
        return self._codes[arch]

    def _keep(self, container: Container, section: str) -> frozenset[int]:
        codes = [self._code(entry.arch) for entry in container.entries]
        always = {
            index
            for index, code in enumerate(codes)
            if code is None or code.form == "other" or (self._rules.keep_ptx and code.form == "intermediate")
        }
        loadable = [index for index, code in enumerate(codes) if code is not None and code.form != "other"]
        if not loadable:
            return frozenset(always)
        kept: set[int] = set()
        chosen = {gpu.name: choose(codes, gpu) for gpu in self._rules.gpus if gpu.maker == container.maker}
        for name, indices in chosen.items():
            kept |= indices
            if not indices and not self._rules.allow_missing:
                archs = tuple(sorted({container.entries[index].arch for index in loadable}, key=order))
                self._unserved.setdefault((section, name, archs), []).append(container.offset)
        self._missing += not all(chosen.values())
        self._exact += any(
            indices and all((code := codes[index]) is not None and code.suffix == "a" for index in indices)
            for indices in chosen.values()
        )
        if not kept:
            kept.add(min(loadable, key=lambda index: container.entries[index].size))
        return frozenset(kept | always)

    def _count(self, container: Container, kept: Iterable[int]) -> None:
        chosen = set(kept)
        for index, entry in enumerate(container.entries):
            if entry.arch == "host":
                continue
            total = self._totals.setdefault(entry.arch, [0, 0, 0, 0])
            total[0] += 1
            total[1] += entry.size
            if index in chosen:
                total[2] += 1
                total[3] += entry.size


def check_thinned(code: Iterable[SectionCode], thinned: ThinnedFile, *, name: str) -> None:
    """Prove by reading it that an edited file holds exactly the code that was to stay.

    Raises:
        IntegrityError: it does not; then edits were made for another file, or there is a mistake here.
    """
    expected = {arch.arch: (arch.kept_entries, arch.kept_size) for arch in thinned.archs if arch.kept_entries}
    found: dict[str, tuple[int, int]] = {}
    problems: list[Problem] = []
    for section in code:
        if section.damaged is not None:
            problems.append(Problem(file=name, key=section.section.name, message=section.damaged))
        for container in section.containers:
            for entry in container.entries:
                if entry.arch in expected:
                    entries, size = found.get(entry.arch, (0, 0))
                    found[entry.arch] = (entries + 1, size + entry.size)
                elif entry.arch != "host":
                    message = f"{_NOT_THINNED} still contain code for {entry.arch}"
                    problems.append(Problem(file=name, message=message))
    if found != expected:
        message = f"{_NOT_THINNED} not contain all the code to keep"
        problems.append(Problem(file=name, message=message))
    if problems:
        raise IntegrityError(*problems[:20], hint=REPORT)


def gpus_in(sections: Iterable[DeviceSection]) -> tuple[Gpu, ...]:
    """Each GPU that binary code was made for, sorted: what ``--arch-each`` stands for."""
    found: dict[str, Gpu] = {}
    for section in sections:
        for code in section.code:
            parsed = parse_code(code.arch)
            gpu = gpu_of(parsed) if parsed is not None else None
            if gpu is not None:
                found[gpu.name] = gpu
    return tuple(sorted(found.values(), key=_gpu_order))


def _gpu_order(gpu: Gpu) -> tuple[object, ...]:
    return (gpu.maker == "hip", order(gpu.name if gpu.maker == "hip" else f"sm_{gpu.name}"))
