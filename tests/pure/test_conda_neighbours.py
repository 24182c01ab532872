"""What is known of the packages that ours live beside, and what follows: whose a path is, what a package depends on."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from axletree.binary.elf.facts import ElfFacts, VersionNeed
from axletree.check.conda_audit import audit_conda
from axletree.core.errors import IntegrityError
from axletree.core.globs import glob_fault
from axletree.package.conda.beside import comparable, foreign_paths, shared_paths
from axletree.package.conda.needs import LibraryOwners, unowned_needs
from axletree.package.conda.neighbours import Neighbour, Neighbours, needed_outside, parse_neighbours, runtime_depends
from axletree.package.libraries.providers import Provider
from axletree.package.wheel.tree import TreeScan
from support.conda import demo, scanned, text

if TYPE_CHECKING:
    from axletree.package.conda.reader import CondaFacts

KNOWN = Neighbours(
    neighbour=(
        Neighbour(
            package="libstdcxx",
            also=("libstdcxx-ng",),
            sonames=("libstdc++.so.6",),
            depend="libstdcxx >={GLIBCXX}",
            source="",
        ),
        Neighbour(package="libgcc", sonames=("libgcc_s.so.1",), depend="libgcc >={GCC}", source=""),
        Neighbour(package="_openmp_mutex", sonames=("libgomp.so.1",), depend="_openmp_mutex", source=""),
        Neighbour(package="fmt", paths=("include/fmt/**", "lib/libfmt.so*"), sonames=("libfmt.so*",), source=""),
        Neighbour(package="psimd", paths=("include/psimd.h",), assumed=True, source=""),
    ),
    glibcxx={"3.4.9": "4.2", "3.4.29": "11.1", "3.4.30": "12.1"},
    cxxabi={"1.3.13": "11.1"},
)  # fmt: skip
OWNERS = LibraryOwners(
    known=KNOWN,
    providers=(
        Provider(name="cuBLAS", distributions=("nvidia-cublas", "nvidia-cublas-cu*"), sonames=("libcublas.so*",)),
        Provider(name="the driver", kind="driver", sonames=("libcuda.so*",)),
        Provider(name="a desktop", distributions=("desk",), sonames=("libdesk.so*",)),
    ),
    names={"nvidia-cublas": ("libcublas >={version},<{next}",)},
    others={"libz": "libzlib", "libcuda": "nobody"},
)


def code(*needed: str, soname: str | None = None, **versions: tuple[str, ...]) -> ElfFacts:
    files = {"cxx": "libstdc++.so.6", "gcc": "libgcc_s.so.1", "libc": "libc.so.6"}
    needs = tuple(VersionNeed(file=files[name], versions=found) for name, found in versions.items())
    return ElfFacts(
        bits=64, order="little", kind="shared", machine=62, soname=soname, needed=needed, versions_needed=needs
    )  # fmt: skip


def package(*paths: str, name: str = "demo", data: bytes = b"x", **fields: object) -> CondaFacts:
    return scanned(demo(name=name, **fields), [text(path, data) for path in paths])


@pytest.mark.parametrize(
    ("elf", "depends"),
    [
        (code("libstdc++.so.6", cxx=("GLIBCXX_3.4.29", "GLIBCXX_3.4", "CXXABI_1.3")), ("libstdcxx >=11.1",)),
        (code("libstdc++.so.6", cxx=("GLIBCXX_3.4.9", "CXXABI_1.3.13")), ("libstdcxx >=11.1",)),
        (code("libstdc++.so.6", cxx=("GLIBCXX_3.4.77",)), ("libstdcxx >=12.1",)),  # newer than the table: at least that
        (code("libstdc++.so.6", cxx=("GLIBCXX_3.4",)), ("libstdcxx",)),
        (
            code("libgcc_s.so.1", "libgomp.so.1", gcc=("GCC_3.0", "GCC_4.2.0")),
            ("libgcc >=4.2.0", "_openmp_mutex"),
        ),
        (code("libc.so.6", libc=("GLIBC_2.34",)), ()),
        (code("libfmt.so.9"), ()),  # not a runtime: the recipe says which fmt it was built with
    ],
)
def test_runtimes_become_dependencies_with_the_bound_of_their_symbols(elf: ElfFacts, depends: tuple[str, ...]) -> None:
    assert runtime_depends({"lib/a.so": elf}, KNOWN) == depends


def test_the_highest_bound_of_all_files_counts() -> None:
    elfs = {
        "lib/a.so": code("libstdc++.so.6", cxx=("GLIBCXX_3.4.30",)),
        "lib/b.so": code("libstdc++.so.6", cxx=("GLIBCXX_3.4.29",)),
    }
    assert runtime_depends(elfs, KNOWN) == ("libstdcxx >=12.1",)


def test_a_runtime_that_the_package_has_itself_is_no_dependency() -> None:
    elfs = {"lib/a.so": code("libgomp.so.1"), "lib/own/libgomp.so.1": code(soname="libgomp.so.1")}
    assert runtime_depends(elfs, KNOWN) == ()
    assert needed_outside(elfs) == {}
    assert needed_outside({"lib/a.so": elfs["lib/a.so"]}) == {"libgomp.so.1": ("lib/a.so",)}


def test_needed_libraries_without_an_owner_among_the_dependencies() -> None:
    elfs = {
        "lib/a.so": code("libstdc++.so.6", "libcublas.so.12", "libcuda.so.1", "libunknown.so.1", "libdesk.so.1"),
        "lib/b.so": code("libz.so.1", "libstdc++.so.6"),
    }

    def found(*depends: str, called: tuple[str, ...] = ()) -> dict[str, str]:
        return {need.soname: need.package for need in unowned_needs(elfs, depends, OWNERS, called=called)}

    every = {"libcublas.so.12": "libcublas", "libstdc++.so.6": "libstdcxx", "libz.so.1": "libzlib"}
    assert found() == every, "nothing is claimed of the driver's, nor of what no table knows"
    assert found("libstdcxx-ng >=11", "libcublas >=12,<13", "libzlib") == {}
    assert found("libstdcxx", called=("libcublas",)) == {"libz.so.1": "libzlib"}
    (need, *_) = (each for each in unowned_needs(elfs, (), OWNERS) if each.soname == "libstdc++.so.6")
    assert need.files == ("lib/a.so", "lib/b.so")


def test_paths_of_a_neighbour_are_its_own() -> None:
    paths = (
        "include/fmt/core.h",
        "include/fmt/format.h",
        "include/psimd.h",
        "include/demo/fmt/core.h",
        "lib/libfmt.so.9",
    )
    found = {each.neighbour.package: each.paths for each in foreign_paths(package(*paths), KNOWN)}
    assert found == {
        "fmt": ("include/fmt/core.h", "include/fmt/format.h", "lib/libfmt.so.9"),
        "psimd": ("include/psimd.h",),
    }
    assert foreign_paths(package("include/demo/fmt/core.h"), KNOWN) == ()
    assert foreign_paths(package("include/fmt/core.h", name="fmt"), KNOWN) == ()
    assert foreign_paths(package("include/fmt/core.h", constrains=("fmt <0.0a0",)), KNOWN) == ()
    assert foreign_paths(package("include/fmt/core.h", constrains=("fmt <9",)), KNOWN) != ()


def test_real_packages_are_compared_by_path_and_content() -> None:
    own = package("include/a.h", "include/b.h", "bin/x", "python-scripts/tool")
    other = scanned(demo(name="other"), [text("include/a.h", b"x"), text("include/b.h", b"y"), text("bin/tool", b"x")])
    (found,) = shared_paths(own, [other, package("bin/x"), package("share/z", name="third")])
    assert (found.other, found.paths) == (other.filename, ("bin/tool", "include/a.h", "include/b.h"))
    assert found.same == 2, "the same path is a clobber with the same content too"
    for never in (
        package("bin/x", name="osx", subdir="osx-64"),
        package("bin/x", name="never", constrains=("demo <0.0a0",)),
    ):
        assert (shared_paths(own, [never]), comparable(own, [never])) == ((), 0)
    assert comparable(own, [other, package("bin/x")]) == 1, "another build of the same package is none that it meets"


def test_the_audit_says_what_it_compared() -> None:
    own, other = package("include/fmt/core.h"), package("include/fmt/core.h", name="fmt")
    alone = audit_conda(own, TreeScan(elfs=(), damaged_elfs=()), policies=(), owners=OWNERS)
    assert alone.compared == ("known paths of 2 packages",)
    assert [finding.rule for finding in alone.findings] == ["conda/path-of-neighbour"]
    given = audit_conda(own, TreeScan(elfs=(), damaged_elfs=()), policies=(), owners=OWNERS, others=[other])
    assert given.compared == ("known paths of 2 packages", "all paths of 1 package")
    assert [finding.rule for finding in given.findings] == ["conda/path-of-neighbour", "conda/path-shared"]
    assert given.findings[1].message == f"this file is also in {other.filename}, with the same content"


def test_a_damaged_table_is_named() -> None:
    with pytest.raises(IntegrityError, match="not a valid table of neighbours"):
        parse_neighbours(b'[[neighbour]]\npackage = "fmt"\n', file="conda-neighbours.toml")
    assert parse_neighbours(b"", file="x").neighbour == ()
    assert all(glob_fault(path) is None for each in KNOWN.neighbour for path in each.paths)
