"""Wheel file names: taken apart, put together, refused."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from axletree.core.errors import IntegrityError
from axletree.package.wheel.names import WheelName, dist_info_folder, parse_wheel_name, render_wheel_name


def test_a_name_is_taken_apart() -> None:
    name = parse_wheel_name(
        "torch_scatter-2.1.2+torch.2.13.cpu-3x-cp311-cp311-manylinux_2_17_x86_64.manylinux2014_x86_64.whl"
    )
    assert name == WheelName(
        project="torch-scatter",
        version="2.1.2+torch.2.13.cpu",
        build="3x",
        python="cp311",
        abi="cp311",
        platform="manylinux_2_17_x86_64.manylinux2014_x86_64",
    )
    assert name.tags == ("cp311-cp311-manylinux2014_x86_64", "cp311-cp311-manylinux_2_17_x86_64")


def test_sets_of_tags_are_multiplied() -> None:
    assert parse_wheel_name("a-1-py2.py3-none-any.whl").tags == ("py2-none-any", "py3-none-any")


@pytest.mark.parametrize(
    "name",
    ["demo.whl", "demo-1.0.tar.gz", "demo-1.0-py3-none.whl", "demo-x-py3-none-any.whl", "demo-1-b1-py3-none-any.whl"],
)
def test_what_is_no_wheel_name(name: str) -> None:
    with pytest.raises(IntegrityError, match="the file name is not valid for a wheel"):
        parse_wheel_name(name)


@pytest.mark.parametrize(
    ("project", "version", "folder"),
    [
        ("torch-scatter", "2.1.2+torch.2.13.cpu", "torch_scatter-2.1.2+torch.2.13.cpu.dist-info"),
        ("Zope.Interface", "1.0.0-rc1", "zope_interface-1.0.0rc1.dist-info"),
        ("a--b__c", "1!2", "a_b_c-1!2.dist-info"),
    ],
)
def test_names_are_normalised(project: str, version: str, folder: str) -> None:
    assert dist_info_folder(project, version) == folder


@given(
    st.from_regex(r"[a-z][a-z0-9]{0,5}(-[a-z0-9]{1,5}){0,2}", fullmatch=True),
    st.from_regex(r"[0-9]{1,2}(\.[0-9]{1,2}){0,2}(\+[a-z][a-z0-9]{0,3}(\.[1-9]){0,2})?", fullmatch=True),
    st.sampled_from(["", "1", "7abc"]),
    st.sampled_from(["any", "linux_x86_64", "manylinux_2_17_x86_64.manylinux2014_x86_64"]),
)
def test_round_trip(project: str, version: str, build: str, platform: str) -> None:
    text = render_wheel_name(
        WheelName(project=project, version=version, build=build, python="py3", abi="none", platform=platform)
    )
    name = parse_wheel_name(text)
    assert name.project == project
    assert render_wheel_name(name) == text
