"""``axletree audit``: check wheels and conda packages and say what is wrong, worst first."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from axletree.app.audit import AuditedFiles, Promises, audit_paths
from axletree.cli.notes import at_work, print_line
from axletree.cli.options import EXISTING, PATH
from axletree.cli.reporting import ReportCommand, Reported, wants_json
from axletree.core.errors import UsageError
from axletree.package.libraries.policy import parse_glibc
from axletree.view.audit import render_audit

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from axletree.check.audit import AuditReport


@click.command(cls=ReportCommand, report=AuditedFiles)
@click.argument("paths", nargs=-1, required=True, type=EXISTING, metavar="FILE_OR_FOLDER...")
@click.option(
    "--policy",
    metavar="NAME",
    help="Also check that the wheels comply with this policy or platform tag, such as manylinux_2_28.",
)
@click.option(
    "--torch",
    type=PATH,
    metavar="WHEEL_OR_ENV",
    help=(
        "Also check that the torch in this wheel or virtual environment exports the symbols that the checked wheels "
        "need."
    ),
)
@click.option(
    "--provided-by",
    multiple=True,
    metavar="DIST=PATTERN",
    help=(
        "Treat needed libraries that match PATTERN as provided by the distribution DIST, such as "
        "'mylib=libmylib*.so'. Repeatable. Libraries from torch, from GPU drivers, and from NVIDIA, AMD and Intel "
        "wheels are recognized without this option."
    ),
)
@click.option("--glibc", metavar="VERSION", help="Fail if a wheel needs a newer glibc than VERSION, such as 2.28.")
@click.option(
    "--neighbours",
    type=EXISTING,
    metavar="FILE_OR_FOLDER",
    help=(
        "Also compare the paths of conda packages with those of this conda package, or of all conda packages in this "
        "folder and its subfolders, such as a channel."
    ),
)
@click.option("--hashes", is_flag=True, help="Also compare the hashes of files larger than 16 MiB with RECORD.")
def command(
    paths: tuple[Path, ...],
    policy: str | None,
    torch: Path | None,
    provided_by: tuple[str, ...],
    glibc: str | None,
    neighbours: Path | None,
    *,
    hashes: bool,
) -> Reported:
    """Check wheels: tags, RECORD, needed libraries, minimum platform, RPATH and GPU code.

    Reads each wheel once, without unpacking it. Given a folder, checks every wheel in it; if there are none, checks
    the machine code in the folder as an unpacked tree. Conda packages are checked against their own metadata (paths,
    hashes, links, prefixes and compiled files) and against the paths and libraries of other conda packages. The exit
    code is 1 if there are any findings of severity `error`.
    """
    if glibc is not None and parse_glibc(glibc) is None:
        raise UsageError(f"--glibc: {glibc!r} is not a version", hint="write it as 2.28")
    promises = Promises(
        provided_by=_providers(provided_by),
        policy=policy,
        glibc=glibc,
        torch=torch,
        hashes="all" if hashes else "small",
        neighbours=neighbours,
    )
    reports: list[AuditReport] = []
    for report in audit_paths(paths, promises, at_work=at_work):
        if not wants_json():  # as soon as it is there: an audit of many wheels takes its time
            print_line("\n".join([*([""] if reports else []), *render_audit(report, click.style)]))
        reports.append(report)
    return Reported(AuditedFiles(tuple(reports)), lambda: (), int(any(report.failed for report in reports)))


def _providers(options: Iterable[str]) -> dict[str, tuple[str, ...]]:
    providers: dict[str, list[str]] = {}
    wrong = []
    for option in options:
        name, separator, pattern = option.partition("=")
        if not (name and separator and pattern):
            wrong.append(f"--provided-by: {option!r} is not of the form DIST=PATTERN")
        providers.setdefault(name, []).append(pattern)
    if wrong:
        raise UsageError(*wrong, hint="for example --provided-by 'mylib=libmylib*.so'")
    return {name: tuple(patterns) for name, patterns in providers.items()}
