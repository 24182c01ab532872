"""Rules about the libraries that a wheel's files need, and where the loader looks for them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from packaging.utils import canonicalize_name

from axletree.binary.elf import VersionNeed
from axletree.check.engine import Case, Found, Rule, listing
from axletree.check.rules.dist_sample import CORE, library, plain_library, sample
from axletree.package.linkage import installed_path, library_paths, search_path
from axletree.package.metadata import required_distributions

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from axletree.check.dist import DistFacts

_TORCH = {"torch": ("libtorch*.so", "libc10*.so")}
_LIB = "demo/lib/libdemo.so"


def _subject(files: Iterable[str], one: str, many: str) -> str:
    """``x.so needs`` or ``x.so and 3 more need``."""
    first, *rest = files
    return f"{first} and {len(rest)} more {many}" if rest else f"{first} {one}"


def _unresolved(facts: DistFacts) -> Iterator[Found]:
    for need in facts.needs:
        if need.owner == "nobody":
            yield Found(
                where=need.files[0],
                message=f"nobody brings {need.soname}, which {_subject(need.files, 'needs', 'need')}",
                evidence=listing(need.files),
            )


def _undeclared(facts: DistFacts) -> Iterator[Found]:
    if facts.wheel.metadata is None:
        return
    required = required_distributions(facts.wheel.metadata) | {facts.wheel.name.project}
    users: dict[str, list[str]] = {}
    for need in facts.needs:
        if need.owner == "distribution" and canonicalize_name(need.by) not in required:
            users.setdefault(need.by, []).append(f"{_subject(need.files, 'needs', 'need')} {need.soname}")
    for distribution, evidence in users.items():
        message = f"{distribution} brings libraries that the wheel needs, but is not required by it"
        fix = f"add {distribution}, at the version built against, to the package's requirements"
        yield Found(where=facts.wheel.filename, message=message, evidence=tuple(evidence), fix=fix)


def _libpython(facts: DistFacts) -> Iterator[Found]:
    for need in facts.needs:
        if need.owner == "python":
            message = f"{_subject(need.files, 'is', 'are')} linked to {need.soname}"
            yield Found(where=need.files[0], message=message, evidence=listing(need.files))


def _unreachable(facts: DistFacts) -> Iterator[Found]:
    """Programs only: a library may rely on what the process has loaded before it, a program can't."""
    elfs = facts.elfs
    inside = {soname: installed_path(path) for soname, path in library_paths(elfs).items()}
    for path, elf in elfs.items():
        if elf.interpreter is None:
            continue
        folders = {entry.folder for entry in search_path(path, elf)}
        lost = [
            soname
            for soname in elf.needed
            if (place := inside.get(soname)) is not None and place.rpartition("/")[0] not in folders
        ]
        if lost:
            entries = tuple(f"searched: {entry.text}" for entry in search_path(path, elf)) or ("it has no search path",)
            yield Found(where=path, message=f"it can't find {', '.join(lost)}, which the wheel has", evidence=entries)


def _outside(facts: DistFacts) -> Iterator[Found]:
    files: dict[tuple[str, ...], list[str]] = {}
    for path, elf in facts.elfs.items():
        entries = tuple(dict.fromkeys(entry.text for entry in search_path(path, elf) if entry.kind != "origin"))
        if entries:
            files.setdefault(entries, []).append(path)
    for entries, paths in sorted(files.items()):
        places = ", ".join(text or "the current folder (an empty entry)" for text in entries)
        message = f"{_subject(paths, 'searches', 'search')} {places}"
        yield Found(where=paths[0], message=message, evidence=listing(paths))


def _dead(facts: DistFacts) -> Iterator[Found]:
    installed = {place for member in facts.wheel.members if (place := installed_path(member.path)) is not None}
    folders = {parent for place in installed for parent in _parents(place)}
    foreign = {need.soname for need in facts.needs if need.owner == "distribution"}
    files: dict[tuple[str, str], list[str]] = {}
    for path, elf in facts.elfs.items():
        if foreign.intersection(elf.needed):
            continue  # the distribution that brings them may fill any folder
        for entry in search_path(path, elf):
            if entry.folder is not None and _is_dead(entry.folder, folders, installed):
                files.setdefault((entry.text, entry.folder), []).append(path)
    for (text, folder), paths in sorted(files.items()):
        place = "leaves site-packages" if folder.startswith("..") else f"is no folder of the wheel ({folder})"
        message = f"{_subject(paths, 'searches', 'search')} {text}, which {place}"
        yield Found(where=paths[0], message=message, evidence=listing(paths))


def _is_dead(folder: str, folders: set[str], installed: set[str]) -> bool:
    """Outside of what the wheel alone owns nothing can be said: another distribution may fill the folder."""
    if folder.startswith(".."):
        return True
    top = folder.partition("/")[0]
    owned = f"{top}/__init__.py" in installed or top.endswith(".libs")
    return owned and folder not in folders


def _parents(path: str) -> Iterator[str]:
    parent = path.rpartition("/")[0]
    while parent:
        yield parent
        parent = parent.rpartition("/")[0]


def _stale_versions(facts: DistFacts) -> Iterator[Found]:
    elfs = facts.elfs
    strictest = facts.strictest
    system = strictest.policy.libraries if strictest and strictest.policy else frozenset[str]()
    known = {need.soname for need in facts.needs} | library_paths(elfs).keys() | system
    for path, elf in elfs.items():
        for need in elf.versions_needed:
            if need.file not in known and not need.file.startswith(("ld-", "ld64", "ld.so")):
                message = f"it needs versions of {need.file}, which no file of the wheel lists as needed"
                yield Found(where=path, message=message, evidence=tuple(f"needed: {name}" for name in elf.needed))


LINKAGE_RULES: tuple[Rule[DistFacts], ...] = (
    Rule(
        id="dist/needed-unresolved",
        severity="error",
        title="A needed library is brought by nobody",
        why="Importing fails with `cannot open shared object file` on every machine that does not have the library by "
        "chance.",
        fix="put the library into the wheel, or name the distribution that brings it (`provided-by`) and require that",
        check=_unresolved,
        cases=(
            Case(
                title="a library of the build machine",
                facts=sample(elfs={CORE: library(needed=("libopenblas.so.0",))}),
                fires=True,
            ),
            Case(
                title="torch's libraries, with torch named as their provider",
                facts=sample(elfs={CORE: library(needed=("libc10.so",))}, provided_by=_TORCH, requires=("torch",)),
                fires=False,
            ),
            Case(
                title="a library in the wheel",
                facts=sample(elfs={CORE: library(needed=("libdemo.so",)), _LIB: plain_library()}),
                fires=False,
            ),
            Case(
                title="the driver's library",
                facts=sample(elfs={CORE: library(needed=("libcuda.so.1",))}),
                fires=False,
            ),
        ),
    ),
    Rule(
        id="dist/provider-undeclared",
        severity="error",
        title="A distribution that brings needed libraries is not required",
        why="Installers don't know that it is needed: the import works only where it happens to be installed, in "
        "whatever version.",
        fix="add the distribution to the package's requirements",
        check=_undeclared,
        cases=(
            Case(
                title="torch's libraries, torch not required",
                facts=sample(elfs={CORE: library(needed=("libc10.so",))}, provided_by=_TORCH),
                fires=True,
            ),
            Case(
                title="torch required for an extra only",
                facts=sample(
                    elfs={CORE: library(needed=("libc10.so",))},
                    provided_by=_TORCH,
                    requires=('torch; extra == "test"',),
                ),
                fires=True,
            ),
            Case(
                title="torch required",
                facts=sample(
                    elfs={CORE: library(needed=("libc10.so",))}, provided_by=_TORCH, requires=("torch==2.13.0",)
                ),
                fires=False,
            ),
            Case(title="a provider named, none of its libraries used", facts=sample(provided_by=_TORCH), fires=False),
        ),
    ),
    Rule(
        id="dist/libpython",
        severity="warning",
        title="A file is linked to libpython",
        why="Most interpreters are linked statically or keep that library elsewhere; manylinux forbids the link "
        "(PEP 513). Extension modules find CPython's symbols in the running process.",
        fix="link extension modules without libpython (in CMake: `Python::Module` instead of `Python::Python`)",
        check=_libpython,
        cases=(
            Case(
                title="libpython3.11.so.1.0 is needed",
                facts=sample(elfs={CORE: library(needed=("libpython3.11.so.1.0",))}),
                fires=True,
            ),
            Case(title="CPython's symbols are left undefined", facts=sample(), fires=False),
        ),
    ),
    Rule(
        id="dist/program-cut-off",
        severity="warning",
        title="A program can't find a library that its wheel has",
        why="The loader resolves what a program needs before anything of it runs, from its search path alone.",
        fix="link the program with an RPATH from its folder to the library's, such as `$ORIGIN/../lib`, or drop it",
        check=_unreachable,
        cases=(
            Case(
                title="a program in bin, its library in lib, no search path",
                facts=sample(
                    elfs={
                        "demo/bin/tool": plain_library(interpreter="/lib64/ld.so", needed=("libdemo.so",)),
                        _LIB: plain_library(),
                    }
                ),
                fires=True,
            ),
            Case(
                title="the program searches $ORIGIN/../lib",
                facts=sample(
                    elfs={
                        "demo/bin/tool": plain_library(
                            interpreter="/lib64/ld.so", needed=("libdemo.so",), runpath=("$ORIGIN/../lib",)
                        ),
                        _LIB: plain_library(),
                    }
                ),
                fires=False,
            ),
        ),
    ),
    Rule(
        id="dist/rpath-absolute",
        severity="error",
        title="A search path leads out of the installation",
        why="An absolute folder belongs to the build machine. Elsewhere it is missing or, worse, another user's; an "
        "entry that is relative to the current folder loads code from wherever the program is started.",
        fix="set the RPATH at link time to `$ORIGIN` and folders below it, or remove the entry",
        check=_outside,
        cases=(
            Case(
                title="a folder of the build", facts=sample(elfs={CORE: library(runpath=("/build/lib",))}), fires=True
            ),
            Case(title="an empty entry", facts=sample(elfs={CORE: library(runpath=("$ORIGIN", ""))}), fires=True),
            Case(title="$ORIGIN", facts=sample(elfs={CORE: library(rpath=("$ORIGIN",))}), fires=False),
        ),
    ),
    Rule(
        id="dist/rpath-dead",
        severity="warning",
        title="A search path leads to a folder that does not exist",
        why="The entry finds nothing, so what should be found there is found by chance or not at all.",
        fix="correct the entry, add the missing files, or remove it",
        check=_dead,
        cases=(
            Case(
                title="a folder that the package lacks",
                facts=sample(elfs={CORE: library(runpath=("$ORIGIN/lib",))}),
                fires=True,
            ),
            Case(
                title="a way out of site-packages",
                facts=sample(elfs={CORE: library(runpath=("$ORIGIN/../../lib",))}),
                fires=True,
            ),
            Case(
                title="a folder of another distribution",
                facts=sample(elfs={CORE: library(runpath=("$ORIGIN/../nvidia/cudnn/lib",))}),
                fires=False,
            ),
            Case(
                title="a folder that a named provider may fill",
                facts=sample(
                    elfs={CORE: library(needed=("libc10.so",), runpath=("$ORIGIN/lib",))},
                    provided_by=_TORCH,
                    requires=("torch",),
                ),
                fires=False,
            ),
            Case(
                title="a folder with libraries",
                facts=sample(elfs={CORE: library(runpath=("$ORIGIN/lib",)), _LIB: plain_library()}),
                fires=False,
            ),
        ),
    ),
    Rule(
        id="dist/versions-stale",
        severity="error",
        title="Symbol versions are asked of a library that is no longer needed",
        why="A tool renamed the needed library but not its version table; the loader stops with an assertion.",
        fix="rename both with a tool that knows of version tables, or link again",
        check=_stale_versions,
        cases=(
            Case(
                title="libgomp renamed in the needed list only",
                facts=sample(
                    elfs={
                        CORE: library(
                            needed=("libgomp-a1b2.so.1", "libc.so.6"),
                            versions_needed=(VersionNeed(file="libgomp.so.1", versions=("GOMP_4.0",)),),
                        ),
                        "demo.libs/libgomp-a1b2.so.1": plain_library(),
                    }
                ),
                fires=True,
            ),
            Case(
                title="versions of the loader itself",
                facts=sample(
                    elfs={
                        CORE: library(
                            versions_needed=(VersionNeed(file="ld-linux-x86-64.so.2", versions=("GLIBC_2.3",)),)
                        )
                    }
                ),
                fires=False,
            ),
        ),
    ),
)
