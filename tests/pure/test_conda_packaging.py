"""A recipe's conda packages before anything is built: names, build strings, pins, what holds them together."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from axletree.core.errors import IntegrityError, PublishError
from axletree.core.trees import Entry
from axletree.core.values import StageId, digest_of
from axletree.package.checksums import merge_checksums, read_checksums, render_checksums
from axletree.package.conda.check import check_siblings
from axletree.package.conda.interpreter import interpreter_packages
from axletree.package.conda.local import local_names, local_table, without_absent
from axletree.package.conda.repodata import (
    ChannelFile,
    by_subdir,
    channel_file,
    index_files,
    merge_channel,
    read_repodata,
)
from axletree.package.conda.requires import CondaTarget, convert_requires
from axletree.package.cpp_archive import archive_name, lay_out, own_files
from axletree.package.wheel.metadata import create_metadata
from axletree.plan.actions.pack_conda import CondaParameters
from axletree.plan.actions.test import ClientTestParameters, WantedPackage
from axletree.recipe.conda import add_up, build_hash, build_tokens, minor_pin
from support.conda import demo, scanned, text
from support.targets import parameters_of, plan_of

if TYPE_CHECKING:
    from axletree.package.conda.model import CondaPackage
    from axletree.plan.graph import Plan

RECIPE = """\
name = "pytorch"
version = "2.6.0"
license = "BSD-3-Clause"
[source]
path = "src"
[axes]
python = ["3.11", "3.12"]
gpu = ["cpu", "cu126", "cu130"]
blas = ["mkl", "generic"]
[environments.bind]
[stages.libtorch]
action = "run"
axes = ["gpu", "blas"]
commands = ["make"]
[stages.bind]
action = "run"
axes = ["python", "gpu", "blas"]
environment = "bind"
inputs = ["libtorch"]
commands = ["make"]

[packages.libtorch]
from = "libtorch"
formats = ["conda"]
files = ["lib/**"]
[packages.libtorch.conda]
build = "{gpu}_{blas}_{hash}_{number}"
build-number = 2
run-exports = { weak = ["libtorch {pin}"] }

[packages.libtorch-linalg]
from = "libtorch"
formats = ["conda"]
files = ["linalg/**"]
when = { gpu = ["cu126", "cu130"] }

[packages.torch]
from = "bind"
formats = ["wheel", "conda"]
local = "{gpu}.{blas}"
requires = ["libtorch=={version}"]
[packages.torch.conda]
build-number = "2"
depends = ["filelock"]
run-exports = { weak = ["pytorch {pin}"], strong = ["tool"] }

[packages.pytorch-gpu]
formats = ["conda"]
when = { gpu = ["cu126", "cu130"] }
[packages.pytorch-gpu.conda]
depends = ["pytorch =={version} cu*"]

[packages.pytorch-cpu]
formats = ["conda"]
when = { gpu = "cpu" }
[packages.pytorch-cpu.conda]
depends = ["pytorch =={version} cpu*"]
track-features = ["pytorch-cpu"]

[[override]]
package = "torch"
when = { gpu = ["cu126", "cu130"] }
conda = { build-number = "202", depends = ["__cuda"] }
[[override]]
package = "libtorch"
when = { blas = "mkl" }
conda = { depends = ["libblas * *mkl"], constrains = ["libopenblas * openmp_*"] }
"""
NAMES = {"conda_names": {"torch": "pytorch"}}


def conda(plan: Plan, stage: str) -> CondaParameters:
    """Parameters of a package's stage: its conda form, and its pins."""
    return parameters_of(plan, stage, CondaParameters)


def test_build_strings_and_pins_are_known_before_anything_is_built() -> None:
    plan = plan_of(RECIPE, **NAMES)
    variant = {"gpu": "cu126", "blas": "mkl"}
    library = conda(plan, "pack-conda:libtorch[cu126-mkl]")
    assert library.conda.build == f"cu126_mkl_{build_hash(variant)}_2"
    assert library.conda.variant == variant
    torch = conda(plan, "pack-conda:torch[py311-cu126-mkl]")
    assert torch.called == "pytorch"
    assert torch.conda.build == f"cu126_mkl_py311_{build_hash({'python': '3.11', **variant})}_202"
    assert torch.conda.build_number == 202
    assert torch.pins == {
        "libtorch": f"libtorch 2.6.0 {library.conda.build}",
        "libtorch-linalg": f"libtorch-linalg 2.6.0 {conda(plan, 'pack-conda:libtorch-linalg[cu126-mkl]').conda.build}",
    }
    assert torch.conda.depends == ("filelock", "__cuda")
    assert library.conda.depends == ("libblas * *mkl",)
    assert library.conda.constrains == ("pytorch ==2.6.0", "libopenblas * openmp_*")
    generic = conda(plan, "pack-conda:libtorch[cu126-generic]")
    assert generic.conda.constrains == ("pytorch ==2.6.0",)


def test_run_exports_of_a_dependent_name_the_library_behind_it_too() -> None:
    torch = conda(plan_of(RECIPE, **NAMES), "pack-conda:torch[py311-cpu-mkl]")
    assert torch.conda.weak == ("pytorch >=2.6.0,<2.7.0a0", "libtorch >=2.6.0,<2.7.0a0")
    assert torch.conda.strong == ("tool",)


def test_a_metapackage_is_one_stage_for_all_variants_that_have_it() -> None:
    plan = plan_of(RECIPE, **NAMES)
    metas = {str(name): stage for name, stage in plan.stages.items() if name.startswith("pack-conda:pytorch-")}
    assert set(metas) == {"pack-conda:pytorch-gpu", "pack-conda:pytorch-cpu"}
    gpu, cpu = metas["pack-conda:pytorch-gpu"], metas["pack-conda:pytorch-cpu"]
    assert (len(gpu.variants), len(cpu.variants)) == (8, 4)
    assert gpu.needs == {}
    assert conda(plan, "pack-conda:pytorch-cpu").conda.track_features == ("pytorch-cpu",)
    assert conda(plan, "pack-conda:pytorch-gpu").conda.depends == ("pytorch ==2.6.0 cu*",)


def test_only_variants_that_have_a_package_make_and_list_it() -> None:
    plan = plan_of(RECIPE, **NAMES)
    assert {stage for stage in plan.stages if stage.startswith("pack-conda:libtorch-linalg")} == {
        f"pack-conda:libtorch-linalg[{gpu}-{blas}]" for gpu in ("cu126", "cu130") for blas in ("mkl", "generic")
    }
    cpu, gpu = (set(plan.stages[StageId(f"channel:.[py311-{gpu}-mkl]")].step.needs) for gpu in ("cpu", "cu126"))
    assert cpu ^ gpu == {
        f"{kind}:{name}" for kind in ("conda", "audit") for name in ("libtorch-linalg", "pytorch-gpu", "pytorch-cpu")
    }


def test_tests_see_the_release_of_the_gpu_and_take_packages_of_their_format() -> None:
    text_ = (
        RECIPE
        + '[environments.test]\naxes = ["python"]\n[tests.smoke]\npackages = ["libtorch", "torch", "pytorch-gpu"]\n'
    )
    plan = plan_of(text_ + 'installers = ["uv", "conda"]\nimports = ["torch"]\n', **NAMES)
    by_conda, by_uv, for_cpu = (
        f"test:smoke:{of}" for of in ("conda[py311-cu130-mkl]", "uv[py311-cu130-mkl]", "conda[py311-cpu-mkl]")
    )
    asked = parameters_of(plan, by_conda, ClientTestParameters)
    assert asked.virtual == {"__cuda": "13.0"}
    assert [package.name for package in asked.packages] == ["libtorch", "pytorch-gpu", "pytorch"]
    assert set(plan.stages[StageId(by_conda)].needs) == {"channel:0", "environment"}
    assert parameters_of(plan, by_uv, ClientTestParameters).packages == (
        WantedPackage(name="torch", version="2.6.0+cu130.mkl"),
    )
    assert set(plan.stages[StageId(by_uv)].needs) == {"index:0", "environment"}
    assert parameters_of(plan, for_cpu, ClientTestParameters).virtual == {}


def test_sums_tokens_and_pins() -> None:
    assert add_up("2 + 100+200") == 302
    for wrong in ("", "2 +", "two", "-1", "1.5", "1 000"):
        with pytest.raises(ValueError, match="not a valid build number"):
            add_up(wrong)
    assert build_tokens({"python": "py311", "platform": "linux", "gpu": "cu130", "magma": "nomagma", "os": "a-b"}) == (
        "cu130",
        "nomagma",
        "a_b",
        "py311",
    )
    assert [minor_pin(version) for version in ("2.6.0", "1!2.9.1", "2.6.0rc1")] == [
        ">=2.6.0,<2.7.0a0",
        ">=1!2.9.1,<1!2.10.0a0",
        ">=2.6.0rc1,<2.7.0a0",
    ]


def line(package: CondaPackage, content: bytes = b"x") -> ChannelFile:
    return channel_file(scanned(package, [text("lib/x", content)]), md5="0" * 32, sha256=digest_of(content))


def test_an_index_is_read_back_and_the_same_packages_give_the_same_bytes() -> None:
    files = [line(demo(build=f"h{n}_0", depends=("a >=1",), subdir="linux-64")) for n in range(3)]
    pages = index_files(files, subdir="linux-64")
    assert pages == index_files(reversed(files), subdir="linux-64")
    assert sorted(pages) == ["conda/linux-64/repodata.json", "conda/linux-64/repodata.json.zst"]
    again = read_repodata(pages["conda/linux-64/repodata.json"], subdir="linux-64")
    assert again == tuple(files)
    assert again[0].record["depends"] == ["a >=1"]
    with pytest.raises(IntegrityError, match="is the index for linux-64, not for noarch"):
        read_repodata(pages["conda/linux-64/repodata.json"], subdir="noarch")
    for damaged in (b"", b"{}", b"[]", b'{"info": {"subdir": 3}}', b"\xff"):
        with pytest.raises(IntegrityError, match="the file is not a valid conda channel index"):
            read_repodata(damaged, subdir="noarch")


def test_channels_merge_unless_a_package_would_change() -> None:
    one, two = line(demo()), line(demo(name="other", subdir="noarch", noarch="generic"))
    assert merge_channel([one], [two, one]) == (one, two)
    assert {subdir: len(files) for subdir, files in by_subdir([one]).items()} == {"linux-64": 1, "noarch": 0}
    with pytest.raises(PublishError, match="different content"):
        merge_channel([one], [line(demo(), b"y")])


def test_siblings_of_a_build_may_be_taken_by_pattern_where_asked() -> None:
    library = demo(name="lib", build="cpu_h1_0", constrains=("app ==1.0",))
    for spec, fits in [("lib ==1.0 cpu*", True), ("lib 1.0 cpu_h1_0", True), ("lib >=1", True), ("lib", True),
                       ("lib ==1.0 cuda*", False), ("lib ==1.1", False)]:  # fmt: skip
        facts = [scanned(library, [text("lib/l")]), scanned(demo(name="meta", depends=(spec,)), [])]
        assert (check_siblings(facts, exact=False) == ()) is fits, spec
    exact = [scanned(library, [text("lib/l")]), scanned(demo(name="meta", depends=("lib ==1.0 cpu*",)), [])]
    assert [issue.kind for issue in check_siblings(exact)] == ["pin"]


def test_wheels_of_an_environment_become_packages_among_themselves() -> None:
    names = {
        "torch": ("pytorch",),
        "nvidia-cublas": ("libcublas >={version},<{next}",),
        "cuda-toolkit": ("cuda-version >={major}.{minor},<{next}",),
        "cuda-toolkit[cublas]": ("libcublas *",),
        "opencv-python": ("py-opencv",),
        "opencv-python-headless": ("py-opencv",),
    }
    called = local_names(
        ["torch", "nvidia-cublas-cu12", "cuda-toolkit", "opencv-python", "opencv-python-headless", "six"], names
    )
    assert called == {
        "torch": "pytorch",
        "nvidia-cublas-cu12": "libcublas",
        "cuda-toolkit": "cuda-version",
        "opencv-python": "py-opencv",
        "opencv-python-headless": "opencv-python-headless",
        "six": "six",
    }
    metadata = create_metadata(
        name="x", version="1", requires=["nvidia-cublas-cu12==12.4.5.8", "cuda-toolkit[cublas]==13.0", "torch", "six>1"]
    )
    wanted = convert_requires(metadata, CondaTarget(subdir="linux-64", python="3.11"), local_table(called, names))
    assert wanted.depends == ("libcublas ==12.4.5.8", "cuda-version ==13.0", "pytorch", "six >1")


def test_dependencies_that_no_channel_has_are_dropped_and_told() -> None:
    ours = [line(demo(depends=("libblas * *mkl", "python >=3.11", "__glibc >=2.17", "other")))]
    others = [line(demo(name="python")), line(demo(name="other", depends=("libblas",)))]
    reduced = without_absent([ours, others])
    assert reduced.dropped == {"demo": ("libblas * *mkl",), "other": ("libblas",)}
    assert reduced.channels[0][0].record["depends"] == ["python >=3.11", "__glibc >=2.17", "other"]
    assert ours[0].record["depends"][0] == "libblas * *mkl"


def test_an_interpreter_becomes_two_small_packages() -> None:
    (python, files), (abi, none) = interpreter_packages(
        program="/opt/it's/bin/python3.13t", version="3.13.2", free_threaded=True, subdir="linux-64"
    )
    assert (python.name, python.version, python.depends) == ("python", "3.13.2", ("python_abi 3.13.* *_cp313t",))
    assert python.site_packages == "lib/python3.13t/site-packages"
    assert (abi.stem, none) == ("python_abi-3.13-0_cp313t", ())
    content = {file.path: file.data for file in files}
    assert sorted(content) == ["bin/python", "bin/python3", "bin/python3.13", "bin/python3.13t", "pyvenv.cfg"]
    assert b"exec -a \"$0\" '/opt/it'\\''s/bin/python3.13t' \"$@\"" in bytes(content["bin/python"])  # type: ignore[arg-type]
    assert b"home = /opt/it's/bin\n" in bytes(content["pyvenv.cfg"])  # type: ignore[arg-type]


def entry(path: str, target: str | None = None) -> Entry:
    kind = "link" if target else "file"
    return Entry(path=path, kind=kind, target=target, blob=None if target else digest_of(path.encode()))  # type: ignore[arg-type]


def test_an_archive_holds_what_links_lead_to() -> None:
    tree = [entry("lib/a.so.1"), entry("lib/a.so", "a.so.1"), entry("share/b", "../lib/a.so")]
    entries = {each.path: each for each in tree}
    assert lay_out(entries, entries, folder="x") == dict.fromkeys(
        ["x/lib/a.so.1", "x/lib/a.so", "x/share/b"], "lib/a.so.1"
    )
    bad = [entry("a", "b"), entry("b", "a"), entry("c", "../../etc/passwd"), entry("d", "gone")]
    with pytest.raises(IntegrityError) as caught:
        lay_out({each.path: each for each in bad}, [each.path for each in bad], folder="x")
    assert [problem.key for problem in caught.value.problems] == ["a", "b", "c", "d"]
    assert archive_name("libtorch", "2.6.0+cpu") == "libtorch-shared-with-deps-2.6.0+cpu.zip"
    assert own_files(folder="libtorch", version="2.6.0+cpu", source="abc") == {
        "libtorch/build-version": b"2.6.0+cpu\n",
        "libtorch/build-hash": b"abc\n",
    }


def test_checksums_are_read_back_and_merge() -> None:
    files = {"b.zip": "1" * 64, "a b.zip": "2" * 64}
    data = render_checksums(files)
    assert data == f"{'2' * 64}  a b.zip\n{'1' * 64}  b.zip\n".encode()
    assert read_checksums(data) == files
    assert merge_checksums(files, {"c": "3" * 64}).keys() == {"a b.zip", "b.zip", "c"}
    with pytest.raises(PublishError, match="different content"):
        merge_checksums(files, {"b.zip": "3" * 64})
    with pytest.raises(IntegrityError, match="the line is not valid in SHA256SUMS"):
        read_checksums(b"junk\n")
