"""What a doctor says of a host: worst first, with the one command to run next."""

from __future__ import annotations

from typing import TYPE_CHECKING

from axletree.core.units import plural
from axletree.view.findings import Style, counted, finding_lines
from axletree.view.tables import printable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from axletree.check.host.facts import HostFacts
    from axletree.report.doctor import HostReport


def render_doctor(report: HostReport, style: Style) -> Iterator[str]:
    """The report, line by line."""
    yield printable(f"{report.host}{_for(report)}")
    for finding in report.findings:
        yield ""
        yield from finding_lines(finding, style)
    yield ""
    if not report.findings:
        yield style("no problems found: this host is ready", fg="green")
    else:
        yield counted(report.findings)
    if report.next is not None:
        yield f"next: {style(printable(report.next), bold=True)}"


def _for(report: HostReport) -> str:
    if not report.variants:
        return ""
    few = len(report.variants) == 1
    return f", for {report.recipe} {report.variants[0] if few else plural(len(report.variants), 'variant')}"


def host_line(host: HostFacts) -> str:
    """A host as people speak of it: its system, cores, memory and GPUs."""
    system, parts = host.system, []
    if system.distribution:
        parts.append(f"{system.distribution} {system.distribution_version or ''}".strip())
    if host.cpu.cores:
        parts.append(plural(host.cpu.cores, "core"))
    if host.memory.total:
        parts.append(f"{host.memory.total / 2**30:.0f} GiB")
    gpus = [gpu.name or "NVIDIA GPU" for gpu in (host.cuda.driver.gpus or () if host.cuda.driver else ())]
    gpus += [gpu.gfx or "AMD GPU" for gpu in host.rocm.gpus or ()]
    if gpus or (host.cuda.driver is not None and host.rocm.gpus is not None):
        parts.append(", ".join(dict.fromkeys(gpus)) or "no GPU")
    return ", ".join(parts) or "unknown hardware"
