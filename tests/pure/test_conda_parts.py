"""Parts of a split wheel, and trees of files, as conda packages that hold together."""

from __future__ import annotations

import re

import pytest

from axletree.core.errors import IntegrityError
from axletree.package.conda.check import check_conda, check_siblings
from axletree.package.conda.model import CondaFile, CondaPackage, RunExports
from axletree.package.conda.platforms import conda_subdir
from axletree.package.conda.tree import conda_package_from_tree
from axletree.package.split.conda import CondaPart, plan_conda_parts, prove_conda_parts
from axletree.package.split.plan import SplitPart
from axletree.package.wheel.info import WheelInfo
from axletree.package.wheel.metadata import Metadata, create_metadata
from axletree.package.wheel.names import WheelName
from axletree.package.wheel.writer import Member
from support.conda import scanned, text

PLATFORM = "manylinux_2_28_x86_64"
NAMES = {"torch": ("pytorch",), "numpy": ("numpy",)}


@pytest.mark.parametrize(
    ("platform", "subdir"),
    [
        ("any", "noarch"),
        (PLATFORM, "linux-64"),
        ("manylinux2014_x86_64.manylinux_2_17_x86_64", "linux-64"),
        ("manylinux1_i686", "linux-32"),
        ("linux_aarch64", "linux-aarch64"),
        ("musllinux_1_2_ppc64le", "linux-ppc64le"),
        ("macosx_11_0_arm64", "osx-arm64"),
        ("macosx_10_15_x86_64", "osx-64"),
        ("win_amd64", "win-64"),
        ("win32", None),
        ("linux", None),
        ("plan9_x86_64", None),
        ("manylinux_2_28_riscv64", None),
        ("", None),
    ],
)
def test_platform_tags_are_folders_of_a_channel(platform: str, subdir: str | None) -> None:
    if subdir is not None:
        assert conda_subdir(platform) == subdir
        return
    with pytest.raises(IntegrityError, match="conda has no platform for"):
        conda_subdir(platform)


def part(
    project: str,
    *files: str,
    siblings: tuple[str, ...] = (),
    requires: tuple[str, ...] = (),
    tag: str = f"py3-none-{PLATFORM}",
    version: str = "2.6.0",
    identity: str = "id",
) -> SplitPart:
    python, abi, platform = tag.split("-")
    return SplitPart(
        name=WheelName(project=project, version=version, python=python, abi=abi, platform=platform),
        metadata=create_metadata(
            name=project, version=version, requires=[*siblings, *requires], license="BSD-3-Clause"
        ),
        wheel_info=WheelInfo(tags=(tag,), purelib=platform == "any"),
        members=tuple(Member(path=path, data=path.encode()) for path in files),
        siblings=siblings,
        independent=abi == "none",
        identity=identity,
    )


LIB = part("libtorch", "libtorch/lib/libtorch_cpu.so")
GPU = part("libtorch-gpu", "libtorch/gpu/libtorch_cuda.so.12.6", siblings=("libtorch",))
TORCH = part(
    "torch",
    "torch/__init__.py",
    "torch/_C.cpython-311-x86_64-linux-gnu.so",
    siblings=("libtorch", "libtorch-gpu"),
    requires=("numpy>=1.21", "somewhat-odd"),
    tag=f"cp311-cp311-{PLATFORM}",
)
HEADERS = part("torch-headers", "torch/include/torch.h")


def planned(*parts: SplitPart, platform: str = PLATFORM) -> dict[str, CondaPart]:
    return {each.package.name: each for each in plan_conda_parts(parts, platform=platform, names=NAMES)}


def test_parts_pin_what_they_require_and_hold_what_requires_them() -> None:
    made = planned(TORCH, GPU, LIB, HEADERS)
    assert list(made) == ["libtorch", "libtorch-gpu", "pytorch", "torch-headers"]  # each after what it requires
    lib, gpu, torch = (made[name].package for name in ("libtorch", "libtorch-gpu", "pytorch"))
    assert f"libtorch 2.6.0 {lib.build}" in gpu.depends
    assert {f"libtorch 2.6.0 {lib.build}", f"libtorch-gpu 2.6.0 {gpu.build}"} <= set(torch.depends)
    assert lib.constrains == ("libtorch-gpu ==2.6.0", "pytorch ==2.6.0")
    assert gpu.constrains == ("pytorch ==2.6.0",)
    assert torch.constrains == ()
    assert torch.hash_input == {"content": "id", "libtorch": lib.build, "libtorch-gpu": gpu.build}
    assert (made["pytorch"].python, made["libtorch"].python) == ("3.11", None)
    assert (torch.noarch, lib.noarch) == (None, "python")
    assert {made[name].package.subdir for name in made} == {"linux-64"}
    assert made["pytorch"].guessed == ("somewhat-odd",)
    assert made["torch-headers"].guessed == ()


def test_what_has_libraries_exports_itself_and_what_it_requires() -> None:
    made = planned(LIB, GPU, TORCH, HEADERS)
    lib, gpu = "libtorch >=2.6.0,<2.7.0a0", "libtorch-gpu >=2.6.0,<2.7.0a0"
    assert made["libtorch"].package.run_exports == RunExports(weak=(lib,))
    assert made["libtorch-gpu"].package.run_exports == RunExports(weak=(lib, gpu))
    assert made["pytorch"].package.run_exports == RunExports(weak=(lib, gpu))  # an extension module is no library
    assert made["torch-headers"].package.run_exports is None
    epoch = planned(part("libx", "lib/libx.dylib", version="1!2.9.1"))["libx"].package
    assert epoch.run_exports == RunExports(weak=("libx >=1!2.9.1,<1!2.10.0a0",))


@pytest.mark.parametrize(
    ("tag", "python"),
    [
        ("cp311-cp311", "3.11"),
        ("cp313-cp313t", "3.13t"),
        ("cp39-abi3", None),
        ("py3-none", None),
    ],
)
def test_the_python_that_a_part_is_for(tag: str, python: str | None) -> None:
    (made,) = plan_conda_parts([part("x", "x/a.py", tag=f"{tag}-{PLATFORM}")], platform=PLATFORM, names={})
    assert made.python == python


def test_another_content_gives_another_build_of_all_that_require_it() -> None:
    before = planned(LIB, GPU, HEADERS)
    changed = part("libtorch", "libtorch/lib/libtorch_cpu.so", identity="other")
    after = planned(changed, GPU, HEADERS)
    differ = {name for name in before if before[name].package.build != after[name].package.build}
    assert differ == {"libtorch", "libtorch-gpu"}


def test_parts_that_require_each_other_get_what_can_be_pinned() -> None:
    one, two = part("a", "a/x", siblings=("b",)), part("b", "b/x", siblings=("a",))
    made = planned(one, two)
    assert list(made) == ["a", "b"]
    assert f"a 2.6.0 {made['a'].package.build}" in made["b"].package.depends


def test_a_part_for_another_machine_is_refused() -> None:
    with pytest.raises(IntegrityError, match="cannot be converted to a conda package for linux-aarch64"):
        planned(LIB, platform="manylinux_2_28_aarch64")
    with pytest.raises(IntegrityError, match="conda has no platform for"):
        planned(LIB, platform="plan9_x86_64")


def test_packages_as_planned_hold_together_and_others_do_not() -> None:
    made = planned(LIB, GPU, TORCH, HEADERS)
    facts = [scanned(each.package, each.files) for each in made.values()]
    prove_conda_parts(facts)
    assert all(check_conda(each) == () for each in facts)
    other = planned(part("libtorch", "libtorch/lib/libtorch_cpu.so", "torch/__init__.py", identity="other"))["libtorch"]
    with pytest.raises(IntegrityError) as error:
        prove_conda_parts([scanned(other.package, other.files), *facts[1:]])
    said = str(error.value)
    assert f"depends on libtorch 2.6.0 {made['libtorch'].package.build} instead of exactly" in said
    assert re.search(r"site-packages/torch/__init__\.py: another package contains the same file: ", said)


METADATA = create_metadata(
    name="libdemo",
    version="1.0-RC1",
    requires=["numpy>=1.21", 'six>1; extra == "all"'],
    summary="A demo",
    license="MIT",
)
FILES = [
    text("lib/libdemo.so", b"\x7fELF"),
    text("LICENSE.txt", b"free", executable=True),
    text("NOTICE"),
    text("share/doc/LICENSE"),
    CondaFile(path="COPYING", link="LICENSE.txt"),
]


def from_tree(metadata: Metadata = METADATA, **options: object) -> tuple[CondaPackage, tuple[CondaFile, ...]]:
    given: dict[str, object] = {
        "platform": PLATFORM,
        "subdir": "linux-64",
        "python": None,
        "name": "libdemo",
        "build": "h1_2",
    }
    given |= {"build": "h1_2", "build_number": 2, "variant": {"gpu": "cpu"}, "names": NAMES, **options}
    return conda_package_from_tree(FILES, metadata, **given)  # type: ignore[arg-type]


def test_a_tree_keeps_its_paths_and_its_licences_move() -> None:
    package, files = from_tree()
    assert [file.path for file in files] == ["lib/libdemo.so", "share/doc/LICENSE", "COPYING"]
    assert [(file.path, file.data, file.executable) for file in package.info] == [
        ("licenses/LICENSE.txt", b"free", False),
        ("licenses/NOTICE", b"content\n", False),
    ]
    assert (package.stem, package.build_number, package.noarch) == ("libdemo-1.0rc1-h1_2", 2, None)
    assert package.depends == ("__glibc >=2.28,<3.0.a0", "numpy >=1.21")
    assert package.constrains == ("six >1",)
    assert (package.hash_input, package.about.summary, package.about.license) == ({"gpu": "cpu"}, "A demo", "MIT")
    facts = scanned(package, [file for file in files if file.link is None])
    assert check_conda(facts) == ()


def test_what_is_given_takes_the_place_of_what_metadata_says() -> None:
    exports = RunExports(weak=("libdemo >=1",))
    package, _ = from_tree(depends=["numpy 2.0 h_0", "__cuda"], constrains=["other <1"], run_exports=exports)
    assert package.depends == ("__cuda", "__glibc >=2.28,<3.0.a0", "numpy 2.0 h_0")
    assert package.constrains == ("other <1", "six >1")
    assert package.run_exports == exports


def test_a_tree_for_one_python_and_one_for_any_machine() -> None:
    package, _ = from_tree(python="3.13t")
    assert {"python >=3.13,<3.14.0a0", "python_abi 3.13.* *_cp313t"} <= set(package.depends)
    package, _ = from_tree(platform="any", subdir="noarch")
    assert (package.noarch, package.depends) == ("generic", ("numpy >=1.21",))


def test_a_tree_that_can_not_be_a_package_is_refused() -> None:
    with pytest.raises(IntegrityError, match="cannot be converted to a conda package for linux-aarch64"):
        from_tree(subdir="linux-aarch64")
    with pytest.raises(IntegrityError, match="it is a URL requirement"):
        from_tree(create_metadata(name="x", version="1", requires=["y @ https://example.org/y.whl"]))
    assert check_siblings([scanned(*from_tree())]) == ()
