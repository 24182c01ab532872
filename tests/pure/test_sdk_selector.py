"""The selector's extras and flavours, and what must hold of a release before it is published."""

from __future__ import annotations

import gzip
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from axletree.core.errors import IntegrityError, PublishError, UsageError
from axletree.package.gzip_stored import gzip_stored
from axletree.package.sdk.release import check_flavour, check_pins, distributions_of, order_notes
from axletree.package.sdk.selector import default_packages
from axletree.package.sdk.upload import for_folder, gpu_folders, placed_packages, upload_folder
from axletree.package.wheel.metadata import Metadata, create_metadata
from axletree_runtime._extras import extras_of
from support.small_sdk import sdk_file

if TYPE_CHECKING:
    from axletree.package.sdk.release import Flavour


@given(st.binary(max_size=1000), st.integers(0, 200_000))
def test_stored_gzip_reads_back(data: bytes, zeros: int) -> None:
    assert gzip.decompress(gzip_stored(data + bytes(zeros))) == data + bytes(zeros)


def test_no_date_and_no_system_is_in_it() -> None:
    assert gzip_stored(b"") == bytes.fromhex("1f8b08000000000000ff010000ffff0000000000000000")


def test_extras_are_normalised_and_name_what_exists() -> None:
    sdk = sdk_file()
    extras = extras_of(sdk.packages, default_packages(sdk, family="gfx94x"))
    known = {each.dist for each in sdk.packages}
    assert {dist for dists in extras.values() for dist in dists} <= known
    assert list(extras) == sorted(extras)
    assert all(extra == extra.lower() and "_" not in extra and "." not in extra for extra in extras)
    assert "rocm-sdk-libraries-gfx94x" in extras["libraries"]
    assert extras["device"] == ("rocm-sdk-libraries-gfx94x",)
    assert set(extras["device-all"]) == {"rocm-sdk-device-gfx942", "rocm-sdk-device-gfx1100"}


def test_a_default_without_a_package_of_its_own_is_served_all_the_same() -> None:
    families = {
        "gfx94x": ("gfx941", "gfx942"),
        "gfx942": ("gfx942",),
        "gfx941": ("gfx941",),
        "all": ("gfx941", "gfx1100"),
    }
    sdk = sdk_file(families=families)
    assert default_packages(sdk, family="gfx942") == {"rocm-sdk-device-gfx942"}
    assert default_packages(sdk, family="gfx941") == {"rocm-sdk-libraries-gfx94x"}  # the smallest that has it
    assert default_packages(sdk, family="all") == {"rocm-sdk-libraries-gfx94x", "rocm-sdk-device-gfx1100"}
    assert default_packages(sdk, family="") == frozenset()


def wheel(name: str, *requires: str, version: str = "1.0") -> Metadata:
    return create_metadata(name=name, version=version, requires=requires)


def test_pins_must_be_met() -> None:
    release = [wheel("a", "b==1.0", "C_d==1.0 ; extra == 'x'", "elsewhere>=3"), wheel("b")]
    check_pins(release, {"c-d": {"1"}})  # 1 and 1.0 are one version
    with pytest.raises(IntegrityError) as caught:
        check_pins([*release, wheel("e", "b==2.0")], {"c-d": {"1.1"}})
    assert [(problem.key, problem.message) for problem in caught.value.problems] == [
        ("a 1.0", "the wheel requires C_d==1.0, but this release does not contain it"),
        ("e 1.0", "the wheel requires b==2.0, but this release does not contain it"),
    ]


@pytest.mark.parametrize("version", ["7.1.0.dev0+abc.1", "7.1.0rc2", "7.1.0a20261128"])
def test_pins_of_prereleases(version: str) -> None:
    check_pins([wheel("a", f"b=={version}"), wheel("b", version=version)], {})


def test_names_of_files() -> None:
    files = ["a_b-1.0-py3-none-any.whl", "a_b-1.1+l.2.tar.gz", "notes.txt", "broken.whl", "index.html"]
    assert distributions_of(files) == {"a-b": {"1.0", "1.1+l.2"}}


@pytest.mark.parametrize(
    ("flavour", "there", "clash"),
    [
        ("wheel", "rocm-7.1.tar.gz", True),
        ("wheel", "rocm-7.1.0.tar.gz", True),
        ("wheel", "rocm-7.2.tar.gz", False),
        ("wheel", "rocm-7.1.0-py3-none-any.whl", False),
        ("sdist", "rocm-7.1.0-py3-none-any.whl", True),
        ("sdist", "rocm_sdk_core-7.1.0-py3-none-any.whl", False),
        ("sdist", "rocm-7.1.0.tar.gz", False),
        ("sdist", "nonsense.whl", False),
    ],
)
def test_flavours_do_not_mix(flavour: Flavour, there: str, *, clash: bool) -> None:
    if not clash:
        check_flavour("rocm", "7.1.0", flavour, [there], root="dist")
        return
    with pytest.raises(PublishError, match=r"dist already contains the selector for 7\.1\.0 as a"):
        check_flavour("rocm", "7.1.0", flavour, [there], root="dist")


def test_versions_that_pip_orders_otherwise_are_noted() -> None:
    notes = list(order_notes({"torch": {"2.9.0+rocm7.10.0", "2.9.0+rocm10.1.0"}, "rocm": {"7.1", "7.10"}}))
    assert [note.partition(":")[0] for note in notes] == ["torch"]
    assert "2.9.0+rocm10.1.0" in notes[0]
    assert "compared as strings" in notes[0]


def test_folders_of_families() -> None:
    sdk = sdk_file()
    assert gpu_folders(sdk) == {"gfx110x": ("gfx1100", "gfx1101"), "gfx94x": ("gfx941", "gfx942")}
    places = placed_packages(sdk)
    assert places["rocm-sdk-device-gfx942"] == places["rocm-sdk-libraries-gfx94x"] == "gfx94x"
    assert places["rocm-sdk-core"] == places["rocm-sdk-devel"] == "generic"
    own = for_folder(sdk, "gfx110x")
    assert own.default_family == "gfx110x"
    assert not any("gfx94" in each.dist for each in own.packages)
    assert all(set(targets) <= {"gfx1100", "gfx1101"} for targets in own.families.values())


def test_where_a_run_lies() -> None:
    assert upload_folder("123", "linux", "gfx94X-dcgpu") == "123-linux/python/gfx94X-dcgpu"
    with pytest.raises(UsageError) as caught:
        upload_folder("..", "linux", "a/b")
    assert [problem.key for problem in caught.value.problems] == ["--run-id", "--artifact-group"]
