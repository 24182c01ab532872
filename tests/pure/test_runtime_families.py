"""Which package serves which GPUs, whatever the order in which they are given."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from axletree_runtime._detect import Detection, Gpu
from axletree_runtime._families import Wanted, choose, find_family, find_target_family, find_wanted, serves
from axletree_runtime._host import Host
from axletree_runtime._sdk import Sdk, SdkFile, SdkPackage
from axletree_runtime._select import select

FAMILIES = {
    "gfx94X-dcgpu": ("gfx940", "gfx942"),
    "gfx120X-all": ("gfx1200", "gfx1201"),
    "gfx103X-dgpu": ("gfx1030", "gfx1036"),
    "gfx942": ("gfx942",),
}
PACKAGES = tuple(
    SdkPackage("libraries", "device", f"sdk-{name}", f"_sdk_{name}", extra=name, targets=targets)
    for name, targets in FAMILIES.items()
)
SDK = SdkFile(
    "rocm",
    "rocm",
    "rocm_sdk",
    "rocm-sdk",
    "ROCM_SDK",
    "7.1.0",
    PACKAGES,
    families=FAMILIES,
    default_family="gfx94X-dcgpu",
)


def found(*targets: str) -> Detection:
    return Detection(tuple(Gpu(each, "test") for each in targets))


@pytest.mark.parametrize(
    ("code", "gpu", "expected"),
    [
        ("gfx942", "gfx942:xnack-", True),
        ("gfx90a:xnack+", "gfx90a", True),
        ("gfx942", "gfx940", False),
        ("gfx11-generic", "gfx1151", True),
        ("gfx9-4-generic", "gfx942", True),
        ("gfx9-generic", "gfx942", False),
        ("sm_80", "sm_86", True),
        ("sm_86", "sm_80", False),
        ("sm_80", "sm_90", False),
        ("sm_90a", "sm_90", True),
        ("sm_100a", "sm_103", False),
        ("sm_100f", "sm_103", True),
        ("compute_80", "sm_120", True),
        ("compute_90", "sm_89", False),
    ],
)
def test_what_runs_where(code: str, gpu: str, *, expected: bool) -> None:
    assert serves(code, gpu) is expected


@pytest.mark.parametrize(
    ("name", "family"),
    [
        ("gfx94X-dcgpu", "gfx94X-dcgpu"),
        ("GFX94x_DCGPU", "gfx94X-dcgpu"),
        ("gfx942:xnack+", "gfx942"),
        ("gfx940", "gfx94X-dcgpu"),  # a target without a package of its own
    ],
)
def test_names_of_families(name: str, family: str) -> None:
    assert find_family(SDK, name, "--for") == family


def test_fault_h_an_unknown_family_is_an_error_with_the_choices() -> None:
    host = Host(environ={"ROCM_SDK_TARGET_FAMILY": "doesnotexist"})
    choices = "gfx103X-dgpu, gfx120X-all, gfx942, gfx94X-dcgpu"
    with pytest.raises(ValueError, match=f"ROCM_SDK_TARGET_FAMILY=doesnotexist is not one of {choices}"):
        find_wanted(SDK, host, detection=found())
    with pytest.raises(ValueError, match=r"did you mean gfx94X-dcgpu\?"):
        find_family(SDK, "gfx94x-dcgp", "--for")


def test_the_environment_goes_before_what_is_found_and_that_before_the_default() -> None:
    named = find_wanted(SDK, Host(environ={"ROCM_SDK_TARGET_FAMILY": "gfx120X-all"}), detection=found("gfx942"))
    assert (named.by, named.targets, find_target_family(SDK, named)[0]) == (
        "environment",
        ("gfx1200", "gfx1201"),
        "gfx120X-all",
    )
    seen = find_wanted(SDK, Host(environ={}), detection=found("gfx1201"))
    assert (seen.by, find_target_family(SDK, seen)) == (
        "detection",
        ("gfx120X-all", "the smallest family that has code for gfx1201"),
    )
    nothing = find_wanted(SDK, Host(environ={}), detection=found())
    assert (nothing.by, find_target_family(SDK, nothing)) == (
        "default",
        ("gfx94X-dcgpu", "the default because no GPU was found"),
    )


def test_a_named_family_is_narrowed_to_the_gpus_that_are_there() -> None:
    wanted = find_wanted(SDK, Host(environ={"ROCM_SDK_TARGET_FAMILY": "gfx94X-dcgpu"}), detection=found("gfx942"))
    assert wanted.targets == ("gfx942",)
    assert choose(SDK, PACKAGES, wanted).package is PACKAGES[0]  # though the one for gfx942 alone is smaller


def test_of_packages_that_serve_all_gpus_the_smallest_is_taken() -> None:
    assert choose(SDK, PACKAGES, Wanted(("gfx942",))).package is PACKAGES[3]
    assert choose(SDK, PACKAGES, Wanted(("gfx942", "gfx940"))).package is PACKAGES[0]


def test_where_no_package_serves_all_the_first_gpu_decides_and_the_others_are_named() -> None:
    choice = choose(SDK, PACKAGES, Wanted(("gfx1201", "gfx942")))
    assert (choice.package, choice.missing) == (PACKAGES[1], ("gfx942",))
    assert choice.reasons == ("sdk-gfx120X-all: has code for gfx1201, but not for gfx942",)


def test_a_gpu_that_nothing_serves_gets_the_default_and_is_told_so() -> None:
    choice = choose(SDK, PACKAGES, Wanted(("gfx1300",)))
    assert (choice.package, choice.missing) == (PACKAGES[0], ("gfx1300",))
    assert choice.reasons == (
        "sdk-gfx94X-dcgpu: the package for the default family, because no package has code for gfx1300",
    )
    family, why = find_target_family(SDK, Wanted(("gfx1300",)))
    assert (family, why) == ("gfx94X-dcgpu", "the default because this SDK has no code for gfx1300")


def test_of_names_for_the_same_targets_the_one_that_has_a_package_is_taken() -> None:
    package = SdkPackage(
        "libraries", "device", "sdk-b", "_sdk_b", extra="libraries-gfx9-0", targets=("gfx90a", "gfx900")
    )
    families = {"gfx9": package.targets, "gfx9_0": package.targets, "gfx9X-all": package.targets}
    known = SdkFile("rocm", "rocm", "rocm_sdk", "rocm-sdk", "ROCM_SDK", "7.1.0", (package,), families=families)
    assert find_target_family(known, Wanted(("gfx90a",)))[0] == "gfx9_0"


def test_without_gpu_code_there_is_no_family() -> None:
    plain = SdkFile("plain", "plain", "plain_sdk", "plain-sdk", "PLAIN", "1.0", ())
    assert find_target_family(plain, Wanted(("gfx942",)))[0] == ""
    assert choose(plain, (), Wanted(("gfx942",))).package is None


@given(st.permutations(PACKAGES), st.lists(st.sampled_from(["gfx942", "gfx940", "gfx1201", "gfx1300"]), max_size=3))
def test_fault_i_the_order_of_packages_never_decides(packages: list[SdkPackage], targets: list[str]) -> None:
    wanted = Wanted(tuple(dict.fromkeys(targets)))
    assert choose(SDK, packages, wanted) == choose(SDK, PACKAGES, wanted)


def test_a_choice_never_gives_a_served_gpu_away() -> None:
    targets = [target for members in FAMILIES.values() for target in members]
    for pair in itertools.permutations(dict.fromkeys(targets), 2):
        choice = choose(SDK, PACKAGES, Wanted(pair))
        assert choice.package is not None
        assert pair[0] in choice.package.targets


def test_a_selection_takes_as_few_packages_as_serve_all_gpus() -> None:
    members = {"gfx9_0": ("gfx900", "gfx906", "gfx90a"), "gfx900": ("gfx900",), "gfx942": ("gfx942",)}
    packages = tuple(
        SdkPackage("libraries", "device", f"sdk-{name}", f"_{name}", extra=f"device-{name}", targets=targets)
        for name, targets in members.items()
    )
    neutral = SdkPackage("libraries", "libraries", "sdk-libraries", "_libraries", extra="libraries")
    families = {**members, "gfx9": ("gfx900", "gfx906", "gfx90a", "gfx942")}
    known = SdkFile(
        "rocm", "rocm", "rocm_sdk", "rocm-sdk", "ROCM_SDK", "7.1.0", (neutral, *packages), families=families
    )
    selection = select(Sdk(known, Path("/nowhere")), ["libraries"], named=["gfx9"])
    assert selection.extras == ("device-gfx9_0", "device-gfx942")
    assert selection.dists == ("rocm", "sdk-gfx942", "sdk-gfx9_0", "sdk-libraries")
