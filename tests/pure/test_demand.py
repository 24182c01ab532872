"""What the files of a wheel find, and what they may lack."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from axletree.check.rules.wheel.sample import CORE, PROVIDERS, library, plain_library
from axletree.package.libraries.demand import find_misses, find_optional, find_roots
from axletree.package.libraries.linkage import LinkContext, Need, find_owners
from axletree.package.libraries.providers import required_names

if TYPE_CHECKING:
    from axletree.binary.elf.facts import ElfFacts

OTHER = "demo/_other.abi3.so"


def needs(elfs: dict[str, ElfFacts], *requires: str, members: tuple[str, ...] = ()) -> dict[str, Need]:
    """Each needed library's owner; no library is needed by two in different ways here."""
    around = LinkContext(
        own="demo",
        system=frozenset({"libc.so.6"}),
        providers=PROVIDERS,
        required=required_names(requires),
        extras=required_names(requires, extras=True),
    )
    found = find_optional(find_owners(elfs, around, members=("demo/__init__.py", *elfs, *members)), elfs, around)
    return {need.soname: need for need in found}


def test_roots_are_what_nothing_needs() -> None:
    elfs = {
        CORE: library(needed=("liba.so.1",)),
        "demo/liba.so.1": plain_library(soname="liba.so.1", needed=()),
        "demo/liba.so": plain_library(soname="liba.so.1", needed=()),  # a copy under its other name
        "demo/plugin.so": plain_library(),
    }
    assert find_roots(elfs) == (CORE, "demo/plugin.so")


def test_a_copy_with_a_hash_is_not_who_brings_the_plain_name() -> None:
    """The loader looks for file names; torch's CUDA runtime is not the vendored one, though that has its SONAME."""
    elfs = {
        CORE: library(needed=("libcudart.so.13",)),
        OTHER: library(needed=("libcudart.faf08d9a.so.13",)),
        "demo.libs/libcudart.faf08d9a.so.13": plain_library(soname="libcudart.so.13"),
    }
    found = needs(elfs, "torch")
    assert (found["libcudart.so.13"].owner, found["libcudart.so.13"].via) == ("distribution", "torch")
    assert found["libcudart.faf08d9a.so.13"].owner == "wheel"
    assert needs(elfs)["libcudart.so.13"].owner == "wheel"


def test_torch_has_its_openmp_runtime_loaded() -> None:
    elfs = {CORE: library(needed=("libgomp.so.1",))}
    assert needs(elfs, "torch")["libgomp.so.1"].by == "torch"
    assert needs(elfs)["libgomp.so.1"].owner == "nobody"


def test_a_required_distribution_may_fill_a_folder_of_its_name() -> None:
    elf = library(needed=("libx.so",), runpath=("$ORIGIN/../casadi",))
    assert needs({CORE: elf}, "casadi")["libx.so"] == Need(
        soname="libx.so", owner="sibling", by="casadi", files=(CORE,)
    )
    assert needs({CORE: elf}, "numpy")["libx.so"].owner == "nobody"


@pytest.mark.parametrize(
    "folder", ["$ORIGIN/../demo.libs", "$ORIGIN/lib", "$ORIGIN/../..", "$ORIGIN/../nvidia/cublas/lib"]
)
def test_no_other_fills_what_the_wheel_owns_or_what_is_known(folder: str) -> None:
    elf = library(needed=("libx.so",), runpath=(folder,))
    found = needs({CORE: elf}, "demo-tools", "nvidia-cublas", members=("demo/lib/readme.txt",))
    assert found["libx.so"].owner == "nobody"


def test_compilers_libraries_come_from_no_sibling() -> None:
    elf = library(needed=("libquadmath.so.0",), runpath=("$ORIGIN/../casadi",))
    assert needs({CORE: elf}, "casadi")["libquadmath.so.0"].owner == "nobody"


def test_why_a_library_may_be_missing() -> None:
    elfs = {
        CORE: library(),
        "demo/pool_tbb.abi3.so": library(needed=("libtbb.so.12",)),
        "demo/pool_omp.abi3.so": library(needed=("libomp.so.5",)),
        "demo/nv/cublas.abi3.so": library(needed=("libcublas.so.13",)),
        "demo/plugins/solver.so": plain_library(needed=("libknitro.so",)),
    }
    found = needs(elfs)
    assert {name: (need.owner, need.why) for name, need in found.items() if name != "libc.so.6"} == {
        "libtbb.so.12": ("optional", "alternative"),
        "libomp.so.5": ("optional", "alternative"),
        "libcublas.so.13": ("optional", "binding"),
        "libknitro.so": ("nobody", "plug-in"),
    }
    assert needs(elfs, 'nvidia-cublas; extra == "gpu"')["libcublas.so.13"].why == "extra"


def test_builds_for_several_releases_are_alternatives() -> None:
    elfs = {
        f"demo/libdemo_cuda{release}.so": plain_library(needed=(f"libcublas.so.{release}",)) for release in (11, 12, 13)
    }
    assert {need.why for need in needs(elfs).values()} == {"alternative"}


@pytest.mark.parametrize(
    "elfs",
    [
        {CORE: library(needed=("libcublas.so.13",))},
        {CORE: library(), OTHER: library(needed=("libcublas.so.13",))},
        {CORE: library(), "demo/image.so": plain_library(needed=("libjpeg.so.62",))},
        {CORE: library(needed=("libx.so",)), "demo/libx.so": plain_library(needed=("libcublas.so.13",))},
        {CORE: library(), "demo/tool": plain_library(interpreter="/lib64/ld.so", needed=("libcublas.so.13",))},
    ],
    ids=["the only module", "a module among others", "a library that code opens", "a module's library", "a program"],
)
def test_without_a_sign_a_missing_library_is_missing(elfs: dict[str, ElfFacts]) -> None:
    assert [need.owner for name, need in needs(elfs).items() if name in {"libcublas.so.13", "libjpeg.so.62"}] in (
        ["undeclared"],
        ["nobody"],
    )


def test_misses_follow_the_loader() -> None:
    elfs = {
        CORE: library(needed=("libmid.so",), runpath=("$ORIGIN/lib",)),
        "demo/lib/libmid.so": plain_library(needed=("libend.so",)),
        "demo/lib/libend.so": plain_library(),
    }
    (miss,) = find_misses(elfs)
    assert miss == (CORE, "demo/lib/libmid.so", "libend.so", "demo/lib/libend.so")
    inherited = {**elfs, CORE: library(needed=("libmid.so",), rpath=("$ORIGIN/lib",))}
    assert find_misses(inherited) == ()
    loaded_before = {**elfs, OTHER: library(needed=("libend.so",), runpath=("$ORIGIN/lib",))}
    assert find_misses(loaded_before) == ()


def test_a_program_must_find_all_by_itself() -> None:
    elfs = {
        CORE: library(needed=("libx.so",), runpath=("$ORIGIN/lib",)),
        "demo/bin/tool": plain_library(interpreter="/lib64/ld.so", needed=("libx.so",)),
        "demo/lib/libx.so": plain_library(),
    }
    assert [miss.root for miss in find_misses(elfs)] == ["demo/bin/tool"]


def test_a_plugin_finds_the_library_that_opens_it() -> None:
    elfs = {
        "nv/lib/libcufile.so.0": plain_library(soname="libcufile.so.0"),
        "nv/lib/libcufile_rdma.so.1": plain_library(needed=("libcufile.so.0",)),
    }
    assert find_misses(elfs) == ()


def test_files_without_number_are_not_followed() -> None:
    many = tuple(f"lib{number}.so" for number in range(3300))
    elfs = {f"demo/{name}": plain_library(needed=many) for name in many}
    assert find_misses(elfs) == ()
    elfs = {f"demo/{name}": plain_library(needed=(f"libx{name}",)) for name in many}
    assert find_misses(elfs) == ()
    assert {need.owner for need in needs(elfs).values()} == {"nobody"}


def test_where_data_files_will_lie_is_not_known() -> None:
    elfs = {
        "demo-1.data/data/lib/liba.so": plain_library(needed=("libb.so",)),
        "demo-1.data/data/lib/libb.so": plain_library(),
    }
    assert find_misses(elfs) == ()
