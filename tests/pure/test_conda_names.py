"""Build strings and what a wheel requires, in conda's words."""

import pytest

from axletree.core.errors import IntegrityError
from axletree.package.conda.names import parse_conda_name, pin_exact, python_tag
from axletree.package.conda.requires import (
    CondaTarget,
    conda_name,
    convert_requires,
    convert_specifiers,
    parse_names,
    platform_depends,
    python_depends,
)
from axletree.package.wheel.metadata import create_metadata
from axletree.recipe.conda import build_hash
from support.conda import demo

LINUX = CondaTarget(subdir="linux-64", python="3.11")
ANY = CondaTarget(subdir="noarch")


def test_the_hash_is_conda_builds() -> None:
    # Every noarch package of conda-forge without variants is called ..._pyhd8ed1ab_0 or hd8ed1ab_0.
    assert build_hash({"channel_targets": "conda-forge main"}) == "hd8ed1ab"


def test_the_order_of_a_variant_does_not_matter() -> None:
    assert build_hash({"a": "1", "b": "2"}) == build_hash({"b": "2", "a": "1"})


def test_build_strings_and_pins() -> None:
    build = "cuda129_mkl_py311_hd8ed1ab_300"
    assert pin_exact(demo(build=build, build_number=300)) == f"demo 1.0 {build}"
    assert python_tag("3.11") == "py311"
    assert python_tag("3.13t") == "py313t"


@pytest.mark.parametrize("extension", ["conda", "tar.bz2"])
def test_file_names(extension: str) -> None:
    assert parse_conda_name(f"a-b-c-1.0-h_0.{extension}") == ("a-b-c", "1.0", "h_0")


@pytest.mark.parametrize("name", ["a-1.0.conda", "a-1.0-h_0.zip", "a-1.0-h_0", ".conda"])
def test_what_is_no_file_name(name: str) -> None:
    with pytest.raises(IntegrityError, match="the file name is not valid for a conda package"):
        parse_conda_name(name)


@pytest.mark.parametrize(
    ("specifiers", "expected"),
    [
        ("", ""),
        ("<2,>=1", ">=1,<2"),
        ("~=1.4.2", ">=1.4.2,1.4.*"),
        ("~=1.4", ">=1.4,1.*"),
        ("~=1!2.2.1", ">=1!2.2.1,1!2.2.*"),
        ("==1.2.*", "1.2.*"),
        ("==2.0", "==2.0"),
        ("===2.0+cpu", "==2.0+cpu"),
        ("!=1.3.*,!=1.5,>=1.2", ">=1.2,!=1.3.*,!=1.5"),
    ],
)
def test_versions(specifiers: str, expected: str) -> None:
    assert convert_specifiers(specifiers) == expected


def test_markers_are_decided_for_the_target() -> None:
    metadata = create_metadata(
        name="demo",
        version="1.0",
        requires=[
            "filelock",
            "numpy>=1.21; python_version >= '3.10'",
            "tomli; python_version < '3.11'",
            "colorama; sys_platform == 'win32'",
            "triton==3.7.1; platform_system == 'Linux' and platform_machine == 'x86_64'",
            "optree>=0.13; extra == 'optree'",
            "pyyaml; extra == 'yaml'",
            "filelock>=3; extra == 'lock'",
        ],
    )
    found = convert_requires(metadata, LINUX)
    assert found.depends == ("filelock", "numpy >=1.21", "triton ==3.7.1")
    assert found.constrains == ("optree >=0.13",)  # a bound where there is one, and none on what is required anyway
    assert "numpy" in found.guessed


def test_names_come_from_the_table() -> None:
    names = {
        "torch": ("pytorch",),
        "cuda-toolkit[cublas]": ("libcublas >=13,<14",),
        "cuda-toolkit[nvrtc]": ("cuda-nvrtc",),
        "nvidia-nvtx": (),
    }
    requires = ["Torch==2.14.1", "cuda-toolkit[cublas,nvrtc]==13.0.3", "nvidia_nvtx>=1"]
    found = convert_requires(create_metadata(name="demo", version="1.0", requires=requires), LINUX, names)
    assert found.depends == ("pytorch ==2.14.1", "libcublas >=13,<14", "cuda-nvrtc ==13.0.3")
    assert found.guessed == ()


def test_versions_of_libraries_come_from_the_pin() -> None:
    names = {"nvidia-nccl": ("nccl >={version},<{next}",), "cuda-toolkit": ("cuda-version >={major}.{minor},<{next}",)}
    names |= {"cuda-toolkit[cublas]": ("libcublas *",)}
    requires = ["nvidia-nccl-cu13==2.30.7", "cuda-toolkit[cublas]==13.0.3", "other-cu13==1"]
    found = convert_requires(create_metadata(name="demo", version="1.0", requires=requires), LINUX, names)
    assert found.depends == ("nccl >=2.30.7,<3", "libcublas", "cuda-version >=13.0,<14", "other-cu13 ==1")
    assert found.guessed == ("other-cu13",)
    unpinned = create_metadata(name="demo", version="1.0", requires=["nvidia-nccl-cu12>=2"])
    assert convert_requires(unpinned, LINUX, names).depends == ("nccl",)


def test_a_table_is_read_or_refused() -> None:
    names = parse_names(b'same = ["numpy"]\n[names]\ntorch = ["pytorch"]\nmany = ["a", "b"]\n', file="names.toml")
    assert [conda_name(name, names) for name in ("numpy", "torch", "many", "other")] == [
        "numpy", "pytorch", "many", "other"
    ]  # fmt: skip
    for wrong in (b"same = 3", b"\xff", b"names = []", b"same = []\nmore = 1\n[names]"):
        with pytest.raises(IntegrityError, match="the file is not a valid table of names"):
            parse_names(wrong, file="names.toml")


def test_what_can_not_be_said_is_listed() -> None:
    metadata = create_metadata(
        name="demo",
        version="1.0",
        requires=["a @ https://example.org/a.whl", "b; python_version > '3.9'", "c; os_name == 'nt'"],
    )
    with pytest.raises(IntegrityError) as caught:
        convert_requires(metadata, ANY)
    assert len(caught.value.problems) == 3
    assert "marker depends on python_version, but the package is for any Python" in str(caught.value)


def test_python_itself() -> None:
    metadata = create_metadata(name="demo", version="1.0", requires_python=">=3.10")
    assert python_depends(metadata, ANY) == ("python >=3.10",)
    assert python_depends(metadata, LINUX) == ("python >=3.11,<3.12.0a0", "python_abi 3.11.* *_cp311")
    free = CondaTarget(subdir="linux-64", python="3.13t")
    assert python_depends(metadata, free)[1] == "python_abi 3.13.* *_cp313t"


@pytest.mark.parametrize(
    ("platforms", "subdir", "expected"),
    [
        (["manylinux_2_28_x86_64"], "linux-64", ("__glibc >=2.28,<3.0.a0",)),
        (
            ["manylinux_2_28_x86_64", "manylinux_2_17_x86_64", "manylinux2014_x86_64"],
            "linux-64",
            ("__glibc >=2.17,<3.0.a0",),
        ),
        (["manylinux_2_28_aarch64"], "linux-aarch64", ("__glibc >=2.28,<3.0.a0",)),
        (["linux_x86_64"], "linux-64", ()),
        (["macosx_11_0_arm64"], "osx-arm64", ("__osx >=11.0",)),
        (["macosx_10_9_universal2"], "osx-64", ("__osx >=10.9",)),
        (["any"], "linux-64", ()),
    ],
)
def test_platform_tags(platforms: list[str], subdir: str, expected: tuple[str, ...]) -> None:
    assert platform_depends(platforms, subdir) == expected


@pytest.mark.parametrize(
    ("platform", "subdir"),
    [
        ("musllinux_1_2_x86_64", "linux-64"),
        ("manylinux_2_28_aarch64", "linux-64"),
        ("macosx_11_0_arm64", "linux-64"),
        ("win_amd64", "linux-64"),
    ],
)
def test_another_system_is_refused(platform: str, subdir: str) -> None:
    with pytest.raises(IntegrityError, match=f"cannot be converted to a conda package for {subdir}"):
        platform_depends([platform], subdir)
