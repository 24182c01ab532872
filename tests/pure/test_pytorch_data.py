"""The tables that ship for PyTorch: they agree with themselves, and give the names and counts that others have."""

from __future__ import annotations

import itertools
import re
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from packaging.version import Version

from axletree.backends.cuda import cuda_release
from axletree.buildsystem.pytorch.versions import parse_desired_cuda
from axletree.package.gpu.arch import parse_gpu
from axletree.recipe.axes import expand
from axletree.recipe.conda import build_hash
from axletree.recipe.parse import parse_recipe
from axletree.recipe.presets import count_preset
from axletree.recipe.properties import DataFile
from axletree.recipe.target import resolve

if TYPE_CHECKING:
    from axletree.recipe.base import Properties
    from axletree.recipe.conda import TargetConda
    from axletree.recipe.target import Target

FOLDER = Path(__file__).parents[2] / "recipes" / "pytorch"
NAMES = ("blas", "cpu", "cuda", "presets", "python", "rocm")
FILES = [
    DataFile(name=f"pytorch/{name}.toml", filename=f"{name}.toml", text=(FOLDER / f"{name}.toml").read_text("utf-8"))
    for name in NAMES
]
GPUS = [
    "cpu",
    *("cu118", "cu124", "cu126", "cu128", "cu129", "cu130", "cu132"),
    *("rocm6.3", "rocm6.4", "rocm7.0", "rocm7.1", "rocm7.2"),
]
PYTHONS = ["3.9", "3.10", "3.11", "3.12", "3.13", "3.13t", "3.14", "3.14t"]
BLAS = ["mkl", "openblas", "generic"]

RECIPE = f"""
name = "torch"
version = "2.11.0"
source = {{ path = "." }}
data = {[file.name for file in FILES]}

[axes]
python = {PYTHONS}
gpu = {GPUS}
blas = {BLAS}
magma = ["on", "off", "none"]

[matrix]
exclude = [
  {{ gpu = "cpu", magma = ["on", "off"] }},
  {{ gpu = {GPUS[1:]}, magma = "none" }},
]

[stages.lib]
action = "run"
axes = ["gpu", "blas"]
commands = ["make {{gpu.arch-list}}"]
env = {{ USE_CUDA = "{{gpu.use-cuda}}", USE_ROCM = "{{gpu.use-rocm}}", BLAS = "{{blas.cmake}}" }}

[packages.torch]
formats = ["conda"]
requires = ["numpy"]
axes = ["python", "gpu", "blas"]
[packages.torch.conda]
name = "pytorch"
build = "{{gpu.conda}}_{{blas.conda}}_{{python.conda}}_{{hash}}_{{number}}"
build-number = "2 + {{gpu.number}} + {{blas.number}}"

[packages.torch-builder]
formats = ["conda"]
requires = ["numpy"]
axes = ["python", "gpu", "blas"]
index = "{{blas}}"
[packages.torch-builder.conda]
build = "py{{python}}_{{gpu.builder}}_{{number}}"

[packages.torch-newest]
formats = ["conda"]
requires = ["numpy"]
axes = ["python", "gpu", "blas"]
[packages.torch-newest.conda]
build-number = "{{gpu.number-newest}} + {{blas.number}}"
"""


def with_data(text: str = RECIPE) -> dict[str, Target]:
    recipe = parse_recipe(text, filename="recipe.toml", data=FILES)
    return {variant.id: resolve(recipe, variant) for variant in expand(recipe)}


@pytest.fixture(scope="module")
def targets() -> dict[str, Target]:
    """A recipe that reads the tables, at all that they know."""
    return with_data()


@pytest.fixture(scope="module")
def gpus() -> dict[str, dict[str, str]]:
    """GPU -> its properties."""
    return parse_recipe(RECIPE, filename="recipe.toml", data=FILES).properties["gpu"]


def conda(target: Target, package: str) -> TargetConda:
    found = next(each for each in target.packages if each.name == package)
    assert found.conda is not None
    return found.conda


@pytest.mark.parametrize(
    ("variant", "string", "number"),
    [
        ("py311-cpu-generic", "cpu_generic_py311_{}_2", 2),
        ("py311-cpu-mkl", "cpu_mkl_py311_{}_102", 102),
        ("py312-cu130-openblas-magma", "cuda130_generic_py312_{}_202", 202),
        ("py311-cu130-mkl-magma", "cuda130_mkl_py311_{}_302", 302),
        ("py313t-rocm7.1-mkl-nomagma", "rocm71_mkl_py313t_{}_302", 302),
    ],
)
def test_build_strings_as_the_feedstock_has_them(
    targets: dict[str, Target], variant: str, string: str, number: int
) -> None:
    found = conda(targets[variant], "torch")
    assert (found.build, found.build_number) == (string.format(build_hash(found.variant)), number)
    assert re.search("_h[0-9a-f]{7}_", found.build)


@pytest.mark.parametrize(
    ("variant", "string"),
    [
        ("py311-cpu-mkl", "py3.11_cpu_0"),
        ("py311-cu130-mkl-magma", "py3.11_cuda13.0.2_cudnn9.17.1_0"),
        ("py310-cu126-mkl-magma", "py3.10_cuda12.6.3_cudnn9.10.2_0"),
        ("py314t-rocm6.4-mkl-magma", "py3.14t_rocm6.4_0"),
    ],
)
def test_build_strings_as_the_builder_has_them(targets: dict[str, Target], variant: str, string: str) -> None:
    assert conda(targets[variant], "torch-builder").build == string


@pytest.mark.parametrize("package", ["torch", "torch-newest"])
def test_the_ladder_prefers_gpus_then_mkl(targets: dict[str, Target], package: str) -> None:
    def numbers(gpu: str, blas: str) -> set[int]:
        return {
            conda(target, package).build_number
            for target in targets.values()
            if target.axes["gpu"].startswith(gpu) and target.axes["blas"] == blas
        }

    steps = [numbers("cpu", "generic"), numbers("cpu", "mkl"), numbers("cu", "generic"), numbers("cu", "mkl")]
    for lower, higher in itertools.pairwise(steps):
        assert max(lower) < min(higher)


def test_a_newer_cuda_can_be_preferred(gpus: dict[str, dict[str, str]]) -> None:
    for world in ("cu", "rocm"):
        numbers = [int(texts["number-newest"]) for gpu, texts in gpus.items() if re.match(rf"{world}\d", gpu)]
        assert numbers == sorted(set(numbers)), "GPUS are in the order of their releases"


@pytest.mark.parametrize("gpu", GPUS)
def test_values_are_what_upstream_calls_them(gpus: dict[str, dict[str, str]], gpu: str) -> None:
    desired, texts = parse_desired_cuda(gpu), gpus[gpu]
    assert desired.label == gpu, "the local version label"
    assert texts["gpu-world"] == desired.world
    assert (texts["use-cuda"], texts["use-rocm"]) == (f"{desired.world == 'cuda':d}", f"{desired.world == 'rocm':d}")
    if desired.world == "cuda":
        assert cuda_release(gpu) == texts["cuda"] == desired.version
        assert texts["cuda-major"] == texts["cuda"].partition(".")[0]
        assert texts["toolkit"].startswith(f"{texts['cuda']}.")
        assert texts["conda"] == f"cuda{texts['cuda'].replace('.', '')}"
        assert texts["builder"] == f"cuda{texts['toolkit']}_cudnn{'.'.join(texts['cudnn'].split('.')[:3])}"
    elif desired.world == "rocm":
        assert texts["rocm"].startswith(desired.version)
        assert texts["conda"] == gpu.replace(".", "")
        assert texts["builder"] == gpu


CAPABILITY = re.compile(r"(\d+)\.(\d)(\+PTX)?")


@pytest.mark.parametrize("gpu", [gpu for gpu in GPUS if gpu.startswith("cu")])
def test_arch_lists_of_cuda(gpus: dict[str, dict[str, str]], gpu: str) -> None:
    lists = {name: text for name, text in gpus[gpu].items() if name.startswith("arch-list") or name == "magma-archs"}
    assert "arch-list" in lists
    for name, text in lists.items():
        found = [CAPABILITY.fullmatch(each) for each in text.split(";")]
        assert all(found), name
        codes = [int(match[1]) * 10 + int(match[2]) for match in found if match]
        assert codes == sorted(set(codes)), name
        if gpu.startswith("cu13"):
            assert min(codes) >= 75, f"{name}: nvcc 13 refuses what is older"
        if Version(gpus[gpu]["cuda"]) < Version("12.8"):
            assert max(codes) <= 90, f"{name}: nvcc does not know what is newer"
        assert all(match[3] is None for match in found[:-1] if match), "PTX of the newest, for what comes later"


@pytest.mark.parametrize("gpu", [gpu for gpu in GPUS if gpu.startswith("rocm")])
def test_arch_lists_of_rocm(gpus: dict[str, dict[str, str]], gpu: str) -> None:
    names = gpus[gpu]["arch-list"].split(";")
    assert len(names) == len(set(names))
    assert {parse_gpu(name).maker for name in names} == {"hip"}


@pytest.mark.parametrize("gpu", GPUS)
def test_numbers_are_versions_and_bounds_are_in_order(gpus: dict[str, dict[str, str]], gpu: str) -> None:
    texts = gpus[gpu]
    named = ("toolkit", "driver", "driver-min", "cudnn", "nccl", "cusparselt", "nvshmem", "cublas", "nvtx", "rocm")
    assert all(Version(texts[name]) for name in named if name in texts)
    for compiler in ("gcc", "clang"):
        low, high = (texts.get(f"{compiler}-{end}") for end in ("min", "below"))
        assert high is None or (low is not None and Version(low) < Version(high))
    if "driver" in texts:
        assert Version(texts["driver-min"]) < Version(texts["driver"]), "an installer's driver runs what it compiles"
    assert all(reason in texts for reason in texts if reason.endswith("-why"))


def test_sources_are_those_that_the_head_of_a_table_lists() -> None:
    """In the tables of GPUs comments name sources that the head of the file lists, and all of these."""
    for name in ("cuda", "rocm"):
        text = (FOLDER / f"{name}.toml").read_text("utf-8")
        head, _, rest = text.partition("\n\n")
        sources = set(re.findall(r"^#   \[([a-z0-9.]+)\]", head, re.MULTILINE))
        used = set(re.findall(r"\[([a-z0-9.]+)\]", "\n".join(re.findall(r"#.*", rest))))
        assert used == sources


def test_nvidia_wheels_of_a_release_can_all_be_required() -> None:
    """What `requires` of a CUDA 12 or 13 wheel would read exists for each release that has wheels in the matrix."""
    components = ("cublas", "cufft", "curand", "cusolver", "cusparse", "nvjitlink", "cufile")
    names = [f"nvidia-{name}{{gpu.wheel-suffix}}=={{gpu.{name}}}" for name in components]
    names += [
        f"nvidia-{name}-cu{{gpu.cuda-major}}=={{gpu.{name}}}" for name in ("cudnn", "cusparselt", "nccl", "nvshmem")
    ]
    text = RECIPE.replace('requires = ["numpy"]', f"requires = {names}", 1)
    text = text.replace(str(GPUS), '["cu126", "cu128", "cu129", "cu130"]').replace(str(GPUS[1:]), '["cu126"]')
    text = text.replace('  { gpu = "cpu", magma = ["on", "off"] },\n', "")
    required = {target.axes["gpu"]: target.packages[0].requires for target in with_data(text).values()}
    assert "nvidia-cublas-cu12==12.6.4.1" in required["cu126"]
    assert "nvidia-cudnn-cu12==9.10.2.21" in required["cu126"]
    assert "nvidia-cublas==13.1.0.3" in required["cu130"]
    assert "nvidia-nccl-cu13==2.28.9" in required["cu130"]


def test_python_tags() -> None:
    found: Properties = tomllib.loads((FOLDER / "python.toml").read_text("utf-8"))["properties"]
    for python, texts in found["python"].items():
        nodot = python.replace(".", "")
        assert texts["abi-tag"] == f"cp{nodot}"
        assert texts["python-tag"] == f"cp{nodot.removesuffix('t')}"
        assert texts["conda"] == f"py{nodot}"
    assert list(found["python"]) == PYTHONS


@pytest.mark.parametrize(
    ("preset", "configurations", "variants", "packages"),
    [
        # conda-forge's numbers were counted in the feedstock itself: .ci_support/*.yaml and the selectors of meta.yaml
        (
            "conda-forge-2024-12",
            21,
            75,
            {"libtorch": 21, "libtorch-cuda-linalg": 6, "pytorch": 40, "pytorch-cpu": 18, "pytorch-gpu": 2},
        ),
        (
            "conda-forge-2026-08",
            16,
            80,
            {"libtorch": 16, "pytorch": 80, "pytorch-tests": 80, "pytorch-cpu": 7, "pytorch-gpu": 9},
        ),
        ("pytorch-wheels-2026", 140, 140, {"torch": 140}),
        ("pytorch-libtorch-2026", 24, 24, {"libtorch": 24}),
    ],
)
def test_presets(preset: str, configurations: int, variants: int, packages: dict[str, int]) -> None:
    recipe = parse_recipe(RECIPE, filename="recipe.toml", data=FILES)
    report = count_preset(preset, recipe.presets[preset])
    assert len(report.configurations) == configurations
    assert len(report.variants) == variants
    assert {row.name: row.count for row in report.packages} == packages
    assert sum(row.packages for row in report.configurations) == sum(packages.values()), "no job makes another's"
    assert sum(len(row.variants) for row in report.configurations) == variants


def test_jobs_of_a_preset() -> None:
    recipe = parse_recipe(RECIPE, filename="recipe.toml", data=FILES)
    report = count_preset("conda-forge-2024-12", recipe.presets["conda-forge-2024-12"], ["linux-64-*"])
    assert {row.id: (len(row.variants), row.packages) for row in report.configurations} == {
        "linux-64-cpu-generic": (10, 7),
        "linux-64-cpu-mkl": (10, 7),
        "linux-64-cu126-generic": (10, 3),
        "linux-64-cu126-mkl": (10, 9),
    }
