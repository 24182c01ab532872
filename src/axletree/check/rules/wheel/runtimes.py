"""Rules about runtime libraries of which a process should hold only one."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from axletree.binary.elf.facts import AbiUse
from axletree.check.engine import Case, Found, Rule
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
            origin = need.by if need.owner == "wheel" else f"{need.soname} of {need.by or 'nobody known'}"
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
            yield Found(where=path, message=f"it needs two CUDA runtimes: {', '.join(needed)}")


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
                f"{files[0]} loads {origin}, but {torch.name}, which it is linked to, also provides an OpenMP runtime"
            )
            yield Found(where=origin, message=message)


def _found(copies: dict[str, tuple[str, tuple[str, ...]]], what: str) -> Found:
    parts = [f"{files[0]} loads {origin}" for origin, files in copies.values()]
    evidence = tuple(f"{path} needs {soname}" for soname, (_, files) in copies.items() for path in files)
    where = next(iter(copies.values()))[1][0]
    return Found(where=where, message=f"more than one {what}: {'; '.join(parts)}", evidence=evidence)


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
                    message = f"its symbols use only the old std::string, but those of {new} use only the new one"
                    yield Found(where=old, message=message)


RUNTIME_RULES: tuple[Rule[DistFacts], ...] = (
    Rule(
        id="dist/cuda-runtime-twice",
        severity="error",
        title="Two CUDA runtimes in one process",
        why="Each runtime has its own streams, events and memory, and does not recognize the other's: calls fail "
        "with `cudaErrorInvalidResourceHandle`, often far from the cause.",
        fix=(
            "leave libcudart to the distribution that provides it (as `axletree repair` does), and require that "
            "distribution"
        ),
        check=_cuda,
        cases=lambda: (
            Case(
                title="one runtime from NVIDIA's wheel, one vendored",
                facts=sample(
                    elfs={
                        CORE: library(needed=("libc10.so", "libcudart.so.13")),
                        _OTHER: library(needed=("libcudart.faf08d9a.so.13",), runpath=("$ORIGIN/../demo.libs",)),
                        _VENDORED: plain_library(soname="libcudart.so.13"),
                    },
                    requires=("torch",),
                ),
                fires=True,
            ),
            Case(
                title="one file that needs two runtimes",
                facts=sample(elfs={CORE: library(needed=("libcudart.so.12", "libcudart.so.13"))}, requires=("torch",)),
                fires=True,
            ),
            Case(
                title="builds for two CUDA releases",
                facts=sample(
                    elfs={
                        CORE: library(needed=("libcudart.so.13",)),
                        _OTHER: library(needed=("libcudart.so.12",)),
                    },
                    requires=("torch",),
                ),
                fires=False,
            ),
            Case(
                title="one vendored copy for all files",
                facts=sample(
                    elfs={
                        CORE: library(needed=("libcudart.faf08d9a.so.13",), runpath=("$ORIGIN/../demo.libs",)),
                        _VENDORED: plain_library(soname="libcudart.faf08d9a.so.13"),
                    }
                ),
                fires=False,
            ),
        ),
    ),
    Rule(
        id="dist/openmp-runtime-twice",
        severity="warning",
        title="Two OpenMP runtimes in one process",
        why="Each runtime has its own threads: the process has twice as many threads as cores, settings reach only "
        "one runtime, and some pairs abort (`OMP: Error #15`) or deadlock after a fork.",
        fix="link all files to one runtime; files linked to torch should use torch's",
        check=_openmp,
        cases=lambda: (
            Case(
                title="libgomp and libiomp5",
                facts=sample(
                    elfs={
                        CORE: library(needed=("libgomp-24e2ab19.so.1.0.0",), runpath=("$ORIGIN/../demo.libs",)),
                        _OTHER: library(needed=("libiomp5.so",), runpath=("$ORIGIN/../demo.libs",)),
                        _GOMP: plain_library(),
                        "demo.libs/libiomp5.so": plain_library(),
                    }
                ),
                fires=True,
            ),
            Case(
                title="a vendored libgomp and torch's own",
                facts=sample(
                    elfs={
                        CORE: library(
                            needed=("libc10.so", "libgomp-24e2ab19.so.1.0.0"), runpath=("$ORIGIN/../demo.libs",)
                        ),
                        _GOMP: plain_library(),
                    },
                    requires=("torch",),
                ),
                fires=True,
            ),
            Case(
                title="one vendored libgomp",
                facts=sample(
                    elfs={
                        CORE: library(needed=("libgomp-24e2ab19.so.1.0.0",), runpath=("$ORIGIN/../demo.libs",)),
                        _GOMP: plain_library(),
                    }
                ),
                fires=False,
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
            Case(
                title="a new module linked to an old library",
                facts=sample(
                    elfs={
                        CORE: library(needed=("libx.so",), rpath=("$ORIGIN",), abi=AbiUse(cxx11=5)),
                        "demo/libx.so": plain_library(abi=AbiUse(old_strings=3)),
                    }
                ),
                fires=True,
            ),
            Case(
                title="a new module linked to a new library",
                facts=sample(
                    elfs={
                        CORE: library(needed=("libx.so",), rpath=("$ORIGIN",), abi=AbiUse(cxx11=5)),
                        "demo/libx.so": plain_library(abi=AbiUse(cxx11=3)),
                    }
                ),
                fires=False,
            ),
        ),
    ),
)
