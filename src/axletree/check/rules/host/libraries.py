"""Rules about libraries: several of one kind, and what changes where they are found."""

from __future__ import annotations

from typing import TYPE_CHECKING

from axletree.check.engine import Found, Rule, fires, silent
from axletree.check.host.libraries import Copies
from axletree.check.host.part import HostLibrary
from axletree.check.rules.host.sample import on

if TYPE_CHECKING:
    from collections.abc import Iterator

    from axletree.check.host.examined import Examined

_OPEN = ("LD_LIBRARY_PATH", "loader cache")
"""Where whoever asks for a name finds a library."""


def _openmp(facts: Examined) -> Iterator[Found]:
    kinds: dict[str, HostLibrary] = {}
    for library in facts.host.libraries.openmp or ():
        if library.origin in ("conda", "wheel", "LD_LIBRARY_PATH"):
            kinds.setdefault(library.name, library)
    if {"iomp5", "omp"} <= set(kinds) or ("iomp5" in kinds and "gomp" in kinds):
        message = (
            f"one environment contains {' and '.join(sorted(kinds))}: a process that loads both crashes or runs slowly"
        )
        yield Found(
            next(iter(kinds.values())).path,
            message,
            evidence=tuple(f"{each.name}: {each.path}" for each in kinds.values()),
        )


def _copies(facts: Examined) -> Iterator[Found]:
    """Copies that contend: libraries of wheels and conda packages are found by those beside them before all others.

    LD_LIBRARY_PATH comes before what they say themselves, so a copy there contends with every one.
    """
    for each in facts.host.libraries.copies or ():
        loadable = [library for library in each.libraries if "/stubs/" not in library.path]  # those are for linking
        if not loadable:
            continue
        first, *others = loadable
        rivals = [other for other in others if first.origin == "LD_LIBRARY_PATH" or other.origin == "loader cache"]
        if each.differ and first.origin in _OPEN and any(rival.version != first.version for rival in rivals):
            message = f"{each.soname} is installed in several versions, and the loader uses {first.path}"
            told = (first, *rivals)
            evidence = tuple(f"{one.path} {one.version or ''}".strip() for one in told)
            yield Found(first.path, message, evidence=evidence)


def _preload(facts: Examined) -> Iterator[Found]:
    for path in facts.host.libraries.preload or ():
        yield Found("LD_PRELOAD", f"LD_PRELOAD loads {path} into every program, including compilers")


def _path_holes(facts: Examined) -> Iterator[Found]:
    path = facts.host.libraries.search_path or ()
    if "." in path:
        yield Found(
            "LD_LIBRARY_PATH",
            "LD_LIBRARY_PATH has an empty entry, so the loader also searches the current folder",
            fix="$ export LD_LIBRARY_PATH=${LD_LIBRARY_PATH#:}",
        )
    if facts.host.libraries.search_path_missing:
        missing = facts.host.libraries.search_path_missing
        yield Found(
            "LD_LIBRARY_PATH",
            (
                f"LD_LIBRARY_PATH contains {len(missing)} folder{'s' if len(missing) > 1 else ''} that "
                f"{'do' if len(missing) > 1 else 'does'} not exist"
            ),
            evidence=missing,
        )


def _lib(name: str, path: str, origin: str = "conda", version: str | None = None) -> HostLibrary:
    return HostLibrary(name=name, path=path, origin=origin, version=version)


LIBRARY_RULES: tuple[Rule[Examined], ...] = (
    Rule(
        id="library/openmp-twice",
        severity="warning",
        title="Two OpenMP runtimes in one environment",
        references=("kuprel/min-dalle#12", 'conda-forge, knowledge base, "OpenMP"'),
        why="Each runtime has its own threads. A process that loads both stops with `OMP: Error #15` or runs far "
        "more slowly.",
        fix="keep one: with conda, run `conda install _openmp_mutex=*=*_gnu` or `*_llvm`; with pip, remove "
        "intel-openmp",
        check=_openmp,
        cases=lambda: (
            fires(
                "libiomp5 and libomp",
                on(libraries={"openmp": (_lib("iomp5", "~/e/lib/libiomp5.so"), _lib("omp", "~/e/lib/libomp.so"))}),
            ),
            silent(
                "only the system's libgomp",
                on(libraries={"openmp": (_lib("gomp", "/usr/lib/libgomp.so.1", "loader cache"),)}),
            ),
        ),
    ),
    Rule(
        id="library/copies-differ",
        severity="warning",
        title="A library is installed in several versions",
        references=("ld.so(8)",),
        why="The version that is loaded depends on the order of folders and on what is imported first.",
        fix=(
            "uninstall the versions that you do not need, or put the folder of the one that you need first in "
            "LD_LIBRARY_PATH"
        ),
        check=_copies,
        cases=lambda: (
            fires(
                "two versions of cuDNN",
                on(
                    libraries={
                        "copies": (
                            Copies(
                                soname="libcudnn.so.9",
                                differ=True,
                                libraries=(
                                    _lib("cudnn", "/opt/old/libcudnn.so.9", "LD_LIBRARY_PATH", version="9.1.0"),
                                    _lib("cudnn", "~/e/libcudnn.so.9", version="9.13.0"),
                                ),
                            ),
                        )
                    }
                ),
            ),
            silent(
                "the system's library and a copy that only its own wheel loads",
                on(
                    libraries={
                        "copies": (
                            Copies(
                                soname="libcudnn.so.9",
                                differ=True,
                                libraries=(
                                    _lib("cudnn", "/usr/lib/libcudnn.so.9", "loader cache", version="9.1.0"),
                                    _lib("cudnn", "~/e/libcudnn.so.9", "wheel", version="9.13.0"),
                                ),
                            ),
                        )
                    }
                ),
            ),
        ),
    ),
    Rule(
        id="library/preload",
        severity="info",
        title="LD_PRELOAD is set",
        references=("ld.so(8), LD_PRELOAD",),
        why="Compilers and tests run with a library that they were not built for. Axletree's stages do not receive the "
        "variable.",
        fix="$ unset LD_PRELOAD",
        check=_preload,
        cases=lambda: (
            fires("jemalloc", on(libraries={"preload": ("/usr/lib/libjemalloc.so.2",)})),
            silent("LD_PRELOAD not set", on()),
        ),
    ),
    Rule(
        id="library/search-path",
        severity="warning",
        title="LD_LIBRARY_PATH has empty entries or missing folders",
        references=("ld.so(8), LD_LIBRARY_PATH",),
        why="An empty entry means the current folder, so anyone who can write there controls which libraries are "
        "loaded. A missing folder is usually a mistake.",
        fix="remove the missing folders from LD_LIBRARY_PATH",
        check=_path_holes,
        cases=lambda: (
            fires("an empty entry", on(libraries={"search_path": ("/opt/lib", ".")})),
            fires("a missing folder", on(libraries={"search_path_missing": ("/opt/gone",)})),
            silent("variable not set", on()),
        ),
    ),
)
"""Rules about :class:`~axletree.check.host.examined.Examined`: libraries."""
