"""GPU targets: AMD's table, names and numbers, groups, and which packages follow from what was built."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from axletree.core.errors import IntegrityError, UsageError
from axletree.package.sdk.manifest import Targets
from axletree.package.sdk.targets import (
    bare_target,
    decode_targets,
    hierarchy,
    is_family,
    is_target,
    members,
    number_of,
    select_targets,
)
from axletree_runtime._detect import gfx_name

FILE = Path(__file__).parents[2] / "src/axletree/backends/data/amd-targets.toml"
TABLE = decode_targets(FILE.read_bytes(), file=FILE.name)
AMD = Targets(table="amd")
NVIDIA = Targets(maker="nvidia")
DEBIAN = ["gfx803", "gfx900:xnack-", "gfx906:xnack-", "gfx908:xnack-", "gfx90a:xnack-", "gfx90a:xnack+", "gfx1030"]

# Targets, sub-families and families of AMD's rocm-bootstrap 0.3.0.
BOOTSTRAP = {
    "gfx9": {"gfx9_0": "900 902 904 906 908 909 90a 90c", "gfx9_4": "942", "gfx9_5": "950"},
    "gfx10": {"gfx10_1": "1010 1011 1012 1013", "gfx10_3": "1030 1031 1032 1033 1034 1035 1036"},
    "gfx11": {"gfx110x": "1100 1101 1102 1103", "gfx115x": "1150 1151 1152 1153"},
    "gfx12": {"gfx12_0": "1200 1201", "gfx12_5": "1250 1251"},
}


def test_the_hierarchy_is_that_of_amd() -> None:
    for family, subs in BOOTSTRAP.items():
        for sub, digits in subs.items():
            for name in (f"gfx{each}" for each in digits.split()):
                assert hierarchy(name) == (sub, family)
                assert TABLE.find(name) is not None, name
    assert TABLE.find("gfx1250-strict") is TABLE.find("gfx1250")


@pytest.mark.parametrize(
    ("name", "kfd"), [("gfx90a", 90010), ("gfx942", 90402), ("gfx1030", 100300), ("gfx1151", 110501), ("gfx803", 80003)]
)
def test_what_the_kernel_calls_them(name: str, kfd: int) -> None:
    target = TABLE.find(name)
    assert target is not None
    major, minor, stepping = target.number
    assert major * 10000 + minor * 100 + stepping == kfd
    assert gfx_name(kfd) == name  # the runtime has a reader of its own


@given(st.integers(1, 99), st.integers(0, 15), st.integers(0, 15))
def test_names_and_numbers_are_the_same_thing(major: int, minor: int, stepping: int) -> None:
    name = gfx_name(major * 10000 + minor * 100 + stepping)
    assert number_of(name) == (major, minor, stepping)
    assert is_target(name)
    assert all(is_family(group) for group in hierarchy(name))


def test_generic_code_and_nonsense_are_no_gpus() -> None:
    assert not is_target("gfx9-generic")
    assert hierarchy("dev") == ()
    assert not is_family("dev")


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("gfx90a:sramecc+:xnack-", "gfx90a"),
        (" GFX90A ", "gfx90a"),
        ("amdgcn-amd-amdhsa--gfx942", "gfx942"),
        ("hipv4-amdgcn-amd-amdhsa--gfx90a:xnack-", "gfx90a"),
        ("sm_90a", "sm_90"),
        ("sm120", "sm_120"),
        ("gfx94X-dcgpu", "gfx94x-dcgpu"),
    ],
)
def test_features_are_stripped(text: str, name: str) -> None:
    assert bare_target(text) == name


ALL = [target.name for target in TABLE.target]


@pytest.mark.parametrize(
    ("group", "digits"),
    [
        ("gfx94X-dcgpu", "940 941 942"),
        ("gfx950-dcgpu", "950"),
        ("gfx110X-all", "1100 1101 1102 1103"),
        ("gfx110X-dgpu", "1100 1101 1102"),
        ("gfx110x-igpu", "1103"),
        ("gfx103X-dgpu", "1030 1031 1032 1034"),
        ("gfx103X-igpu", "1033 1035 1036"),
        ("gfx120X-all", "1200 1201"),
        ("gfx115X-all", "1150 1151 1152 1153"),
        ("gfx90X-dcgpu", "906 908 90a"),
        ("gfx1103", "1103"),
        ("gfx12", "1200 1201 1250 1251"),
        ("gfx1250-strict", "1250"),
        ("gfx13", ""),
        ("nonsense", ""),
    ],
)
def test_groups_of_therock(group: str, digits: str) -> None:
    assert members(group, ALL, TABLE) == tuple(f"gfx{each}" for each in digits.split())


def test_groups_of_everything_of_a_kind() -> None:
    kinds = {word: set(members(f"{word}-all", ALL, TABLE)) for word in ("dgpu", "igpu", "dcgpu")}
    assert kinds["dcgpu"] < kinds["dgpu"]
    assert not kinds["igpu"] & kinds["dgpu"]
    assert kinds["igpu"] | kinds["dgpu"] == set(ALL)


def test_a_new_gpu_has_a_family_by_its_name() -> None:
    chosen = select_targets(["gfx1310", "gfx1311", "gfx1400"], AMD, TABLE)
    assert chosen.families == {"gfx13_1": ("gfx1310", "gfx1311")}
    assert chosen.hierarchy["gfx1400"] == ("gfx14_0", "gfx14")
    assert chosen.choices["gfx131X-dgpu"] == ("gfx1310", "gfx1311")


def test_what_debians_rocsparse_gives() -> None:
    chosen = select_targets(DEBIAN, AMD, TABLE)
    assert chosen.targets == ("gfx803", "gfx900", "gfx906", "gfx908", "gfx90a", "gfx1030")
    assert chosen.families == {"gfx9_0": ("gfx900", "gfx906", "gfx908", "gfx90a")}  # no second package for gfx9
    assert chosen.choices["gfx9"] == chosen.choices["gfx90X-all"] == chosen.families["gfx9_0"]
    assert chosen.choices["gfx103X-dgpu"] == ("gfx1030",)
    assert chosen.default == "gfx9_0"
    assert chosen.hierarchy["gfx1201"] == ("gfx12_0", "gfx12")  # known, though not built


def test_targets_with_different_files_under_one_path_make_a_family_only_if_it_is_asked_for() -> None:
    built = ["gfx1100", "gfx1101", "gfx1150", "gfx1151", "gfx110X-all"]
    rivals = [frozenset({"gfx1100", "gfx1101"}), frozenset({"gfx1100", "gfx1150"})]
    chosen = select_targets(built, AMD, TABLE, rivals=rivals)
    assert chosen.families == {"gfx115x": ("gfx1150", "gfx1151")}
    assert chosen.apart == ("gfx110X-all", "gfx110x")
    assert chosen.choices["gfx110X-all"] == ("gfx1100", "gfx1101")  # both of its packages
    asked = select_targets(built, AMD, TABLE, families=["gfx11"], rivals=rivals)
    assert list(asked.families) == ["gfx11", "gfx115x"]
    assert not select_targets(built, AMD, TABLE, rivals=[frozenset({"gfx110X-all", "gfx115x"})]).apart


def test_artifacts_for_groups_and_wishes_come_first() -> None:
    built = ["gfx110X-all", "gfx1100", "gfx1101", "gfx1150", "gfx1151"]
    chosen = select_targets(built, AMD, TABLE, families=["gfx11"])
    assert list(chosen.families) == ["gfx11", "gfx110X-all", "gfx115x"]
    assert "gfx110x" in chosen.choices  # a name, though not of a package


def test_groups_of_the_manifest_may_hold_others() -> None:
    section = Targets(
        table="amd", groups={"instinct": ("gfx94X-dcgpu", "mi200"), "mi200": ("gfx90a",)}, default="mi200"
    )
    chosen = select_targets(["gfx90a", "gfx942", "gfx1100"], section, TABLE)
    assert chosen.families == {"instinct": ("gfx90a", "gfx942")}
    assert chosen.default == "mi200"
    circle = Targets(groups={"a": ("b",), "b": ("a", "gfx90a")})
    assert members("a", ["gfx90a"], TABLE, circle.groups) == ("gfx90a",)


def test_what_was_not_built_can_be_no_default_and_no_wish() -> None:
    with pytest.raises(UsageError) as caught:
        select_targets(["gfx90a"], Targets(default="gfx1100"), TABLE, families=["gfx12", "gfx9"])
    assert [problem.key for problem in caught.value.problems] == ["gfx12", "gfx1100"]
    assert select_targets([], Targets(default="gfx1100"), TABLE).default == ""  # an SDK without GPU code


def test_no_packages_for_families_where_the_manifest_wants_none() -> None:
    assert not select_targets(DEBIAN, Targets(families=False), TABLE).families


def test_nvidias_are_grouped_by_major_number() -> None:
    chosen = select_targets(["sm_80", "sm_86", "sm_90", "sm_90a", "sm_120"], NVIDIA, TABLE)
    assert chosen.targets == ("sm_80", "sm_86", "sm_90", "sm_120")
    assert chosen.families == {"sm_8x": ("sm_80", "sm_86")}
    assert chosen.hierarchy["sm_120"] == ("sm_12x",)


names = st.sampled_from(ALL) | st.builds(lambda a, b: f"gfx{a}{b:x}0", st.integers(13, 20), st.integers(0, 15))


@given(st.lists(names, max_size=12))
def test_every_target_has_a_package_and_no_family_is_built_twice(built: list[str]) -> None:
    chosen = select_targets(built, AMD, TABLE)
    assert set(chosen.targets) == set(built)
    sets = list(chosen.families.values())
    assert len(set(sets)) == len(sets)
    assert all(len(inner) > 1 and set(inner) <= set(built) for inner in sets)
    assert all(inner and set(inner) <= set(built) for inner in chosen.choices.values())
    assert chosen == select_targets(list(reversed(built)), AMD, TABLE)
    assert not built or chosen.default in chosen.choices


def test_a_damaged_table_is_told() -> None:
    row = '[[target]]\nname = "gfx90a"\nnumber = [9, 0, {}]\nkind = "discrete"\n'
    with pytest.raises(IntegrityError, match="is listed twice"):
        decode_targets((row.format(10) * 2).encode(), file="x")
    with pytest.raises(IntegrityError, match="does not match the target"):
        decode_targets(row.format(9).encode(), file="x")
    with pytest.raises(IntegrityError, match="the file is not a valid table of targets"):
        decode_targets(b"target = 1", file="x")
