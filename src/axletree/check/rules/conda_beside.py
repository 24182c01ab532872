"""Rules about conda packages among others: whose paths they have, and whether they require what they need."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import msgspec

from axletree.binary.elf.facts import ElfFacts, VersionNeed
from axletree.check.engine import Found, Rule, fires, listing, silent, subject
from axletree.core.units import some_of
from axletree.package.conda.beside import foreign_paths, shared_paths
from axletree.package.conda.info import IndexJson
from axletree.package.conda.needs import LibraryOwners, unowned_needs
from axletree.package.conda.neighbours import Neighbour, Neighbours
from axletree.package.conda.reader import CondaFacts, CondaMember

if TYPE_CHECKING:
    from collections.abc import Iterator

_SHOWN = 20


class CondaBeside(msgspec.Struct, frozen=True, kw_only=True):
    """A package, and what is known of those that it is installed beside."""

    facts: CondaFacts
    elfs: Mapping[str, ElfFacts]
    """Path -> facts of its machine code."""
    owners: LibraryOwners
    others: Sequence[CondaFacts] = ()
    """Packages that it is to be installed beside."""


def _shared(beside: CondaBeside) -> Iterator[Found]:
    """Paths of real packages; one finding for each package."""
    for shared in shared_paths(beside.facts, beside.others):
        files = subject(shared.paths, "is", "are")
        alike = {0: "with different content", len(shared.paths): "with the same content"}
        how = alike.get(shared.same, f"{shared.same} of them with the same content")
        evidence = (*shared.paths[:_SHOWN], *_rest(shared.paths))
        yield Found(shared.paths[0], f"{files} also in {shared.other}, {how}", evidence=listing(evidence))


def _foreign(beside: CondaBeside, *, assumed: bool) -> Iterator[Found]:
    """Paths that the table knows; one finding for each neighbour."""
    for foreign in foreign_paths(beside.facts, beside.owners.known):
        if foreign.neighbour.assumed is assumed:
            files = subject(foreign.paths, "belongs", "belong")
            name = foreign.neighbour.package
            whose = f"the project {name}" if assumed else f"the conda package {name}"
            evidence = (*foreign.paths[:_SHOWN], *_rest(foreign.paths))
            yield Found(foreign.paths[0], f"{files} to {whose}", evidence=listing(evidence))


def _rest(paths: Sequence[str]) -> tuple[str, ...]:
    more = len(paths) - _SHOWN
    return (f"and {more:,} more",) if more > 0 else ()


def _owned(beside: CondaBeside) -> Iterator[Found]:
    yield from _foreign(beside, assumed=False)


def _vendored(beside: CondaBeside) -> Iterator[Found]:
    yield from _foreign(beside, assumed=True)


def _unowned(beside: CondaBeside) -> Iterator[Found]:
    index = beside.facts.index
    depends = index.depends if index else ()
    for need in unowned_needs(beside.elfs, depends, beside.owners, called=(beside.facts.name,)):
        files = subject(need.files, "needs", "need")
        message = f"{files} {need.soname} from the conda package {need.package}, which is not a dependency"
        fix = f'add "{need.package}" to the package\'s dependencies (`conda.depends`), or link without {need.soname}'
        yield Found(need.files[0], message, evidence=listing([f"needed by {some_of(need.files, 5)}"]), fix=fix)


_DIGEST = hashlib.sha256(b"x").hexdigest()
_KNOWN = Neighbours(
    neighbour=(
        Neighbour(package="pybind11", paths=("include/pybind11/**",), source="its recipe"),
        Neighbour(package="psimd", assumed=True, paths=("include/psimd.h",), source="its project"),
        Neighbour(package="libstdcxx", also=("libstdcxx-ng",), sonames=("libstdc++.so.6",), source="its recipe"),
    )
)
_CODE = ElfFacts(
    bits=64, order="little", kind="shared", machine=62, dynamic=True, needed=("libstdc++.so.6", "libown.so.1"),
    versions_needed=(VersionNeed(file="libstdc++.so.6", versions=("GLIBCXX_3.4.30",)),),
)  # fmt: skip


def _package(name: str, *paths: str, depends: tuple[str, ...] = (), constrains: tuple[str, ...] = ()) -> CondaFacts:
    index = IndexJson(
        name=name, version="1.0", build="0", build_number=0, subdir="linux-64", depends=depends, constrains=constrains
    )
    members = tuple(CondaMember(path=path, kind="file", size=1, sha256=_DIGEST) for path in paths)
    return CondaFacts(
        filename=f"{name}-1.0-0.conda",
        name=name,
        version="1.0",
        build="0",
        size=1000,
        index=index,
        paths=None,
        members=members,
    )


def _sample(facts: CondaFacts, *others: CondaFacts, **elfs: ElfFacts) -> CondaBeside:
    owners = LibraryOwners(known=_KNOWN, providers=(), names={}, others={})
    return CondaBeside(facts=facts, elfs=elfs, owners=owners, others=others)


BESIDE_RULES: tuple[Rule[CondaBeside], ...] = (
    Rule(
        id="conda/path-of-neighbour",
        severity="error",
        title="A file has the path of a different conda package",
        why="Conda clients install only one of two files with the same path, without a message, and remove it with "
        "either package. Users of the other package then compile with the wrong headers, or load the wrong library.",
        fix="move the files to a folder of your own, such as include/NAME, and add that folder to your CMake package",
        references=("conda-forge/pytorch-cpu-feedstock#212",),
        check=_owned,
        cases=lambda: (
            fires("pybind11's headers in `include`", _sample(_package("demo", "include/pybind11/cast.h"))),
            silent("pybind11's headers in a folder of the package", _sample(_package("demo", "include/demo/a.h"))),
            silent("the package pybind11 itself", _sample(_package("pybind11", "include/pybind11/cast.h"))),
            silent(
                "a package that excludes pybind11",
                _sample(_package("demo", "include/pybind11/cast.h", constrains=("pybind11 <0.0a0",))),
            ),
        ),
    ),
    Rule(
        id="conda/path-shared",
        severity="error",
        title="A file has the same path as a file in a different package",
        why="Conda clients install only one of two files with the same path, without a message. Even if their content "
        "is the same, removing or updating one of the packages removes or changes the file of the other.",
        fix="keep each file in one package only, and let the other package depend on that package",
        check=_shared,
        cases=lambda: (
            fires("a file of a given package", _sample(_package("demo", "bin/x"), _package("tools", "bin/x", "bin/y"))),
            silent("different files", _sample(_package("demo", "bin/x"), _package("tools", "bin/y"))),
            silent("another build of the package", _sample(_package("demo", "bin/x"), _package("demo", "bin/x"))),
        ),
    ),
    Rule(
        id="conda/path-vendored",
        severity="warning",
        title="A file has the path that a different project installs it to",
        why="If a channel has a package of that project, or gets one, conda clients silently install only one of the "
        "two files.",
        fix="move the files to a folder of your own, such as include/NAME, and add that folder to your CMake package",
        check=_vendored,
        cases=lambda: (
            fires("`include/psimd.h`", _sample(_package("demo", "include/psimd.h"))),
            silent("`include/demo/psimd.h`", _sample(_package("demo", "include/demo/psimd.h"))),
        ),
    ),
    Rule(
        id="conda/needed-not-required",
        severity="warning",
        title="A needed library is in a conda package that is not a dependency",
        why="The library is missing in environments where no other package happens to require it, or is taken from the "
        "host system in a version that does not fit.",
        fix="add the package to the dependencies",
        check=_unowned,
        cases=lambda: (
            fires("libstdc++ without `libstdcxx`", _sample(_package("demo"), code=_CODE)),
            silent("libstdc++ with `libstdcxx`", _sample(_package("demo", depends=("libstdcxx >=12.1",)), code=_CODE)),
            silent("with `libstdcxx-ng`", _sample(_package("demo", depends=("libstdcxx-ng",)), code=_CODE)),
        ),
    ),
)  # fmt: skip
"""Every rule over :class:`CondaBeside`."""
