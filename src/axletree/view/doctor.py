"""What a doctor says of a host: worst first, in groups, with the one command to run next."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import msgspec

from axletree.core.findings import SEVERITIES
from axletree.view.tables import plural, printable

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from axletree.check.host.facts import HostFacts
    from axletree.core.findings import Finding

SCHEMA = 1
_COLOURS = {"error": "red", "warning": "yellow", "info": "blue"}
_HEADS = {
    "error": "would fail",
    "warning": "would go wrong, or not as meant",
    "info": "good to know",
}
_EVIDENCE = 6
_VARIANTS = 3


class Style(Protocol):
    """Colours a text, as :func:`click.style` does."""

    def __call__(self, text: str, *, fg: str | None = None, bold: bool | None = None) -> str:
        """The text with colours."""


class Affecting(Protocol):
    """A finding and for whom it holds: see ``axletree.app.doctor.Affecting``."""

    @property
    def finding(self) -> Finding:
        """What is the case."""

    @property
    def variants(self) -> Sequence[str]:
        """Those that it is about."""


class Answer(Protocol):
    """What is shown: see ``axletree.app.doctor.Diagnosed``."""

    @property
    def recipe(self) -> str:
        """For which the host was examined; empty where none was named."""

    @property
    def variants(self) -> Sequence[str]:
        """All that were examined."""

    @property
    def affecting(self) -> Sequence[Affecting]:
        """Findings, worst first."""


def render_doctor(host: HostFacts, answer: Answer, style: Style) -> Iterator[str]:
    """The answer, line by line."""
    yield printable(f"{_host(host)}{_for(answer)}")
    findings = [each.finding for each in answer.affecting]
    for severity in SEVERITIES:
        here = [each for each in answer.affecting if each.finding.severity == severity]
        if here:
            yield ""
            yield style(f"{_HEADS[severity]} ({len(here)})", fg=_COLOURS[severity], bold=True)
            yield from (line for each in here for line in _finding(each, len(answer.variants)))
    yield ""
    step = next_step(findings)
    if not findings:
        yield style("nothing to say: this host is fit", fg="green")
    elif step is not None:
        yield f"next: {style(printable(step), bold=True)}"
    else:
        yield _summary(findings)


def next_step(findings: Sequence[Finding]) -> str | None:
    """What to do first: the worst finding's command, or advice where it has none; nothing about mere information."""
    if not findings or findings[0].severity == "info":
        return None
    lines = (findings[0].fix or "").splitlines()
    commands = [line[2:] for line in lines if line.startswith("$ ")]
    return next(iter(commands or lines), None)


def _summary(findings: Sequence[Finding]) -> str:
    counts = {severity: sum(finding.severity == severity for finding in findings) for severity in SEVERITIES}
    return ", ".join(plural(counts[severity], severity) for severity in SEVERITIES if counts[severity])


def _for(answer: Answer) -> str:
    if not answer.variants:
        return ""
    few = len(answer.variants) == 1
    return f", for {answer.recipe} {answer.variants[0] if few else plural(len(answer.variants), 'variant')}"


def _host(host: HostFacts) -> str:
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
    return ", ".join(parts) or "a host with few known facts"


def _finding(each: Affecting, examined: int) -> Iterator[str]:
    finding = each.finding
    yield printable(f"  {finding.where}: {finding.message} [{finding.rule}]")
    if len(each.variants) < examined:
        yield f"      for {_listed(each.variants)}"
    yield from (f"      {printable(line)}" for line in finding.evidence[:_EVIDENCE])
    if len(finding.evidence) > _EVIDENCE:
        yield f"      and {len(finding.evidence) - _EVIDENCE} more"
    for number, line in enumerate((finding.fix or "").splitlines()):
        yield f"    {'->' if number == 0 else '  '} {printable(line)}"


def _listed(variants: Sequence[str]) -> str:
    more = len(variants) - _VARIANTS
    return ", ".join(variants[:_VARIANTS]) + (f" and {more} more" if more > 0 else "")


def doctor_document(host: HostFacts, answer: Answer) -> dict[str, object]:
    """All of it, for programs."""
    findings = [each.finding for each in answer.affecting]
    return {
        "schema": SCHEMA,
        "host": _host(host),
        "recipe": answer.recipe,
        "variants": tuple(answer.variants),
        "findings": [
            {**msgspec.structs.asdict(each.finding), "variants": tuple(each.variants)} for each in answer.affecting
        ],
        "next": next_step(findings),
    }
