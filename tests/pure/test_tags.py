"""Tags and policies: what a wheel's files let it promise."""

from __future__ import annotations

import pytest

from axletree.binary.elf.facts import VersionNeed
from axletree.check.rules.wheel.sample import POLICIES, glibc, library, plain_library
from axletree.core.errors import IntegrityError
from axletree.package.libraries.linkage import LinkContext, find_owners, installed_path, library_paths, search_path
from axletree.package.libraries.platforms import parse_platform
from axletree.package.libraries.policy import (
    broken_needs,
    highest_versions,
    lowest_policy,
    parse_policies,
    symbol_needs,
)
from axletree.package.libraries.providers import Provider
from axletree.package.wheel.tags import Tags, compute_tags, needs_cpython

VERSIONED = "demo/_core.cpython-311-x86_64-linux-gnu.so"
FREE = "demo/_core.cpython-313t-x86_64-linux-gnu.so"
STABLE = "demo/_core.abi3.so"
PLAIN = "demo/_core.so"

AUDITWHEEL = [
    {"name": "linux", "aliases": [], "priority": 0, "symbol_versions": {}, "lib_whitelist": [], "blacklist": {}},
    {
        "name": "manylinux_2_28",
        "aliases": [],
        "priority": 64,
        "symbol_versions": {"x86_64": {"GLIBC": ["2.17", "2.28"]}},
        "lib_whitelist": ["libc.so.6"],
        "blacklist": {},
    },
    {
        "name": "manylinux_2_17",
        "aliases": ["manylinux2014"],
        "priority": 80,
        "symbol_versions": {"x86_64": {"GLIBC": ["2.17"]}},
        "lib_whitelist": ["libc.so.6"],
        "blacklist": {},
    },
]


def test_no_library_fits_every_platform() -> None:
    assert compute_tags({}, POLICIES) == Tags(python="py3", abi="none", platform="any")
    assert compute_tags({}, POLICIES, original=["py2-none-any", "py3-none-any"]).each == (
        "py2-none-any",
        "py3-none-any",
    )


@pytest.mark.parametrize(
    ("path", "python", "tag"),
    [
        (VERSIONED, None, "cp311-cp311"),
        (VERSIONED, "3.12", "cp311-cp311"),
        (FREE, None, "cp313-cp313t"),
        (STABLE, "3.11", "cp311-abi3"),
        (STABLE, "3.13t", "cp313-cp313t"),
        (PLAIN, "3.11", "cp311-cp311"),
        (PLAIN, "3.13t", "cp313-cp313t"),
    ],
)
def test_an_extension_module_names_its_python(path: str, python: str | None, tag: str) -> None:
    tags = compute_tags({path: library()}, POLICIES, python=python)
    assert f"{tags.python}-{tags.abi}" == tag
    assert tags.platform == "manylinux_2_17_x86_64"


def test_a_library_without_cpython_symbols_fits_every_python() -> None:
    assert compute_tags({"demo/libdemo.so": plain_library()}, POLICIES, python="3.11").each == (
        "py3-none-manylinux_2_17_x86_64",
    )


def test_the_tags_of_the_build_backend_are_kept_but_for_the_platform() -> None:
    tags = compute_tags({PLAIN: plain_library()}, POLICIES, original=["cp311-cp311-linux_x86_64"])
    assert tags.each == ("cp311-cp311-manylinux_2_17_x86_64",)
    assert not tags.pure


def test_symbols_tell_who_needs_cpython() -> None:
    assert needs_cpython("x.so", library(python_modules=()))
    assert needs_cpython(VERSIONED, plain_library())
    assert not needs_cpython("x.so", plain_library())


def test_what_can_not_be_tagged() -> None:
    with pytest.raises(IntegrityError, match=r"_core\.so: the file needs CPython, but does not record which"):
        compute_tags({PLAIN: library()}, POLICIES)
    with pytest.raises(IntegrityError, match="is for cp313t"):
        compute_tags({VERSIONED: library(), FREE: library()}, POLICIES)
    with pytest.raises(IntegrityError, match="is for aarch64"):
        compute_tags({"a.so": library(), "b.so": library(machine=183)}, POLICIES)


@pytest.mark.parametrize(
    ("versions", "platform"),
    [
        (("2.17",), "manylinux_2_17_x86_64"),
        (("2.2.5", "2.28"), "manylinux_2_28_x86_64"),
        (("2.34",), "manylinux_2_34_x86_64"),
        (("2.99",), "linux_x86_64"),
        (("PRIVATE",), "linux_x86_64"),
        ((), "manylinux_2_17_x86_64"),
    ],
)
def test_the_platform_follows_the_symbols(versions: tuple[str, ...], platform: str) -> None:
    assert compute_tags({"a.so": plain_library(versions_needed=glibc(*versions))}, POLICIES).platform == platform


def test_families_no_policy_knows_are_no_obstacle() -> None:
    needs = (VersionNeed(file="libgomp.so.1", versions=("GOMP_4.0",)),)
    assert compute_tags({"a.so": plain_library(versions_needed=needs)}, POLICIES).platform == "manylinux_2_17_x86_64"


def test_what_the_wheel_brings_itself_is_no_need() -> None:
    needs = (VersionNeed(file="libstdc++.so.6", versions=("GLIBCXX_3.4.99",)),)
    elfs = {"a.so": plain_library(versions_needed=needs), "libs/x.so": plain_library(soname="libstdc++.so.6")}
    assert compute_tags(elfs, POLICIES).platform == "manylinux_2_17_x86_64"


def test_gpu_code_counts_for_nothing() -> None:
    kernel = plain_library(machine=190, versions_needed=glibc("2.99"))
    assert compute_tags({"a.so": plain_library(), "k.cubin": kernel}, POLICIES).platform == "manylinux_2_17_x86_64"


def test_policies_are_read_and_ordered() -> None:
    low, high = parse_policies(AUDITWHEEL)
    assert (low.name, low.glibc, low.aliases) == ("manylinux_2_17", (2, 17), ("manylinux2014",))
    needs = symbol_needs({"a.so": library(versions_needed=glibc("2.28"))})
    assert lowest_policy(needs, [high, low], "x86_64") == high
    assert lowest_policy(needs, [low, high], "riscv64") is None
    assert [need.version for need in broken_needs(needs, low, "x86_64")] == ["2.28"]
    with pytest.raises(IntegrityError, match="not valid platform policies"):
        parse_policies([{"name": "manylinux_2_17"}])


def test_the_highest_versions() -> None:
    needs = symbol_needs({"a.so": library(versions_needed=glibc("2.9", "2.10", "PRIVATE"))})
    assert highest_versions(needs) == {"GLIBC": "2.10"}
    assert highest_versions(()) == {}


@pytest.mark.parametrize(
    ("tag", "machine", "policy", "musl"),
    [
        ("any", None, None, False),
        ("linux_x86_64", "x86_64", None, False),
        ("manylinux2014_x86_64", "x86_64", "manylinux_2_17", False),
        ("manylinux_2_28_aarch64", "aarch64", "manylinux_2_28", False),
        ("manylinux_2_30_x86_64", "x86_64", "manylinux_2_30", False),
        ("manylinux_2_5_x86_64", "x86_64", None, False),
        ("musllinux_1_2_x86_64", "x86_64", None, True),
        ("win_amd64", "x86_64", None, False),
        ("win32", "i686", None, False),
        ("macosx_11_0_arm64", "aarch64", None, False),
        ("macosx_10_9_universal2", None, None, False),
        ("ios_13_0_arm64_iphoneos", "aarch64", None, False),
        ("android_24_arm64_v8a", "aarch64", None, False),
    ],
)
def test_platform_tags(tag: str, machine: str | None, policy: str | None, musl: bool) -> None:  # noqa: FBT001
    platform = parse_platform(tag, POLICIES)
    assert (platform.machine, platform.policy and platform.policy.name, platform.musl) == (machine, policy, musl)


def test_owners() -> None:
    names = (
        "libown.so.1",
        "other.so",
        "libc.so.6",
        "ld-linux-x86-64.so.2",
        "libc10.so",
        "libcuda.so.1",
        "libblas.so.3",
    )
    elfs = {
        "demo/a.so": library(needed=(*names, "libpython3.11.so.1.0")),
        "demo/libs/x.so": plain_library(soname="libown.so.1", needed=()),
        "demo/other.so": plain_library(needed=("libblas.so.3",)),
    }
    around = LinkContext(
        system=frozenset({"libc.so.6"}),
        providers=(Provider(name="driver", kind="driver", sonames=("libcuda.so.*",)),),
        required=frozenset({"torch"}),
        provided_by={"torch": ("libc10*.so", "libtorch*.so")},
    )
    owners = find_owners(elfs, around)
    assert {need.soname: (need.owner, need.by) for need in owners} == {
        "libown.so.1": ("wheel", "demo/libs/x.so"),
        "other.so": ("wheel", "demo/other.so"),
        "libc.so.6": ("system", ""),
        "ld-linux-x86-64.so.2": ("system", ""),
        "libc10.so": ("distribution", "torch"),
        "libcuda.so.1": ("driver", "driver"),
        "libblas.so.3": ("nobody", ""),
        "libpython3.11.so.1.0": ("python", ""),
    }
    assert next(need.files for need in owners if need.soname == "libblas.so.3") == ("demo/a.so", "demo/other.so")


def test_musl_brings_its_libc() -> None:
    elfs = {"a.so": library(needed=("libc.musl-x86_64.so.1", "libc.so"))}
    assert {need.owner for need in find_owners(elfs, LinkContext(musl=True))} == {"system"}
    assert {need.owner for need in find_owners(elfs, LinkContext())} == {"nobody"}


def test_programs_are_no_libraries() -> None:
    assert library_paths({"bin/tool": plain_library(kind="executable")}) == {}


def test_where_members_are_installed() -> None:
    assert installed_path("demo/a.so") == "demo/a.so"
    assert installed_path("demo-1.0.data/platlib/demo/a.so") == "demo/a.so"
    assert installed_path("demo-1.0.data/scripts/tool") is None


def test_search_paths() -> None:
    elf = library(rpath=("/old",), runpath=("$ORIGIN", "${ORIGIN}/../libs", "$ORIGIN/../..", "/opt", "lib", ""))
    entries = [(entry.kind, entry.folder) for entry in search_path("demo/sub/a.so", elf)]
    assert entries == [
        ("origin", "demo/sub"),
        ("origin", "demo/libs"),
        ("origin", "."),
        ("absolute", None),
        ("relative", None),
        ("relative", None),
    ]
    assert [entry.text for entry in search_path("a.so", library(rpath=("/old",)))] == ["/old"]
    assert next(entry.folder for entry in search_path("x-1.data/data/lib/a.so", elf)) is None
