"""Split a wheel on disk into several, with an index root to install them from. All or nothing."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import msgspec

from axletree.app.index_root import Addition, StagedFile, add_to_roots, staged_wheel, staging
from axletree.app.installing import Root, offers_of
from axletree.app.shipped import recipes_folder
from axletree.binary.zip.records import EARLIEST
from axletree.core.errors import HostError, Problem, UsageError
from axletree.host.archive import map_file, write_wheel_file
from axletree.host.shipped_data import read_shipped
from axletree.package.closure import closures
from axletree.package.install import wheel_commands
from axletree.package.libraries.providers import LIBRARY_PROVIDERS
from axletree.package.split.plan import plan_split
from axletree.package.split.report import SplitReport
from axletree.package.split.rules import SplitRules, parse_split_rules
from axletree.package.split.source import read_split_source
from axletree.package.wheel.names import parse_wheel_name
from axletree.package.wheel.writer import Packed

if TYPE_CHECKING:
    from collections.abc import Sequence
    from concurrent.futures import Executor

    from axletree.app.split_conda import CondaParts
    from axletree.host.archive import WheelFile
    from axletree.host.folder_lock import Note
    from axletree.package.split.plan import SplitPart, SplitPlan
    from axletree.package.split.source import SplitSource

Format = Literal["wheel", "conda"]

_LARGEST_RULES = 1 << 20
"""Bytes of a rules file."""


class WrittenPackage(msgspec.Struct, frozen=True, kw_only=True):
    """A package on disk."""

    path: Path
    size: int
    """Size in bytes."""


class SplitOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a split, or its plan: report of ``split``."""

    split: SplitReport
    out: Path
    """Index root of the written packages."""
    written: tuple[WrittenPackage, ...] = ()
    """Empty for a dry run."""
    install: tuple[str, ...] = ()
    """pip commands that install the wheels, for each Python; empty if no wheels were written."""

    @property
    def files(self) -> tuple[Path, ...]:
        """Where the packages are that were written."""
        return tuple(each.path for each in self.written)


def split_wheel(
    path: Path,
    rules: SplitRules,
    out: Path,
    *,
    formats: Sequence[Format] = ("wheel",),
    verify: bool = True,
    dry_run: bool = False,
    epoch: int = EARLIEST,
    note: Note = lambda _: None,
) -> SplitOutcome:
    """Split a wheel.

    Args:
        path: the wheel, which stays as it is.
        rules: what goes where.
        out: index root for the result; made where it is missing.
        formats: of the packages.
        verify: read everything back, prove that the parts still find each other's libraries, and bring it to the disk
            before it is published.
        dry_run: only plan; nothing is written.
        epoch: date of the members.
        note: told whom this waits for, when somebody else writes into the index root.

    Raises:
        IntegrityError: the wheel is damaged, the rules do not fit it, or the parts do not work together.
        PublishError: the folder has other files of the same names.
        HostError: a file can't be read or written.
    """
    source = read_split_source(map_file(path), filename=path.name)
    plan = plan_split(source, rules, providers=read_shipped(LIBRARY_PROVIDERS), epoch=epoch)
    if dry_run:
        return SplitOutcome(split=plan.report, out=out)
    with staging(out) as folder, ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        # Most of the work is the kernel's and the libraries' that hash and inflate: it runs beside Python.
        wanted = plan.parts if verify or "wheel" in formats else ()  # the proof reads wheels
        files = _write_parts(folder, wanted, epoch, pool)
        report = plan.report
        if verify:
            report = msgspec.structs.replace(
                report, notes=_prove(source, rules, plan, [file for file, _ in files], pool)
            )
        staged = tuple(file for _, file in files) if "wheel" in formats else ()
        if "conda" in formats:
            conda = _write_conda(folder, plan, source, epoch)
            staged += conda.staged
            report = msgspec.structs.replace(report, conda=conda.report, notes=(*report.notes, *conda.notes))
        paths = add_to_roots([out], lambda: [Addition(out=out, staged=staged)], durable=verify, note=note)
    wheels = [path for path in paths if path.suffix == ".whl"]
    return SplitOutcome(
        split=report,
        out=out,
        written=tuple(WrittenPackage(path=path, size=path.stat().st_size) for path in paths),
        install=_install(out, wheels) if wheels else (),
    )


def _install(out: Path, wheels: Sequence[Path]) -> tuple[str, ...]:
    return tuple(wheel_commands(found)["pip"] for found in closures(offers_of(wheels), Root(out.absolute()).find))


def load_split_rules(name_or_path: str | None, *, wheel: Path) -> SplitRules:
    """Read rules: a ``.toml`` file, or those that ship under a name, by default the project's of the wheel.

    Raises:
        UsageError: there are none.
        RecipeError: they have faults, all of which are given.
        HostError: the file can't be read.
        IntegrityError: the file is not named as a wheel.
    """
    text = name_or_path or parse_wheel_name(wheel.name).project
    if text.endswith(".toml") or "/" in text:
        path = Path(text)
    else:
        shipped = _shipped()
        if text not in shipped:
            hint = f"specify a file with --rules; Axletree ships rules for {', '.join(shipped) or 'no project'}"
            raise UsageError(f"no rules found to split {text!r}", hint=hint)
        path = shipped[text]
    return parse_split_rules(_read(path), filename=str(path))


def _shipped() -> dict[str, Path]:
    folder = recipes_folder()
    return {path.stem: path for path in sorted(folder.glob("split/*.toml"))} if folder else {}


def _read(path: Path) -> str:
    try:
        with path.open("rb") as file:
            data = file.read(_LARGEST_RULES + 1)
    except FileNotFoundError:
        raise UsageError(f"rules file {path} does not exist") from None
    except OSError as error:
        raise HostError(Problem(message=f"the rules file cannot be read: {error.strerror}", file=str(path))) from error
    if len(data) > _LARGEST_RULES:
        raise UsageError(f"{path} is larger than {_LARGEST_RULES >> 20} MiB, the limit for rules files")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UsageError(f"{path} is not UTF-8 text") from error


def _write_parts(
    folder: Path, parts: Sequence[SplitPart], epoch: int, pool: Executor
) -> tuple[tuple[WheelFile, StagedFile], ...]:
    """Write the wheels of parts side by side, the largest first: what is begun last is done soon."""
    largest_first = sorted(parts, key=_bytes, reverse=True)
    written = pool.map(partial(_write, folder, epoch=epoch), largest_first)
    files = {part.name: file for part, file in zip(largest_first, written, strict=True)}
    return tuple(files[part.name] for part in parts)


def _bytes(part: SplitPart) -> int:
    return sum(len(member.data.data) for member in part.members if isinstance(member.data, Packed))


def _write(folder: Path, part: SplitPart, *, epoch: int) -> tuple[WheelFile, StagedFile]:
    file = write_wheel_file(
        folder,
        part.name,
        part.members,
        metadata=part.metadata,
        wheel_info=part.wheel_info,
        epoch=epoch,
        verify=False,  # all parts are read back together, once, when what they need of each other is known
        digest=True,
    )
    return file, staged_wheel(file, part.metadata.get("Requires-Python"))


def _write_conda(folder: Path, plan: SplitPlan, source: SplitSource, epoch: int) -> CondaParts:
    from axletree.app.split_conda import write_conda_parts  # noqa: PLC0415 (only who wants them pays for the import)

    return write_conda_parts(folder, plan, platform=source.name.platform, epoch=epoch, environ=os.environ)


def _prove(
    source: SplitSource, rules: SplitRules, plan: SplitPlan, written: Sequence[WheelFile], pool: Executor
) -> tuple[str, ...]:
    from axletree.package.libraries.policy import MANYLINUX_POLICIES  # noqa: PLC0415 (not paid for by who wants no proof)
    from axletree.package.split.proof import ReadPart, prove_split  # noqa: PLC0415
    from axletree.package.wheel.scan import scan_wheel  # noqa: PLC0415

    scans = pool.map(lambda file: scan_wheel(map_file(file.path), filename=file.path.name), written)
    parts = [
        ReadPart(part=part, written=file.written, scan=scan)
        for part, file, scan in zip(plan.parts, written, scans, strict=True)
    ]
    return prove_split(
        parts,
        origins=plan.origins,
        before=plan.before,
        opens=rules.opens,
        requires=source.metadata.requires,
        providers=read_shipped(LIBRARY_PROVIDERS),
        policies=read_shipped(MANYLINUX_POLICIES),
    )
