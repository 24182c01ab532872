"""Environments for people: what was made, and what tools really take."""

from __future__ import annotations

from typing import TYPE_CHECKING

from axletree.core.units import plural
from axletree.environment.verify import shadowed
from axletree.view.findings import Style, finding_lines, plain
from axletree.view.tables import printable

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from axletree.environment.delta import SearchFolder
    from axletree.environment.description import Description
    from axletree.environment.verify import Choice, Proof
    from axletree.report.environment import VerifiedEnvironment


def created_text(description: Description) -> str:
    """What an environment has, and the next command."""
    return "\n".join(printable(line) for line in _created(description))


def _created(description: Description) -> Iterator[str]:
    what = {"venv": "wheel", "conda": "package", "system": "package"}[description.provider]
    toolkit = f", GPU toolkit {description.toolkit}" if description.toolkit else ""
    count = plural(len(description.packages), what)
    yield f"{description.name} for {description.variant}: {description.provider}, {count}{toolkit}"
    for name in ("include", "link", "run"):
        yield from _order(name, getattr(description.order, name))
    for note in description.notes:
        yield f"note: {note}"
    yield f'activate: eval "$(axletree env activate {_shown(description.folder)})"'
    yield f"verify: axletree env verify {_shown(description.folder)}"


def _order(name: str, entries: Sequence[SearchFolder]) -> Iterator[str]:
    for number, entry in enumerate(entries, 1):
        yield f"  {name if number == 1 else '':<8}{number}. {entry.path}  ({entry.origin})"


def _shown(folder: str) -> str:
    plain = all(char.isalnum() or char in "/._-+" for char in folder)
    return folder if plain else "'" + folder.replace("'", "'\\''") + "'"


def verified_lines(report: VerifiedEnvironment, *, everything: bool, style: Style = plain) -> Iterator[str]:
    """Compilers with what they take, then what is wrong, worst first."""
    for proof in report.compilers:
        yield from map(printable, _proof(proof, everything=everything))
    for finding in report.findings:
        yield ""
        yield from finding_lines(finding, style)
    yield ""
    yield printable(_verdict(report))


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
    head = f"{plural(len(choices), 'file')}, {len(wrong)} unexpected" if wrong else "as expected"
    yield f"  {name:<8}{head if choices else 'nothing used'}"
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


def _verdict(report: VerifiedEnvironment) -> str:
    errors = sum(finding.severity == "error" for finding in report.findings)
    where = "this shell" if report.environment == "system" else report.environment
    if errors:
        return f"{where}: {plural(errors, 'error')}"
    compilers = ", ".join(proof.compiler for proof in report.compilers)
    does = "uses the expected files" if len(report.compilers) == 1 else "use the expected files"
    return f"{where}: {compilers} {does}"
