"""Rules about runtime libraries of which a process should hold only one."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from axletree.binary.elf.facts import AbiUse
from axletree.check.engine import Found, Rule, fires, silent
from axletree.check.rules.wheel.sample import CORE, library, plain_library, sample

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from axletree.check.dist import DistFacts

_CUDA = ("libcudart",)
_OPENMP = ("libgomp", "libiomp5", "libomp")
_HASHED = r"(?:[-.][0-9a-f]{6,})?(?:\.so[.\d]*)"
_OTHER = "demo/_other.cpython-311-x86_64-linux-gnu.so"
_VENDORED = "demo.libs/libcudart.faf08d9a.so.13"
_GOMP = "demo.libs/libgomp-24e2ab19.so.1.0.0"


def _copies(facts: DistFacts, names: Iterable[str]) -> dict[str, tuple[str, tuple[str, ...]]]:
    """Needed name of a runtime -> (who brings it, who needs it), for each that another file brings."""
    pattern = re.compile(rf"(?:{'|'.join(names)}){_HASHED}")
    found: dict[str, tuple[str, tuple[str, ...]]] = {}
    for need in facts.needs:
        if pattern.fullmatch(need.soname):
            origin = need.by if need.owner == "wheel" else f"{need.soname} from {need.by or 'an unknown source'}"
            known, files = found.get(need.soname, (origin, ()))
            found[need.soname] = (known, tuple(sorted({*files, *need.files})))
    return found


def _vendored(facts: DistFacts, copies: dict[str, tuple[str, tuple[str, ...]]]) -> set[str]:
    return {soname for soname, (origin, _) in copies.items() if origin in facts.elfs}


def _cuda(facts: DistFacts) -> Iterator[Found]:
    copies = _copies(facts, _CUDA)
    own = _vendored(facts, copies)
    if own and len(copies) > 1:
        yield _found(copies, "CUDA runtime")
        return
    # Without a copy of its own a wheel may hold builds for several CUDA releases, of which a process loads one.
    for path, elf in facts.elfs.items():
        needed = sorted(copies.keys() & set(elf.needed))
        if len(needed) > 1:
            yield Found(path, f"this file needs two CUDA runtimes: {', '.join(needed)}")


def _openmp(facts: DistFacts) -> Iterator[Found]:
    copies = _copies(facts, _OPENMP)
    if _vendored(facts, copies) and len(copies) > 1:
        yield _found(copies, "OpenMP runtime")
        return
    torch = next((p for p in facts.providers if p.copies and any(need.by == p.name for need in facts.needs)), None)
    for soname in sorted(_vendored(facts, copies)):
        origin, files = copies[soname]
        if torch is not None and torch.name != facts.wheel.name.project and soname.startswith("libgomp"):
            message = (
                f"{files[0]} loads {origin}, but is also linked to {torch.name}, which provides its own OpenMP runtime"
            )
            yield Found(origin, message, fix=_without_copy(soname, torch.name))


def _without_copy(soname: str, provider: str) -> str:
    """The name of a copy that a repair made has a hash, which that of the original lacks."""
    original = re.sub(r"(?<=libgomp)[-.][0-9a-f]{6,}(?=\.so)", "", soname)
    return (
        f"build the wheel again without this copy: repair it with `axletree repair`, which leaves {original} to "
        f"{provider}, or with `auditwheel repair --exclude '{original.partition('.so')[0]}.so*'`"
    )


def _found(copies: dict[str, tuple[str, tuple[str, ...]]], what: str) -> Found:
    parts = [f"{files[0]} loads {origin}" for origin, files in copies.values()]
    evidence = tuple(f"{path} needs {soname}" for soname, (_, files) in copies.items() for path in files)
    where = next(iter(copies.values()))[1][0]
    return Found(where, f"the wheel loads more than one {what}: {'; '.join(parts)}", evidence=evidence)


def _strings(facts: DistFacts) -> Iterator[Found]:
    """Files linked to each other of which one knows only old strings, the other only new ones."""
    elfs = facts.elfs
    names = {name: path for path, elf in elfs.items() for name in (path.rpartition("/")[2], elf.soname) if name}
    for path, elf in elfs.items():
        for soname in elf.needed:
            other = elfs.get(names.get(soname, ""))
            if other is None:
                continue
            for user, used in ((elf.abi, other.abi), (other.abi, elf.abi)):
                if user.old_strings and not user.cxx11 and used.cxx11 and not used.old_strings:
                    old, new = (path, names[soname]) if user is elf.abi else (names[soname], path)
                    message = f"this file uses only the old std::string, but {new} uses only the new one"
                    yield Found(old, message)


RUNTIME_RULES: tuple[Rule[DistFacts], ...] = (
    Rule(
        id="dist/cuda-runtime-twice",
        severity="error",
        title="Two CUDA runtimes in one process",
        why="Each runtime has its own streams, events and memory, and does not recognize the other's: calls fail "
        "with `cudaErrorInvalidResourceHandle`, often far from the cause.",
        fix="leave libcudart to the distribution that provides it (as `axletree repair` does), and require that "
        "distribution",
        check=_cuda,
        cases=lambda: (
            fires(
                "one runtime from NVIDIA's wheel, one vendored",
                sample(
                    elfs={
                        CORE: library(needed=("libc10.so", "libcudart.so.13")),
                        _OTHER: library(needed=("libcudart.faf08d9a.so.13",), runpath=("$ORIGIN/../demo.libs",)),
                        _VENDORED: plain_library(soname="libcudart.so.13"),
                    },
                    requires=("torch",),
                ),
            ),
            fires(
                "one file that needs two runtimes",
                sample(library(needed=("libcudart.so.12", "libcudart.so.13")), requires=("torch",)),
            ),
            silent(
                "builds for two CUDA releases",
                sample(
                    elfs={CORE: library(needed=("libcudart.so.13",)), _OTHER: library(needed=("libcudart.so.12",))},
                    requires=("torch",),
                ),
            ),
            silent(
                "one vendored copy for all files",
                sample(
                    elfs={
                        CORE: library(needed=("libcudart.faf08d9a.so.13",), runpath=("$ORIGIN/../demo.libs",)),
                        _VENDORED: plain_library(soname="libcudart.faf08d9a.so.13"),
                    }
                ),
            ),
        ),
    ),
    Rule(
        id="dist/openmp-runtime-twice",
        severity="warning",
        title="Two OpenMP runtimes in one process",
        why="Each runtime has its own threads: the process has twice as many threads as cores, settings reach only "
        "one runtime, and some pairs abort (`OMP: Error #15`) or deadlock after a fork.",
        fix=(
            "link all files to the same OpenMP runtime; for files linked to torch, use the runtime that torch provides"
        ),
        check=_openmp,
        cases=lambda: (
            fires(
                "libgomp and libiomp5",
                sample(
                    elfs={
                        CORE: library(needed=("libgomp-24e2ab19.so.1.0.0",), runpath=("$ORIGIN/../demo.libs",)),
                        _OTHER: library(needed=("libiomp5.so",), runpath=("$ORIGIN/../demo.libs",)),
                        _GOMP: plain_library(),
                        "demo.libs/libiomp5.so": plain_library(),
                    }
                ),
            ),
            fires(
                "a vendored libgomp and torch's own",
                sample(
                    elfs={
                        CORE: library(
                            needed=("libc10.so", "libgomp-24e2ab19.so.1.0.0"), runpath=("$ORIGIN/../demo.libs",)
                        ),
                        _GOMP: plain_library(),
                    },
                    requires=("torch",),
                ),
            ),
            silent(
                "one vendored libgomp",
                sample(
                    elfs={
                        CORE: library(needed=("libgomp-24e2ab19.so.1.0.0",), runpath=("$ORIGIN/../demo.libs",)),
                        _GOMP: plain_library(),
                    }
                ),
            ),
        ),
    ),
    Rule(
        id="dist/cxx-strings-mixed",
        severity="warning",
        title="Files linked to each other use different std::string types",
        why="Loading fails with undefined symbols, or one file misreads a string from the other and crashes.",
        fix="compile all files with the same `_GLIBCXX_USE_CXX11_ABI`",
        check=_strings,
        cases=lambda: (
            fires(
                "a new module linked to an old library",
                sample(
                    elfs={
                        CORE: library(needed=("libx.so",), rpath=("$ORIGIN",), abi=AbiUse(cxx11=5)),
                        "demo/libx.so": plain_library(abi=AbiUse(old_strings=3)),
                    }
                ),
            ),
            silent(
                "a new module linked to a new library",
                sample(
                    elfs={
                        CORE: library(needed=("libx.so",), rpath=("$ORIGIN",), abi=AbiUse(cxx11=5)),
                        "demo/libx.so": plain_library(abi=AbiUse(cxx11=3)),
                    }
                ),
            ),
        ),
    ),
)
