"""An audit's report as text: what the wheel is, who brings what it needs, what is wrong, worst first."""

from __future__ import annotations

from typing import TYPE_CHECKING

from axletree.core.units import format_bytes, plural
from axletree.view.findings import Style, counted, finding_lines, indented
from axletree.view.tables import printable

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from axletree.check.audit import AuditReport
    from axletree.package.libraries.linkage import Need, Owner

_WIDTH = 100
_OWNERS: dict[Owner, str] = {
    "wheel": "in the wheel",
    "system": "guaranteed by the tag",
    "distribution": "required",
    "sibling": "probably required",
    "driver": "GPU driver",
    "host": "the host system",
    "python": "the interpreter",
    "optional": "for some users",
    "undeclared": "NOT REQUIRED",
    "nobody": "NOBODY",
}


def render_audit(report: AuditReport, style: Style) -> Iterator[str]:
    """The report, line by line."""
    yield style(report.file, bold=True)
    size = f", {format_bytes(report.size)}" if report.size else ""
    yield f"  {report.files} files, {report.elf_files} of them ELF files{size}"
    yield f"  platform: {report.verdict}"
    if report.torch is not None:
        torch = report.torch
        yield f"  torch {torch.version}: uses {torch.symbols} of its symbols, {len(torch.missing)} missing"
    if report.compared:
        yield f"  paths compared with: {', '.join(report.compared)}"
    yield from _needs(report.needs, style)
    if report.unhashed:
        large, names = plural(len(report.unhashed), "large file"), printable(", ".join(report.unhashed[:3]))
        yield f"  not compared with RECORD without --hashes: {large}: {names}"
    for finding in report.findings:
        yield from indented(finding_lines(finding, style))
    yield f"  {counted(report.findings)}" if report.findings else style("  no problems found", fg="green")


def _needs(needs: Iterable[Need], style: Style) -> Iterator[str]:
    """Needed libraries by owner; what the tag promises and what is in the wheel in one line each."""
    groups: dict[tuple[Owner, str, str], list[str]] = {}
    for owner in _OWNERS:
        for need in needs:
            if need.owner == owner:
                by = "" if owner == "wheel" else need.by
                groups.setdefault((owner, by, need.via), []).append(need.soname)
    if groups:
        yield "  needs:"
    width = max((len(_OWNERS[owner]) for owner, _, _ in groups), default=0)
    for (owner, by, via), sonames in groups.items():
        names = list(dict.fromkeys(sonames))
        who = f"{by}: " if by else ""
        through = f" (which {via} loads)" if via else ""
        label = f"{_OWNERS[owner]:{width}}"
        shown = style(label, fg="red") if owner in {"nobody", "undeclared"} else label
        yield f"    {shown}  {printable(f'{who}{_shorten(names)}{through}')}"


def _shorten(names: list[str]) -> str:
    """As many names as fit on a line."""
    shown: list[str] = []
    for name in names:
        if shown and len(", ".join([*shown, name])) > _WIDTH:
            break
        shown.append(name)
    rest = len(names) - len(shown)
    return ", ".join(shown) + (f" and {rest} more" if rest else "")
