"""Write the parts of a split wheel as conda packages, into the subfolders of a channel."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple

from axletree.app.index_root import StagedFile
from axletree.core.errors import HostError
from axletree.host.conda import write_conda_file
from axletree.host.conda_channel import channel_line
from axletree.host.conda_pyc import compile_pyc
from axletree.host.interpreters import find_interpreter
from axletree.host.shipped_data import read_shipped
from axletree.package.conda.requires import CONDA_NAMES
from axletree.package.split.conda import plan_conda_parts, prove_conda_parts
from axletree.package.split.report import SplitConda

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from axletree.package.conda.model import CondaFile
    from axletree.package.conda.reader import CondaFacts
    from axletree.package.split.conda import CondaPart
    from axletree.package.split.plan import SplitPlan


class CondaParts(NamedTuple):
    """What was written."""

    staged: tuple[StagedFile, ...]
    report: tuple[SplitConda, ...]
    notes: tuple[str, ...]


def write_conda_parts(
    folder: Path, plan: SplitPlan, *, platform: str, epoch: int, environ: Mapping[str, str]
) -> CondaParts:
    """Write a conda package for each part, read them back, and prove that they hold together.

    Parts for one Python get compiled files by that Python; where this machine has none, a note says so.

    Args:
        folder: for the packages, each in its subfolder.
        plan: the parts.
        platform: platform tag of the wheel that was split.
        epoch: date of the files.
        environ: where to look for interpreters.

    Raises:
        IntegrityError: conda has no such platform, a part can't become a package, or they do not hold together.
        HostError: the folder can't be written.
    """
    threads = len(os.sched_getaffinity(0))
    staged: list[StagedFile] = []
    report: list[SplitConda] = []
    facts: list[CondaFacts] = []
    notes: dict[str, None] = {}
    for part in plan_conda_parts(plan.parts, platform=platform, names=read_shipped(CONDA_NAMES)):
        package = part.package
        compiled = _compiled(part, environ, notes, threads)
        target, files = folder / package.subdir, (*part.files, *compiled)
        written = write_conda_file(target, package, files, epoch=epoch, threads=threads)
        facts.append(written.facts)
        file = StagedFile(path=written.path, size=written.size, sha256=written.sha256, line=channel_line(written))
        staged.append(file)
        report.append(
            SplitConda(
                name=package.name,
                filename=file.place,
                depends=package.depends,
                constrains=package.constrains,
                guessed=part.guessed,
                compiled=len(compiled),
            )
        )
    prove_conda_parts(facts)
    guessed = sorted({name for part in report for name in part.guessed})
    if guessed:
        notes[
            f"conda: no package is known for {', '.join(guessed)}; using the distribution's name as the dependency"
        ] = None
    return CondaParts(tuple(staged), tuple(report), tuple(notes))


def _compiled(
    part: CondaPart, environ: Mapping[str, str], notes: dict[str, None], threads: int
) -> tuple[CondaFile, ...]:
    if part.python is None:
        return ()
    try:
        interpreter = find_interpreter(part.python, environ=environ)
    except HostError as error:
        hint = f" ({error.problems[-1].hint})" if error.problems[-1].hint else ""
        notes[
            (
                f"conda: {part.package.name} has no compiled Python files because this machine does not have Python "
                f"{part.python}{hint}"
            )
        ] = None
        return ()
    return compile_pyc(
        part.files,
        interpreter,
        python=part.python,
        placeholder=part.package.placeholder,
        environ=environ,
        threads=threads,
    ).files
