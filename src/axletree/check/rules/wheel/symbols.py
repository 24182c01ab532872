"""Rules about the torch that a wheel will meet: symbols, libraries, machine."""

from __future__ import annotations

from typing import TYPE_CHECKING

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from axletree.check.engine import Case, Found, Rule, listing, subject
from axletree.check.rules.wheel.sample import CORE, sample
from axletree.package.libraries.torch_symbols import MissingSymbol, TorchMatch

if TYPE_CHECKING:
    from collections.abc import Iterator

    from axletree.check.dist import DistFacts

_OTHER = "demo/image.so"


def _label(match: TorchMatch) -> str:
    return f"torch {match.version}" if match.version else f"the torch in {match.origin}"


def _missing(facts: DistFacts) -> Iterator[Found]:
    match = facts.torch
    if match is None:
        return
    groups: dict[tuple[str, ...], list[MissingSymbol]] = {}
    for missing in match.missing:
        groups.setdefault(missing.files, []).append(missing)
    for files, symbols in groups.items():
        alone = len(symbols) == 1
        what = f"{symbols[0].text}, which" if alone else f"{len(symbols)} symbols that"
        message = f"{subject(files, 'needs', 'need')} {what} {_label(match)} does not export"
        evidence = tuple(
            line
            for symbol in symbols
            for line in (*([] if alone else [symbol.text]), *(f"exported instead: {text}" for text in symbol.instead))
        )
        yield Found(where=files[0], message=message, evidence=evidence, fix=_fix(facts, match))


def _fix(facts: DistFacts, match: TorchMatch) -> str | None:
    """Where the wheel's own requirement excludes this torch, that is the news."""
    metadata = facts.wheel.metadata
    for text in metadata.requires if metadata is not None else ():
        try:
            requirement, version = Requirement(text), Version(match.version)
        except (InvalidRequirement, InvalidVersion):
            continue
        if canonicalize_name(requirement.name) == "torch" and not requirement.specifier.contains(
            version, prereleases=True
        ):
            return f"build the wheel against {_label(match)}; its current requirement, {text}, excludes that release"
    return None


def _absent(facts: DistFacts) -> Iterator[Found]:
    match = facts.torch
    if match is None:
        return
    for soname, files in match.absent.items():
        message = f"{subject(files, 'needs', 'need')} {soname}, which {_label(match)} does not provide"
        yield Found(where=files[0], message=message, evidence=listing(files))


def _other_machine(facts: DistFacts) -> Iterator[Found]:
    match = facts.torch
    if match is not None and match.other_machine:
        files = match.other_machine
        message = (
            f"{subject(files, 'is', 'are')} for a different machine than {_label(match)}, so their symbols were "
            "not compared"
        )
        yield Found(where=files[0], message=message, evidence=listing(files))


_CHECK = MissingSymbol(symbol="_ZN3c104testEv", text="c10::test()", files=(CORE, _OTHER))
_MATCH = TorchMatch(origin="torch-2.14.1.whl", version="2.14.1+cu130", symbols=85)

SYMBOL_RULES: tuple[Rule[DistFacts], ...] = (
    Rule(
        id="dist/torch-library-missing",
        severity="error",
        title="The torch used at run time lacks a library that the wheel needs",
        why=(
            "Importing fails with `cannot open shared object file`, for example if a wheel built for CUDA is "
            "used with a CPU build of torch."
        ),
        fix="build the wheel against this torch, or name the torch build that the wheel is for",
        check=_absent,
        cases=lambda: (
            Case(
                title="libtorch_cuda.so with a CPU build of torch",
                facts=sample(
                    torch=TorchMatch(
                        origin="t.whl", version="2.14.1+cpu", symbols=9, absent={"libtorch_cuda.so": (CORE,)}
                    )
                ),
                fires=True,
            ),
            Case(title="all libraries present", facts=sample(torch=_MATCH), fires=False),
        ),
    ),
    Rule(
        id="dist/torch-symbol-missing",
        severity="error",
        title="The torch used at run time does not export a symbol that the wheel needs",
        why="Importing fails with `undefined symbol`. torch's C++ interface changes with each release: a function "
        "with an added argument has a different symbol.",
        fix="build the wheel against this torch, or against torch's stable interface (`torch/csrc/stable`)",
        check=_missing,
        cases=lambda: (
            Case(
                title="a function that this release changed",
                facts=sample(torch=TorchMatch(origin="t.whl", version="2.14.1", symbols=85, missing=(_CHECK,))),
                fires=True,
            ),
            Case(title="all 85 symbols exported", facts=sample(torch=_MATCH), fires=False),
            Case(title="no torch named", facts=sample(), fires=False),
        ),
    ),
    Rule(
        id="dist/torch-other-machine",
        severity="error",
        title="The torch used at run time is for a different machine",
        why="The wheel and torch cannot be loaded on the same machine, and their symbols cannot be compared.",
        fix="name a torch build for the wheel's machine",
        check=_other_machine,
        cases=lambda: (
            Case(
                title="an x86_64 wheel with an aarch64 torch",
                facts=sample(torch=TorchMatch(origin="t.whl", version="2.14.1", symbols=0, other_machine=(CORE,))),
                fires=True,
            ),
            Case(title="the same machine", facts=sample(torch=_MATCH), fires=False),
        ),
    ),
)
