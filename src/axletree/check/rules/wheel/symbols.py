"""Rules about the torch that a wheel will meet: symbols, libraries, machine."""

from __future__ import annotations

from typing import TYPE_CHECKING

from packaging.utils import canonicalize_name

from axletree.check.engine import Found, Rule, fires, listing, silent, subject
from axletree.check.rules.wheel.sample import CORE, sample
from axletree.core.grouping import grouped
from axletree.package.libraries.torch_symbols import MissingSymbol, TorchMatch
from axletree.package.wheel.metadata import parse_requirement, parse_version

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
    groups = grouped((missing.files, missing) for missing in match.missing)
    for files, symbols in groups.items():
        alone = len(symbols) == 1
        what = f"{symbols[0].text}, which" if alone else f"{len(symbols)} symbols that"
        message = f"{subject(files, 'needs', 'need')} {what} {_label(match)} does not export"
        evidence = tuple(
            line
            for symbol in symbols
            for line in (*([] if alone else [symbol.text]), *(f"exported instead: {text}" for text in symbol.instead))
        )
        yield Found(files[0], message, evidence=evidence, fix=_fix(facts, match))


def _fix(facts: DistFacts, match: TorchMatch) -> str | None:
    """Where the wheel's own requirement excludes this torch, that is the news."""
    metadata, version = facts.wheel.metadata, parse_version(match.version)
    if metadata is None or version is None:
        return None
    for text in metadata.requires:
        requirement = parse_requirement(text)
        if requirement is None or canonicalize_name(requirement.name) != "torch":
            continue
        if not requirement.specifier.contains(version, prereleases=True):
            return f"build the wheel against {_label(match)}; its current requirement, {text}, excludes that release"
    return None


def _absent(facts: DistFacts) -> Iterator[Found]:
    match = facts.torch
    if match is None:
        return
    for soname, files in match.absent.items():
        message = f"{subject(files, 'needs', 'need')} {soname}, which {_label(match)} does not provide"
        yield Found(files[0], message, evidence=listing(files))


def _other_machine(facts: DistFacts) -> Iterator[Found]:
    match = facts.torch
    if match is not None and match.other_machine:
        files = match.other_machine
        message = (
            f"{subject(files, 'is', 'are')} for a different machine than {_label(match)}, so the symbols were "
            "not compared"
        )
        yield Found(files[0], message, evidence=listing(files))


_CHECK = MissingSymbol(symbol="_ZN3c104testEv", text="c10::test()", files=(CORE, _OTHER))
_MATCH = TorchMatch(origin="torch-2.14.1.whl", version="2.14.1+cu130", symbols=85)

SYMBOL_RULES: tuple[Rule[DistFacts], ...] = (
    Rule(
        id="dist/torch-library-missing",
        severity="error",
        title="The torch used at run time lacks a library that the wheel needs",
        why="Importing fails with `cannot open shared object file`, for example if a wheel built for CUDA is "
        "used with a CPU build of torch.",
        fix="build the wheel against this torch, or pass the torch build that the wheel is for to `--torch`",
        check=_absent,
        cases=lambda: (
            fires(
                "libtorch_cuda.so with a CPU build of torch",
                sample(
                    torch=TorchMatch(
                        origin="t.whl", version="2.14.1+cpu", symbols=9, absent={"libtorch_cuda.so": (CORE,)}
                    )
                ),
            ),
            silent("all libraries present", sample(torch=_MATCH)),
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
            fires(
                "a function that this release changed",
                sample(torch=TorchMatch(origin="t.whl", version="2.14.1", symbols=85, missing=(_CHECK,))),
            ),
            silent("all 85 symbols exported", sample(torch=_MATCH)),
            silent("no torch specified", sample()),
        ),
    ),
    Rule(
        id="dist/torch-other-machine",
        severity="error",
        title="The torch used at run time is for a different machine",
        why="The wheel and torch cannot be loaded on the same machine, and their symbols cannot be compared.",
        fix="pass a torch build for the wheel's machine to `--torch`",
        check=_other_machine,
        cases=lambda: (
            fires(
                "an x86_64 wheel with an aarch64 torch",
                sample(torch=TorchMatch(origin="t.whl", version="2.14.1", symbols=0, other_machine=(CORE,))),
            ),
            silent("the same machine", sample(torch=_MATCH)),
        ),
    ),
)
