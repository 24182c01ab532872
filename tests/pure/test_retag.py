"""New names for wheels: tags, build tags, local labels."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from axletree.core.errors import IntegrityError, UsageError
from axletree.package.wheel.info import WheelInfo, parse_wheel_info, render_wheel_info
from axletree.package.wheel.names import parse_wheel_name, render_wheel_name
from axletree.package.wheel.repack import renamed_members
from axletree.package.wheel.retag import Wishes, change_info, change_metadata, change_name, name_of
from axletree.package.wheel.writer import Member
from support.wheels import demo_metadata

NAME = parse_wheel_name("demo-1.0-cp310-abi3-manylinux_2_17_x86_64.manylinux2014_x86_64.whl")


@pytest.mark.parametrize(
    ("wishes", "filename"),
    [
        (Wishes(python="cp311"), "demo-1.0-cp311-abi3-manylinux_2_17_x86_64.manylinux2014_x86_64.whl"),
        (Wishes(python="+cp39"), "demo-1.0-cp310.cp39-abi3-manylinux_2_17_x86_64.manylinux2014_x86_64.whl"),
        (Wishes(python="=PY3.py2"), "demo-1.0-py2.py3-abi3-manylinux_2_17_x86_64.manylinux2014_x86_64.whl"),
        (Wishes(platform="-manylinux2014_x86_64"), "demo-1.0-cp310-abi3-manylinux_2_17_x86_64.whl"),
        (Wishes(platform="linux_x86_64", build="2"), "demo-1.0-2-cp310-abi3-linux_x86_64.whl"),
        (Wishes(abi="none", platform="any", local="cu130"), "demo-1.0+cu130-cp310-none-any.whl"),
        (Wishes(platform="any", local="Torch-2.14"), "demo-1.0+torch.2.14-cp310-abi3-any.whl"),
    ],
)
def test_names(wishes: Wishes, filename: str) -> None:
    assert render_wheel_name(change_name(NAME, wishes)) == filename


def test_what_there_is_can_be_removed() -> None:
    name = change_name(NAME, Wishes(build="3", local="a"))
    assert change_name(name, Wishes(build="", local="")) == NAME


def test_all_impossible_wishes_are_named() -> None:
    wishes = Wishes(python="cp 311", abi="-none", platform="-" + NAME.platform, build="x", local="a b")
    with pytest.raises(UsageError) as error:
        change_name(NAME, wishes)
    assert [problem.key for problem in error.value.problems] == [
        "--python",
        "--abi",
        "--platform",
        "--build",
        "--local",
    ]
    assert "cannot remove none: the existing tags are abi3" in str(error.value)
    assert "would leave no tags" in str(error.value)


@pytest.mark.parametrize("text", ["", "+", "cp311..cp312", "cp-311", "é"])
def test_no_tags(text: str) -> None:
    with pytest.raises(UsageError, match="is not a valid tag"):
        change_name(NAME, Wishes(abi=text))


def test_info_and_metadata_follow_the_name() -> None:
    info = WheelInfo(tags=("cp310-abi3-manylinux_2_17_x86_64", "cp310-abi3-manylinux2014_x86_64"), purelib=False)
    name = change_name(NAME, Wishes(build="2", local="cu130"))
    assert change_info(info, NAME, name) == replace(info, build="2")  # the same tags, in the order of the file
    name = change_name(NAME, Wishes(python="cp310.cp311", platform="any"))
    assert change_info(info, NAME, name).tags == ("cp310-abi3-any", "cp311-abi3-any")
    assert change_metadata(demo_metadata(), NAME, name) == demo_metadata()
    local = change_name(NAME, Wishes(local="cu130"))
    assert change_metadata(demo_metadata(), NAME, local).version == "1.0+cu130"


def test_the_name_that_metadata_and_wheel_ask_for() -> None:
    info = WheelInfo(tags=("py2.py3-none-any", "cp311-none-linux_x86_64"), purelib=True, build="1")
    name = name_of(demo_metadata(), info, file="WHEEL")
    assert render_wheel_name(name) == "demo-1.0-1-cp311.py2.py3-none-any.linux_x86_64.whl"


def test_a_wheel_file_that_names_no_wheel() -> None:
    info = WheelInfo(tags=("py3-none", "py3-none-a ny"), purelib=True, build="one")
    with pytest.raises(IntegrityError) as error:
        name_of(demo_metadata(), info, file="WHEEL")
    assert [problem.key for problem in error.value.problems] == ["Tag", "Tag", "Build"]


def test_unknown_fields_of_a_wheel_file_are_kept() -> None:
    text = b"Wheel-Version: 1.0\nGenerator: other 2\nRoot-Is-Purelib: true\nTag: py3-none-any\nBuilt-By: somebody\n"
    assert render_wheel_info(parse_wheel_info(text)) == text


def test_folders_are_renamed_whatever_the_old_spelling() -> None:
    old = (
        "demo_x/a.py",
        "Demo.X-1.0.data/scripts/tool",
        "demo_x-1.0.dist-info/licenses/LICENSE",
        "demo_x-1.0.dist-info/RECORD.jws",
        "demo_x-1.0.dist-info/INSTALLER",
        "other-1.0.data/x",
    )
    members = [Member(path=path, data=b"") for path in old]
    moved = renamed_members(members, source="demo_x-1.0.dist-info", target="demo_x-1.0+cu130.dist-info")
    assert [member.path for member in moved] == [
        "demo_x/a.py",
        "demo_x-1.0+cu130.data/scripts/tool",
        "demo_x-1.0+cu130.dist-info/licenses/LICENSE",
        "other-1.0.data/x",
    ]
