"""``axletree audit``: check wheels and say what is wrong, worst first."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec

from axletree.app.audit import audit_wheel
from axletree.core.errors import UsageError
from axletree.core.units import format_bytes
from axletree.package.policy import parse_glibc

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from axletree.check.audit import AuditReport
    from axletree.core.findings import Finding

_COLOURS = {"error": "red", "warning": "yellow", "info": "cyan"}
_EVIDENCE = 5


@click.command()
@click.argument("wheels", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="WHEEL...")
@click.option(
    "--provided-by",
    multiple=True,
    metavar="DIST=PATTERN",
    help="Libraries that another distribution brings, such as 'torch=libtorch*.so'. Repeatable.",
)
@click.option("--glibc", metavar="VERSION", help="Highest glibc version that the wheels may need, such as 2.28.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object for each wheel, one a line.")
def command(wheels: tuple[Path, ...], provided_by: tuple[str, ...], glibc: str | None, *, as_json: bool) -> int:
    """Check wheels: tags, RECORD, libraries they need, glibc floor, RPATH.

    Each wheel is read once and not unpacked. Exit code 1 means that there are findings of severity error.
    """
    if glibc is not None and parse_glibc(glibc) is None:
        raise UsageError(f"--glibc: {glibc!r} is no version", hint="write it as 2.28")
    providers = _providers(provided_by)
    failed = False
    for index, path in enumerate(wheels):
        report = audit_wheel(path, provided_by=providers, glibc=glibc)
        failed = failed or report.failed
        if as_json:
            click.echo(msgspec.json.encode(report))
        else:
            click.echo("\n".join(([""] if index else []) + list(_render(report))))
    return int(failed)


def _providers(options: Iterable[str]) -> dict[str, list[str]]:
    providers: dict[str, list[str]] = {}
    wrong = []
    for option in options:
        name, separator, pattern = option.partition("=")
        if not (name and separator and pattern):
            wrong.append(f"--provided-by: {option!r} is not of the form DIST=PATTERN")
        providers.setdefault(name, []).append(pattern)
    if wrong:
        raise UsageError(*wrong, hint="for example --provided-by 'torch=libtorch*.so'")
    return providers


def _render(report: AuditReport) -> Iterator[str]:
    yield click.style(report.file, bold=True)
    yield f"  {report.files} files, {report.elf_files} of them ELF, {format_bytes(report.size)}"
    floors = ", ".join(report.floors.values())
    if floors:
        yield f"  lowest platform tag for its symbols: {floors}; highest glibc version: {report.glibc or 'none named'}"
    if report.needs:
        yield from _needs(report)
    yield from (line for finding in report.findings for line in _finding(finding))
    counts = [
        f"{count} {severity}{'s' if count != 1 and severity != 'info' else ''}"
        for severity in _COLOURS
        if (count := sum(finding.severity == severity for finding in report.findings))
    ]
    yield f"  {', '.join(counts)}" if counts else click.style("  nothing to say", fg="green")


def _needs(report: AuditReport) -> Iterator[str]:
    yield "  needs:"
    width = max(len(need.soname) for need in report.needs)
    for need in report.needs:
        owner = {"nobody": click.style("NOBODY", fg="red"), "distribution": need.by, "wheel": f"wheel: {need.by}"}
        files = f"{len(need.files)} file{'s' if len(need.files) > 1 else ''}"
        yield f"    {need.soname:{width}}  {files:>9}  {owner.get(need.owner, need.owner)}"


def _finding(finding: Finding) -> Iterator[str]:
    head = click.style(finding.severity, fg=_COLOURS[finding.severity], bold=True)
    yield f"  {head} {finding.where}: {finding.message} [{finding.rule}]"
    yield from (f"      {line}" for line in finding.evidence[:_EVIDENCE])
    if len(finding.evidence) > _EVIDENCE:
        yield f"      and {len(finding.evidence) - _EVIDENCE} more"
    if finding.fix:
        yield f"      fix: {finding.fix}"
