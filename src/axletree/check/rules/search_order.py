"""Rules about what compilers, linkers and the loader were seen to take, beside what an environment wants them to."""

from __future__ import annotations

import posixpath
from typing import TYPE_CHECKING

from axletree.check.engine import Case, Found, Rule
from axletree.environment.verify import Choice, Origin, Proof, Verified, shadowed

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_SHOWN = 5
_VARIABLES = frozenset({
    "CPATH", "CPLUS_INCLUDE_PATH", "C_INCLUDE_PATH", "LIBRARY_PATH", "LD_LIBRARY_PATH", "LD_PRELOAD",
    "NVCC_PREPEND_FLAGS", "NVCC_APPEND_FLAGS", "HIPCC_COMPILE_FLAGS_APPEND", "HIPCC_LINK_FLAGS_APPEND",
    "CPPFLAGS", "CXXFLAGS", "LDFLAGS",
})  # fmt: skip


def _headers(facts: Verified) -> Iterator[Found]:
    for proof in facts.proofs:
        wrong = [choice for choice in shadowed(proof.headers) if not _is_moved(choice, proof)]
        for entry, choices in _by_entry(wrong).items():
            first = choices[0]
            yield Found(
                where=f"{proof.compiler}: <{first.name}>",
                message=f"comes from {entry}, not from {_folder(first.expected, first.name)}: {entry} "
                f"({first.by}) shadows it{_others(choices)}",
                evidence=_evidence(choices),
                fix=_remove(entry, first.by),
            )


def _moved(facts: Verified) -> Iterator[Found]:
    for proof in facts.proofs:
        for folder in proof.moved:
            wrong = [choice for choice in shadowed(proof.headers) if _folder(choice.expected, choice.name) == folder]
            message = f"puts {folder} behind other folders, whatever is asked: it is one of its own"
            if wrong:
                message += f"; <{wrong[0].name}> comes from {_folder(wrong[0].actual, wrong[0].name)}"
            yield Found(
                where=proof.compiler,
                message=message,
                evidence=_evidence(wrong) or tuple(f"{n}. {origin.path}" for n, origin in enumerate(proof.include, 1)),
                fix="copy that folder to another name and put the copy in front: `axletree env create` does where the "
                "compiler shows this",
            )


def _is_moved(choice: Choice, proof: Proof) -> bool:
    return _folder(choice.expected, choice.name) in proof.moved


def _linked(facts: Verified) -> Iterator[Found]:
    for proof in facts.proofs:
        for choice in shadowed(proof.linked):
            entry = posixpath.dirname(choice.actual)
            yield Found(
                where=f"{proof.compiler}: {choice.name}",
                message=f"the linker takes {choice.actual}, not {choice.expected}: {entry} ({choice.by}) shadows it",
                evidence=_versions(choice),
                fix=_remove(entry, choice.by),
            )


def _loaded(facts: Verified) -> Iterator[Found]:
    for proof in facts.proofs:
        for choice in shadowed(proof.loaded):
            entry = posixpath.dirname(choice.actual)
            what = f"what {proof.compiler} builds loads {choice.actual}, not {choice.expected}"
            yield Found(
                where=f"{proof.compiler}: {choice.name}",
                message=f"{what}: {entry} ({choice.by}) shadows it",
                evidence=_versions(choice),
                fix=_remove(entry, choice.by),
            )


def _old_libstdcxx(facts: Verified) -> Iterator[Found]:
    seen: set[str] = set()
    for proof in facts.proofs:
        for choice in (*shadowed(proof.linked), *shadowed(proof.loaded)):
            if choice.actual in seen or not _is_older(choice):
                continue
            seen.add(choice.actual)
            yield Found(
                where=choice.actual,
                message=f"has {choice.actual_version} at most, {choice.expected} has {choice.expected_version}: "
                "programs built for the newer one do not start with it",
                fix=_remove(posixpath.dirname(choice.actual), choice.by),
            )


def _is_older(choice: Choice) -> bool:
    if choice.actual_version is None or choice.expected_version is None:
        return False
    return _numbers(choice.actual_version) < _numbers(choice.expected_version)


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.rpartition("_")[2].split(".") if part.isdigit())


def _trouble(facts: Verified) -> Iterator[Found]:
    for proof in facts.proofs:
        for words in proof.trouble:
            yield Found(where=proof.compiler, message=f"a program of three lines can't be built or run: {words}")


def _by_entry(choices: Iterable[Choice]) -> dict[str, list[Choice]]:
    found: dict[str, list[Choice]] = {}
    for choice in choices:
        found.setdefault(_folder(choice.actual, choice.name), []).append(choice)
    return found


def _folder(path: str, name: str) -> str:
    return path.removesuffix(f"/{name}")


def _others(choices: list[Choice]) -> str:
    return f", and {len(choices) - 1} more" if len(choices) > 1 else ""


def _evidence(choices: Iterable[Choice]) -> tuple[str, ...]:
    lines = [f"<{choice.name}>: expected {choice.expected}, chosen {choice.actual}" for choice in choices]
    return tuple(lines[:_SHOWN])


def _versions(choice: Choice) -> tuple[str, ...]:
    if choice.actual_version is None or choice.expected_version is None:
        return ()
    return (f"{choice.actual}: {choice.actual_version}", f"{choice.expected}: {choice.expected_version}")


def _remove(entry: str, by: str) -> str:
    if by in _VARIABLES:
        return f"take {entry} out of {by}:\n$ echo ${by}"
    return f"take {entry} out of what is searched, or put it behind"


def _sample(**changes: object) -> Verified:
    fields: dict[str, object] = {
        "compiler": "g++",
        "path": "/usr/bin/g++",
        "kind": "gcc",
        "version": "12.2.0",
        "include": (Origin(path="/env/include", by="conda environment"),),
    }
    return Verified(environment="/env", include=("/env/include",), proofs=(Proof(**(fields | changes)),))  # type: ignore[arg-type]


def _header(actual: str) -> Choice:
    return Choice(name="zlib.h", actual=f"{actual}/zlib.h", expected="/env/include/zlib.h", by="CPATH")


def _library(actual: str, version: str = "GLIBCXX_3.4.28") -> Choice:
    return Choice(
        name="libstdc++.so.6",
        actual=f"{actual}/libstdc++.so.6.0.28",
        expected="/env/lib/libstdc++.so.6.0.28",
        by="LD_LIBRARY_PATH",
        actual_version=version,
        expected_version="GLIBCXX_3.4.30",
    )


_WHY_HEADER = (
    "What is compiled with the headers of one version and linked with the library of another fails late: when it is "
    "linked or loaded, or with wrong results."
)
_NOT_COMPARED = "see `axletree env verify --json` for the whole order"

ENVIRONMENT_RULES: tuple[Rule[Verified], ...] = (
    Rule(
        id="environment/header-shadowed",
        severity="error",
        title="A folder before the environment's has a different header of the same name",
        why=_WHY_HEADER,
        fix=_NOT_COMPARED,
        check=_headers,
        cases=lambda: (
            Case(title="a folder in CPATH", facts=_sample(headers=(_header("/old"),)), fires=True),
            Case(title="the environment's own", facts=_sample(headers=(_header("/env/include"),)), fires=False),
        ),
    ),
    Rule(
        id="environment/include-moved",
        severity="error",
        title="The compiler does not put a folder of headers where it is asked to",
        why="gcc and clang drop a folder from where -I put it if they have it as a system folder, and look into it "
        "last. hipcc has ROCm's include so (ROCm/HIP issue 3587): Thrust and hipCUB then come from the "
        "environment or the system, in versions that ROCm's other headers don't fit.",
        fix="put a copy of the folder, under another name, in front",
        check=_moved,
        cases=lambda: (
            Case(
                title="hipcc and ROCm's own headers",
                facts=_sample(compiler="hipcc", kind="hipcc", moved=("/opt/rocm/include",)),
                fires=True,
            ),
            Case(title="all in their places", facts=_sample(), fires=False),
        ),
    ),
    Rule(
        id="environment/library-shadowed-link",
        severity="error",
        title="The linker uses a file from outside the environment",
        why="A program is then linked against symbols that the library which is loaded may not have.",
        fix=_NOT_COMPARED,
        check=_linked,
        cases=lambda: (
            Case(title="a folder in LIBRARY_PATH", facts=_sample(linked=(_library("/old"),)), fires=True),
            Case(title="the environment's own", facts=_sample(linked=(_library("/env/lib"),)), fires=False),
        ),
    ),
    Rule(
        id="environment/library-shadowed-run",
        severity="error",
        title="The loader uses a file from outside the environment",
        why="A program that was built in the environment runs with another library: it does not start (`version "
        "GLIBCXX_... not found`), or crashes later.",
        fix=_NOT_COMPARED,
        check=_loaded,
        cases=lambda: (
            Case(title="a folder in LD_LIBRARY_PATH", facts=_sample(loaded=(_library("/old"),)), fires=True),
            Case(title="the environment's own", facts=_sample(loaded=(_library("/env/lib"),)), fires=False),
        ),
    ),
    Rule(
        id="environment/libstdcxx-old",
        severity="error",
        title="An old libstdc++ comes before the compiler's own",
        why="The C++ library only grows: a program may use symbols of the version that its compiler has, and an older "
        "file lacks them.",
        fix="remove its folder from the search path",
        check=_old_libstdcxx,
        cases=lambda: (
            Case(title="older", facts=_sample(loaded=(_library("/old"),)), fires=True),
            Case(title="newer", facts=_sample(loaded=(_library("/new", "GLIBCXX_3.4.33"),)), fires=False),
        ),
    ),
    Rule(
        id="environment/probe-fails",
        severity="error",
        title="A small program can't be compiled, linked or run",
        why="What fails for three lines fails for all.",
        fix="read what the tool says; `axletree doctor` looks at the host",
        check=_trouble,
        cases=lambda: (
            Case(title="no linker", facts=_sample(trouble=("cannot find 'ld'",)), fires=True),
            Case(title="all well", facts=_sample(), fires=False),
        ),
    ),
)
