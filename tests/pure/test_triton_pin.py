"""The triton that a tree pins, for releases, nightlies and other GPU worlds."""

from __future__ import annotations

import pytest

from axletree.buildsystem.pytorch.triton import World, other_pins, pinned_triton
from axletree.core.errors import IntegrityError

COMMIT = "5f40dc89506d67ab8e7aa2b7c8cf1351f8b22f31"
OLDER = {
    "scripts/install_triton_wheel.sh": 'TRITON_VERSION="pytorch-triton==$(cat .ci/docker/triton_version.txt)"\n',
    ".ci/docker/triton_version.txt": "3.4.0\n",
    ".ci/docker/ci_commit_pins/triton.txt": f"{COMMIT}\n",
    ".ci/docker/ci_commit_pins/triton-xpu.txt": "ae324eeac8e102a2b40370e341460f3791353398\n",
}
NEWER = {
    **OLDER,
    "scripts/install_triton_wheel.sh": 'TRITON_VERSION="triton==$(cat .ci/docker/triton_version.txt)"\n',
    ".ci/docker/triton_xpu_version.txt": "3.7.0\n",
}


@pytest.mark.parametrize(
    ("files", "world", "release", "requirement"),
    [
        (OLDER, "cuda", True, "triton==3.4.0"),
        (OLDER, "cuda", False, "pytorch-triton==3.4.0+git5f40dc89"),
        (OLDER, "rocm", True, "pytorch-triton-rocm==3.4.0"),
        (OLDER, "xpu", False, "pytorch-triton-xpu==3.4.0+gitae324eea"),
        (NEWER, "cuda", False, "triton==3.4.0+git5f40dc89"),
        (NEWER, "rocm", True, "triton-rocm==3.4.0"),
        (NEWER, "xpu", True, "triton-xpu==3.7.0"),
    ],
)
def test_what_make_triton_installs(files: dict[str, str], world: World, *, release: bool, requirement: str) -> None:
    pin = pinned_triton(files, world=world, release=release)
    assert pin is not None
    assert pin.requirement == requirement
    assert pin.channel == ("test" if release else "nightly")


def test_a_tree_without_pins_says_nothing() -> None:
    assert pinned_triton({}, world="cuda", release=True) is None


def test_damaged_pins_are_told_all_at_once() -> None:
    files = {".ci/docker/triton_version.txt": "<html>", ".ci/docker/ci_commit_pins/triton.txt": "main"}
    with pytest.raises(IntegrityError) as caught:
        pinned_triton(files, world="cuda", release=False)
    assert [problem.file for problem in caught.value.problems] == list(files)


def test_packages_that_require_another() -> None:
    pin = pinned_triton(OLDER, world="cuda", release=True)
    assert pin is not None
    requires = {
        "good": ("triton==3.4.0; platform_system == 'Linux'", "triton~=3.4.0", "numpy"),
        "bad": ("triton==3.1.0",),
        "other": ("triton-windows==3.1.0",),
    }
    assert dict(other_pins(requires, pin)) == {"bad": "triton==3.1.0"}
