"""Rules about what compilers, linkers and the loader were seen to take, beside what an environment wants them to."""

from __future__ import annotations

import posixpath
from typing import TYPE_CHECKING

from axletree.check.engine import Found, Rule, fires, silent
from axletree.core.grouping import grouped
from axletree.environment.verify import Choice, Origin, Proof, Verified, shadowed

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

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
                f"{proof.compiler}: <{first.name}>",
                (
                    f"the header comes from {entry} ({first.by}), which shadows "
                    f"{_folder(first.expected, first.name)}{_others(choices)}"
                ),
                evidence=_evidence(choices),
                fix=_remove(entry, first.by),
            )


def _moved(facts: Verified) -> Iterator[Found]:
    for proof in facts.proofs:
        for folder in proof.moved:
            wrong = [choice for choice in shadowed(proof.headers) if _folder(choice.expected, choice.name) == folder]
            message = (
                f"the compiler always searches {folder} after other folders, because it is one of the compiler's "
                "own folders"
            )
            if wrong:
                message += f"; <{wrong[0].name}> comes from {_folder(wrong[0].actual, wrong[0].name)}"
            yield Found(
                proof.compiler,
                message,
                evidence=_evidence(wrong) or tuple(f"{n}. {origin.path}" for n, origin in enumerate(proof.include, 1)),
                fix=(
                    "run `axletree env create`, which copies the folder under a different name and puts the copy first "
                    "on the include path"
                ),
            )


def _is_moved(choice: Choice, proof: Proof) -> bool:
    return _folder(choice.expected, choice.name) in proof.moved


def _linked(facts: Verified) -> Iterator[Found]:
    for proof in facts.proofs:
        yield from _first(proof, proof.linked, "the linker uses")


def _loaded(facts: Verified) -> Iterator[Found]:
    for proof in facts.proofs:
        yield from _first(proof, proof.loaded, f"programs built by {proof.compiler} load")


def _first(proof: Proof, choices: Sequence[Choice], uses: str) -> Iterator[Found]:
    for choice in shadowed(choices):
        entry = posixpath.dirname(choice.actual)
        yield Found(
            f"{proof.compiler}: {choice.name}",
            f"{uses} {choice.actual}, not {choice.expected}, because {entry} ({choice.by}) comes first",
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
                choice.actual,
                (
                    f"the library provides symbol versions up to {choice.actual_version}, but {choice.expected} "
                    f"provides them up to {choice.expected_version}: programs built against the newer library may not "
                    "start with the older one"
                ),
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
            yield Found(proof.compiler, f"a three-line program cannot be built or run: {words}")


def _by_entry(choices: Iterable[Choice]) -> dict[str, list[Choice]]:
    return grouped((_folder(choice.actual, choice.name), choice) for choice in choices)


def _folder(path: str, name: str) -> str:
    return path.removesuffix(f"/{name}")


def _others(choices: list[Choice]) -> str:
    more = len(choices) - 1
    return f"; {more} more header{'s are' if more > 1 else ' is'} also affected" if more else ""


def _evidence(choices: Iterable[Choice]) -> tuple[str, ...]:
    lines = [f"<{choice.name}>: expected {choice.expected}, chosen {choice.actual}" for choice in choices]
    return tuple(lines[:_SHOWN])


def _versions(choice: Choice) -> tuple[str, ...]:
    if choice.actual_version is None or choice.expected_version is None:
        return ()
    return (f"{choice.actual}: {choice.actual_version}", f"{choice.expected}: {choice.expected_version}")


def _remove(entry: str, by: str) -> str:
    if by in _VARIABLES:
        return f"remove {entry} from {by}; to print its value:\n$ echo ${by}"
    return f"remove {entry} from the search path, or move it to the end"


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
    "Code that is compiled with one version's headers and linked to another version's library fails late: at link "
    "time, at load time, or by producing wrong results."
)
_NOT_COMPARED = "run `axletree env verify --json` to see the whole search order"

ENVIRONMENT_RULES: tuple[Rule[Verified], ...] = (
    Rule(
        id="environment/header-shadowed",
        severity="error",
        title="A folder that comes before the environment's contains a different header with the same name",
        why=_WHY_HEADER,
        fix=_NOT_COMPARED,
        check=_headers,
        cases=lambda: (
            fires("a folder in CPATH", _sample(headers=(_header("/old"),))),
            silent("the environment's own folder", _sample(headers=(_header("/env/include"),))),
        ),
    ),
    Rule(
        id="environment/include-moved",
        severity="error",
        title="The compiler does not search include folders in the requested order",
        why="If a folder given with -I is also a system folder, gcc and clang ignore the option and search the "
        "folder last. hipcc treats ROCm's include folder this way (ROCm/HIP issue 3587): Thrust and hipCUB "
        "then come from the environment or the system, in versions that do not match ROCm's other headers.",
        fix="copy the folder under a different name, and put the copy first in the include path",
        check=_moved,
        cases=lambda: (
            fires(
                "hipcc with ROCm's own headers", _sample(compiler="hipcc", kind="hipcc", moved=("/opt/rocm/include",))
            ),
            silent("all folders in the requested order", _sample()),
        ),
    ),
    Rule(
        id="environment/library-shadowed-link",
        severity="error",
        title="The linker uses a file from outside the environment",
        why="The program is then linked against symbols that may be missing from the library loaded at run time.",
        fix=_NOT_COMPARED,
        check=_linked,
        cases=lambda: (
            fires("a folder in LIBRARY_PATH", _sample(linked=(_library("/old"),))),
            silent("the environment's own library", _sample(linked=(_library("/env/lib"),))),
        ),
    ),
    Rule(
        id="environment/library-shadowed-run",
        severity="error",
        title="The loader uses a file from outside the environment",
        why="A program built in the environment runs with a different library: it does not start (`version "
        "GLIBCXX_... not found`), or it crashes later.",
        fix=_NOT_COMPARED,
        check=_loaded,
        cases=lambda: (
            fires("a folder in LD_LIBRARY_PATH", _sample(loaded=(_library("/old"),))),
            silent("the environment's own library", _sample(loaded=(_library("/env/lib"),))),
        ),
    ),
    Rule(
        id="environment/libstdcxx-old",
        severity="error",
        title="A libstdc++ older than the compiler's comes first in the search path",
        why="Each libstdc++ version adds symbols: a program may use any symbol from the compiler's version, and an "
        "older library lacks some of them.",
        fix="remove the older library's folder from the search path",
        check=_old_libstdcxx,
        cases=lambda: (
            fires("older", _sample(loaded=(_library("/old"),))),
            silent("newer", _sample(loaded=(_library("/new", "GLIBCXX_3.4.33"),))),
        ),
    ),
    Rule(
        id="environment/probe-fails",
        severity="error",
        title="A small program cannot be compiled, linked or run",
        why="If a three-line program fails, every build will fail.",
        fix="run `axletree doctor`, which checks the host's compilers and what they need",
        check=_trouble,
        cases=lambda: (
            fires("no linker", _sample(trouble=("cannot find 'ld'",))),
            silent("no problems", _sample()),
        ),
    ),
)
