"""Make variants of a wheel, or of one library, that hold the GPU code of some architectures only."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from axletree.app.thin_index import read_variants, write_variant_index
from axletree.binary.edits import iter_source
from axletree.binary.gpu.scan import DeviceScanner, summarise
from axletree.binary.mapped import forget
from axletree.binary.zip.members import MemberSource
from axletree.binary.zip.records import EARLIEST
from axletree.core.errors import IntegrityError, Problem, UsageError
from axletree.host.archive import write_wheel_file
from axletree.host.sources import DiskSource, write_source
from axletree.host.wheels import OpenWheel, open_wheel
from axletree.package.gpu.arch import parse_gpu
from axletree.package.gpu.compact import LibraryCode, Thinning, check_thinning, plan_thinning, registered_code
from axletree.package.gpu.gpu_variant import cuda_floor, gpu_variant
from axletree.package.gpu.read import DeviceFile, is_elf_member, read_file_code, read_member_code
from axletree.package.gpu.thin import ArchSaving, ThinnedFile, ThinRules, check_thinned, gpus_in
from axletree.package.gpu.variant import VARIANT_FILE, describe, render_variants
from axletree.package.wheel.info import GENERATOR
from axletree.package.wheel.names import dist_info_folder, render_wheel_name
from axletree.package.wheel.repack import packed_members, renamed_members
from axletree.package.wheel.writer import Member

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from axletree.binary.source import Source
    from axletree.binary.zip.directory import ZipEntry
    from axletree.host.folder_lock import Note
    from axletree.package.gpu.arch import Gpu
    from axletree.package.gpu.variant import WheelVariant

_FORGET_EVERY = 8 << 20


class ThinRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What is asked for."""

    archs: tuple[str, ...] = ()
    """GPUs that the result must run on."""
    each: bool = False
    """A result for each GPU that the input was compiled for, in place of one for ``archs``."""
    keep_ptx: bool = False
    allow_missing: bool = False
    cuda: str | None = None
    """Lowest CUDA version of the driver, ``13.0``; told by the wheel if ``None``."""


class LibrarySaving(msgspec.Struct, frozen=True, kw_only=True):
    """The effect of thinning on one library."""

    path: str
    size: int
    code: int
    """Bytes of its sections with GPU code."""
    dropped: int
    """Bytes of dropped code."""
    saved: int
    """Bytes that the library shrinks by; 0 if dropped code becomes zeros, which saves space only in a download."""
    download: int
    """Estimate of the bytes saved in the compressed wheel."""
    archs: tuple[ArchSaving, ...]
    notes: tuple[str, ...] = ()


class ThinResult(msgspec.Struct, frozen=True, kw_only=True):
    """A result, or the planned one."""

    gpus: tuple[str, ...]
    label: str = ""
    """Variant label of a wheel."""
    properties: tuple[str, ...] = ()
    file: str = ""
    """Path of the result; its name if nothing was written."""
    size: int = 0
    """Bytes of the result; an estimate if nothing was written."""
    libraries: tuple[LibrarySaving, ...] = ()
    refused: tuple[str, ...] = ()
    """Why there is none for this GPU (one of several)."""


class ThinReport(msgspec.Struct, frozen=True, kw_only=True):
    """All results from one input."""

    input: str
    size: int
    written: bool
    results: tuple[ThinResult, ...]
    index: str = ""
    """Path of the file that describes all variants in the output folder."""
    unread: tuple[str, ...] = ()
    """Errors of ELF files that could not be read and stay as they are."""


class _Plan(NamedTuple):
    gpus: tuple[Gpu, ...]
    files: dict[str, Thinning]
    """Path -> what changes; files without code for such GPUs are left out."""
    refused: tuple[Problem, ...] = ()


class _Library(NamedTuple):
    """A library of the input."""

    open: Callable[[], Source]
    """Its content. Of a member, what makes reading here and there cheap is kept only where code will move."""
    code: LibraryCode

    @property
    def path(self) -> str:
        return self.code.file.path


def thin(
    path: Path,
    request: ThinRequest,
    *,
    out: Path | None,
    epoch: int = EARLIEST,
    threads: int = 1,
    note: Note = lambda _: None,
) -> ThinReport:
    """Thin a wheel, or a bare ELF file.

    Args:
        path: the input, which stays as it is.
        request: what to keep.
        out: folder for the results; ``None`` only says what they would be.
        epoch: date of the members of wheels.
        threads: how many compress at once.
        note: told whom this waits for, when somebody else writes into the folder.

    Raises:
        UsageError: no such GPU, or the input holds no code for its maker.
        IntegrityError: the input is damaged, or holds nothing for a wanted GPU in some container.
        HostError: a file can't be read or written.
    """
    _gpus(request)  # what is no GPU is told before a large file is read
    if path.name.endswith(".whl"):
        return _thin_wheel(path, request, out, epoch=epoch, threads=threads, note=note)
    return _thin_library(path, request, out)


def _thin_wheel(
    path: Path, request: ThinRequest, out: Path | None, *, epoch: int, threads: int, note: Note
) -> ThinReport:
    wheel = open_wheel(path)
    entries = {entry.name: entry for entry in wheel.entries if not entry.directory}
    files, unread = _read_members(wheel, entries, sample=out is None)
    base = _base_variant(wheel, entries)
    results: list[ThinResult] = []
    for plan in _plans(files, request, path.name):
        if plan.refused:
            results.append(_refusal(plan))
            continue
        variant = gpu_variant(plan.gpus, cuda=request.cuda or (None if base else _cuda(wheel, files)), base=base)
        name = msgspec.structs.replace(wheel.name, variant=variant.label)
        result = _result(plan, files, file=render_wheel_name(name), size=path.stat().st_size)
        result = msgspec.structs.replace(
            result, label=variant.label, properties=tuple(str(part) for part in variant.properties)
        )
        if out is not None:
            target = out / render_wheel_name(name)
            if target.exists() and target.samefile(path):
                raise UsageError(
                    f"{target} would overwrite the input wheel", hint="choose a different folder with --out"
                )
            out.mkdir(parents=True, exist_ok=True)
            written = write_wheel_file(
                out,
                name,
                _members(wheel, entries, plan, variant, {file.path: file for file in files}),
                metadata=wheel.metadata,
                wheel_info=msgspec.structs.replace(wheel.wheel_info, generator=GENERATOR),
                epoch=epoch,
                threads=threads,
            )
            result = msgspec.structs.replace(result, file=str(written.path), size=written.size)
        results.append(result)
    labelled = any(result.label for result in results)
    index = write_variant_index(out, wheel.name, note=note) if out is not None and labelled else ""
    return ThinReport(
        input=str(path),
        size=path.stat().st_size,
        written=out is not None,
        results=tuple(results),
        index=index,
        unread=tuple(unread),
    )


def _read_members(wheel: OpenWheel, entries: dict[str, ZipEntry], *, sample: bool) -> tuple[list[_Library], list[str]]:
    """The ELF files of a wheel, and what is wrong with those that can't be read; such stay as they are.

    Raises:
        IntegrityError: the archive itself is damaged.
    """
    files: list[_Library] = []
    unread: list[str] = []
    for entry in entries.values():
        if is_elf_member(wheel.view, entry):
            try:
                file = read_member_code(wheel.view, entry, archive=wheel.path.name, sample=sample)
                again = partial(MemberSource, wheel.view, entry, archive=wheel.path.name)
                code = registered_code(source := again(), file)
                moves = not isinstance(code.registered, str)
                files.append(_Library(partial(_same, source) if moves else again, code))
            except IntegrityError as error:
                if any(problem.file != entry.name for problem in error.problems):
                    raise
                unread.append(str(error))
    return files, unread


def _same(source: Source) -> Source:
    return source


def _thin_library(path: Path, request: ThinRequest, out: Path | None) -> ThinReport:
    results: list[ThinResult] = []
    with DiskSource(path) as source:
        read = read_file_code(source, name=str(path), sample=out is None)
        file = _Library(partial(_same, source), registered_code(source, read))
        plans = _plans([file], request, str(path))
        for plan in plans:
            if plan.refused:
                results.append(_refusal(plan))
                continue
            label = "_".join(gpu.name.replace(":", "_") for gpu in plan.gpus)
            result = _result(plan, [file], file=path.name, size=source.size)
            if out is not None:
                thinning = plan.files.get(file.path, Thinning(ThinnedFile(), None, ()))
                target = (out / label if request.each else out) / path.name
                if target.exists() and target.samefile(path):
                    raise UsageError(
                        f"{target} would overwrite the input file", hint="choose a different folder with --out"
                    )
                write_source(target, _checked(file, thinning), like=path)
                result = msgspec.structs.replace(result, file=str(target))
            results.append(result)
        return ThinReport(input=str(path), size=source.size, written=out is not None, results=tuple(results))


def _plans(files: Sequence[_Library], request: ThinRequest, name: str) -> list[_Plan]:
    sections = [section for file in files for section in file.code.file.code]
    present = gpus_in(map(summarise, sections))
    makers = {container.maker for section in sections for container in section.containers}
    if not makers:
        hint = "`thin` reads .nv_fatbin, __nv_relfatbin and .hip_fatbin; libraries that keep GPU code elsewhere "
        raise UsageError(
            Problem(file=name, message="the file contains no GPU code to thin"), hint=hint + "are left unchanged"
        )
    groups = [(gpu,) for gpu in present] if request.each else [_gpus(request)]
    plans = []
    for gpus in groups:
        foreign = next((gpu.name for gpu in gpus if gpu.maker not in makers), None)
        if foreign is not None:
            has = ", ".join(gpu.name for gpu in present)
            raise UsageError(
                Problem(
                    file=name,
                    message=(f"the file contains code only for {has}, and none for GPUs from the vendor of {foreign}"),
                )
            )
        plans.append(_plan(files, gpus, request, within=name))
    refused = [problem for plan in plans for problem in plan.refused]
    if refused and (not request.each or all(plan.refused for plan in plans)):
        raise IntegrityError(*refused)
    return plans


def _gpus(request: ThinRequest) -> tuple[Gpu, ...]:
    return tuple({gpu.name: gpu for gpu in map(parse_gpu, request.archs)}.values())


def _plan(files: Sequence[_Library], gpus: tuple[Gpu, ...], request: ThinRequest, *, within: str) -> _Plan:
    rules = ThinRules(gpus=gpus, keep_ptx=request.keep_ptx, allow_missing=request.allow_missing)
    plans: dict[str, Thinning] = {}
    refused: list[Problem] = []
    for file in files:
        name = file.path if file.path == within else f"{within}: {file.path}"
        try:
            done = plan_thinning(file.code, rules, name=name)
        except IntegrityError as error:
            refused += error.problems
            continue
        if done.thinned.archs:
            plans[file.path] = done
    return _Plan(gpus, plans, tuple(refused))


def _members(
    wheel: OpenWheel, entries: dict[str, ZipEntry], plan: _Plan, variant: WheelVariant, files: dict[str, _Library]
) -> tuple[Member, ...]:
    """Everything as it is, still compressed, but for the thinned libraries and the variant's description."""
    archive, description = wheel.path.name, f"{wheel.folder}/{VARIANT_FILE}"
    changed = {path: thinning for path, thinning in plan.files.items() if thinning.changed}
    kept = [entry for name, entry in entries.items() if name not in changed and name != description]
    members = [*packed_members(wheel.view, kept, wheel.record, folder=wheel.folder, archive=archive)]
    for path, thinning in changed.items():
        entry = entries[path]
        data = partial(_forgetting, partial(_checked, files[path], thinning), wheel.view, entry)
        members.append(Member(path=path, data=data, size=entry.size - thinning.saved, executable=entry.executable))
    members.append(Member(path=description, data=render_variants(describe(variant))))
    folder = dist_info_folder(wheel.metadata.name, wheel.metadata.version)
    return renamed_members(members, source=wheel.folder, target=folder)


def _checked(file: _Library, thinning: Thinning) -> Iterator[bytes]:
    """The new content, read as a stranger would: before it goes by where code has moved, else on its way."""
    original, device = file.open(), file.code.file
    result = thinning.source(original)
    if thinning.compaction is not None:
        check_thinning(original, result, file.code, thinning, name=file.path)
        yield from iter_source(result)
        return
    scanner, offset = DeviceScanner(), 0
    for chunk in iter_source(result):
        scanner.feed(offset, chunk)
        yield chunk
        offset += len(chunk)
    if thinning.changed:
        sections = [code.section for code in device.code]
        check_thinned(scanner.containers(sections, source=result), thinning.thinned, name=file.path)


def _forgetting(chunks: Callable[[], Iterator[bytes]], view: memoryview, entry: ZipEntry) -> Iterator[bytes]:
    """The same, with the mapped pages of the member given back now and then."""
    passed = 0
    for chunk in chunks():
        yield chunk
        passed += len(chunk)
        if passed > _FORGET_EVERY:
            forget(view, entry.data, entry.data + entry.compressed)
            passed = 0


def _result(plan: _Plan, files: Sequence[_Library], *, file: str, size: int) -> ThinResult:
    libraries = [_saving(each.code.file, plan.files[each.path]) for each in files if each.path in plan.files]
    less = sum(library.download if file.endswith(".whl") else library.saved for library in libraries)
    return ThinResult(
        gpus=tuple(gpu.name for gpu in plan.gpus), file=file, size=max(0, size - less), libraries=tuple(libraries)
    )


def _saving(file: DeviceFile, thinning: Thinning) -> LibrarySaving:
    thinned, notes = thinning.thinned, list(thinning.notes)
    if thinned.missing:
        notes.append(f"{thinned.missing} containers already lacked code for that GPU")
    if thinned.exact:
        notes.append(f"{thinned.exact} containers run only on that exact GPU, not on later GPUs in its family")
    code = sum(section.section.size for section in file.code)
    whole = sum(section.section.size * file.ratio(section.section) for section in file.code)
    return LibrarySaving(
        path=file.path,
        size=file.size,
        code=code,
        dropped=thinned.dropped,
        saved=thinning.saved,
        download=int(thinned.dropped * whole / code) if code else 0,
        archs=thinned.archs,
        notes=tuple(notes),
    )


def _refusal(plan: _Plan) -> ThinResult:
    reasons = tuple(f"{problem.file}: {problem.message}" for problem in plan.refused)
    return ThinResult(gpus=tuple(gpu.name for gpu in plan.gpus), refused=reasons)


def _base_variant(wheel: OpenWheel, entries: dict[str, ZipEntry]) -> WheelVariant | None:
    """The variant that the wheel already is."""
    entry = entries.get(f"{wheel.folder}/{VARIANT_FILE}")
    if entry is None:
        return None
    variants = read_variants(wheel.view, entry, archive=wheel.path.name).variants
    return variants[0] if variants else None


def _cuda(wheel: OpenWheel, files: Sequence[_Library]) -> str | None:
    needed = [soname for file in files for soname in file.code.file.facts.needed]
    return cuda_floor(version=wheel.name.version, requires=wheel.metadata.requires, needed=needed)
