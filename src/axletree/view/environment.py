"""Environments for people: what was made, and what tools really take."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from axletree.environment.verify import shadowed
from axletree.view.tables import plural, printable

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from axletree.core.findings import Finding
    from axletree.environment.delta import Entry
    from axletree.environment.description import Description
    from axletree.environment.verify import Choice, Proof, Verified

SCHEMA = 1


class Report(Protocol):
    """What is shown: see :class:`axletree.app.environments.Report`."""

    @property
    def seen(self) -> Verified:
        """What was seen."""

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What is wrong with it."""


def created_text(description: Description) -> str:
    """What an environment has, and the next command."""
    return "\n".join(printable(line) for line in _created(description))


def _created(description: Description) -> Iterator[str]:
    what = {"venv": "wheel", "conda": "package", "system": "package"}[description.provider]
    toolkit = f", GPU toolkit {description.toolkit}" if description.toolkit else ""
    count = plural(len(description.packages), what)
    yield f"{description.name} for {description.variant}: {description.provider}, {count}{toolkit}"
    for name, entries in (
        ("include", description.order.include),
        ("link", description.order.link),
        ("run", description.order.run),
    ):
        yield from _order(name, entries)
    for note in description.notes:
        yield f"note: {note}"
    yield f'activate: eval "$(axletree env activate {_shown(description.folder)})"'
    yield f"verify: axletree env verify {_shown(description.folder)}"


def _order(name: str, entries: Sequence[Entry]) -> Iterator[str]:
    for number, entry in enumerate(entries, 1):
        yield f"  {name if number == 1 else '':<8}{number}. {entry.path}  ({entry.origin})"


def _shown(folder: str) -> str:
    plain = all(char.isalnum() or char in "/._-+" for char in folder)
    return folder if plain else "'" + folder.replace("'", "'\\''") + "'"


def verified_text(report: Report, *, everything: bool) -> str:
    """Compilers with what they take, then what is wrong, worst first."""
    lines: list[str] = []
    for proof in report.seen.proofs:
        lines += _proof(proof, everything=everything)
    for finding in report.findings:
        lines += ["", *_finding(finding)]
    lines += ["", _verdict(report)]
    return "\n".join(printable(line) for line in lines)


def _proof(proof: Proof, *, everything: bool) -> Iterator[str]:
    yield f"{proof.compiler} {proof.version} ({proof.path})"
    if everything:
        for number, origin in enumerate(proof.include, 1):
            yield f"  {'include' if number == 1 else '':<8}{number}. {origin.path}  ({origin.by})"
    for name, choices in (("headers", proof.headers), ("linked", proof.linked), ("loaded", proof.loaded)):
        yield from _choices(name, choices, everything=everything)


def _choices(name: str, choices: Sequence[Choice], *, everything: bool) -> Iterator[str]:
    wrong = shadowed(choices)
    shown = choices if everything else _telling(choices)
    head = f"{plural(len(choices), 'file')}, {len(wrong)} not as expected" if wrong else "as expected"
    yield f"  {name:<8}{head if choices else 'nothing seen'}"
    for choice in shown:
        mark = "!" if choice in wrong else " "
        place = choice.actual.removesuffix(f"/{choice.name}") if name == "headers" else choice.actual
        yield f"    {mark} {choice.name}  {place}  ({choice.by})"
        if choice in wrong:
            yield f"      expected: {choice.expected}"


def _telling(choices: Iterable[Choice]) -> tuple[Choice, ...]:
    """Those that are wrong, and those that people ask for: the C++ library, the GPU's runtime and headers."""
    asked = ("libstdc++.so", "libcudart", "libamdhip64", "hip/", "thrust/", "cub/", "cuda_runtime")
    return tuple(each for each in choices if each.actual != each.expected or each.name.startswith(asked))


def _finding(finding: Finding) -> Iterator[str]:
    yield f"{finding.severity}: {finding.where}: {finding.message}"
    yield from (f"  {line}" for line in finding.evidence)
    if finding.fix is not None:
        first, *rest = finding.fix.splitlines()
        yield f"  do: {first}"
        yield from (f"      {line}" for line in rest)
    yield f"  rule: {finding.rule}"


def _verdict(report: Report) -> str:
    errors = sum(finding.severity == "error" for finding in report.findings)
    where = "this shell" if report.seen.environment == "system" else report.seen.environment
    if errors:
        return f"{where}: {plural(errors, 'error')}"
    compilers = ", ".join(proof.compiler for proof in report.seen.proofs)
    does = "takes what it should" if len(report.seen.proofs) == 1 else "take what they should"
    return f"{where}: {compilers} {does}"


def verified_document(report: Report) -> dict[str, object]:
    """All of it, for programs."""
    return {
        "schema": SCHEMA,
        "environment": report.seen.environment,
        "expected": {"include": report.seen.include, "link": report.seen.link, "run": report.seen.run},
        "compilers": report.seen.proofs,
        "findings": report.findings,
    }
