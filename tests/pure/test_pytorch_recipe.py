"""PyTorch's recipe at its variants: the packages they have, what these require, what is compiled once for whom."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from axletree.core.values import StageId
from axletree.plan.actions.compile import CompileParameters
from axletree.plan.actions.pack_conda import CondaParameters
from axletree.plan.actions.project import ProjectParameters
from axletree.plan.graph import build_plan
from axletree.recipe.axes import expand, variant_id
from axletree.recipe.parse import parse_recipe
from axletree.recipe.properties import DataFile
from axletree.recipe.target import resolve
from support.targets import inputs_of, parameters_of

if TYPE_CHECKING:
    from axletree.plan.graph import Plan
    from axletree.recipe.model import Recipe
    from axletree.recipe.target import Target

FOLDER = Path(__file__).parents[2] / "recipes"
NAMES = ("blas", "cpu", "cuda", "presets", "python", "rocm")
WHEELS = ["libtorch", "torch", "torch-tests"]
CONDA = ["libtorch", "pytorch"]
CHOSEN = {
    "py312-cpu-openblas",
    "py313-cpu-openblas",
    *(
        f"py{python}-{gpu}-mkl-{magma}"
        for python in (312, 313)
        for gpu in ("cu126", "cu130")
        for magma in ("magma", "nomagma")
    ),
    "py312-rocm7.1-generic",
}


@pytest.fixture(scope="module")
def recipe() -> Recipe:
    files = [
        DataFile(
            name=f"pytorch/{name}.toml", filename=name, text=(FOLDER / "pytorch" / f"{name}.toml").read_text("utf-8")
        )
        for name in NAMES
    ]
    return parse_recipe((FOLDER / "pytorch.toml").read_text("utf-8"), filename="pytorch.toml", data=files)


@pytest.fixture(scope="module")
def targets(recipe: Recipe) -> dict[str, Target]:
    return {variant.id: resolve(recipe, variant) for variant in expand(recipe) if variant.id in CHOSEN}


@pytest.fixture(scope="module")
def plan(recipe: Recipe, targets: dict[str, Target]) -> Plan:
    inputs = inputs_of(targets.values())
    return build_plan(targets.values(), inputs, label=lambda values: variant_id(values, recipe.axes))


def made(target: Target) -> dict[str, list[str]]:
    """Format -> names of the packages."""
    found: dict[str, list[str]] = {"wheel": [], "conda": [], "zip": []}
    for package in target.packages:
        for form in package.formats:
            called = package.conda.name if form == "conda" and package.conda is not None else None
            found[form].append(called or package.name)
    return {form: sorted(names) for form, names in found.items()}


def conda(plan: Plan, package: str, label: str) -> CondaParameters:
    """A package as it will be packed: name, strings, numbers, dependencies; with its pins on siblings."""
    return parameters_of(plan, f"pack-conda:{package}[{label}]", CondaParameters)


def wheel(target: Target, name: str) -> tuple[str, set[str]]:
    """(version, requirements) of a package."""
    (package,) = (package for package in target.packages if package.name == name)
    return package.version, set(package.requires)


def test_packages_of_each_kind_of_variant(targets: dict[str, Target]) -> None:
    zips = ["libtorch-shared-without-deps"]
    assert made(targets["py312-cpu-openblas"]) == {
        "wheel": WHEELS,
        "conda": [*CONDA, "pytorch-cpu"],
        "zip": zips,
    }
    for magma in ("magma", "nomagma"):
        assert made(targets[f"py312-cu130-mkl-{magma}"]) == {
            "wheel": sorted([*WHEELS, "libtorch-cuda-linalg"]),
            "conda": sorted([*CONDA, "libtorch-cuda-linalg", "pytorch-gpu"]),
            "zip": zips,
        }
    assert made(targets["py312-rocm7.1-generic"]) == {"wheel": WHEELS, "conda": [*CONDA, "pytorch-gpu"], "zip": zips}


def test_stages_of_each_kind_of_variant(targets: dict[str, Target]) -> None:
    stages = {name: {stage.name for stage in target.stages} for name, target in targets.items()}
    cuda = {"linalg", "linalg-tree", "linalg-prefix"}
    assert stages["py312-cu130-mkl-magma"] - stages["py312-cpu-openblas"] == cuda
    assert stages["py312-rocm7.1-generic"] - stages["py312-cpu-openblas"] == {"hipify"}
    assert {"libtorch", "bind", "libtorch-tree", "torch-tree", "libtorch-prefix", "torch-prefix", "archive"} < stages[
        "py312-cpu-openblas"
    ]


def test_only_what_differs_is_compiled_again(plan: Plan) -> None:
    counts = Counter(stage.step.name for stage in plan.stages.values())
    assert counts["libtorch"] == 4, "cpu, two of CUDA, one of ROCm: for every Python and both settings of MAGMA"
    assert counts["linalg"] == 4, "for two of CUDA with MAGMA and without, not for each Python"
    assert counts["bind"] == 7, "for each Python and GPU, not for each setting of MAGMA"
    with_magma = plan.stages[StageId("linalg[cu130-mkl-magma]")]
    without = plan.stages[StageId("linalg[cu130-mkl-nomagma]")]
    assert set(with_magma.variants) == {"py312-cu130-mkl-magma", "py313-cu130-mkl-magma"}
    assert with_magma.needs == without.needs, "they start from one libtorch"
    assert with_magma.step.continues == without.step.continues == "libtorch"
    magma, none = (parameters_of(plan, str(stage.id), CompileParameters) for stage in (with_magma, without))
    one, other = magma.env, none.env
    assert {name for name in one if one[name] != other[name]} == {"USE_LINALG_MAGMA"}
    library = parameters_of(plan, "libtorch[cu130-mkl]", CompileParameters).env
    assert {**library, "USE_LINALG_MAGMA": "on"} == one, (
        "what else is configured is as in the folder that it goes on in"
    )
    assert magma.expect["USE_MAGMA"] == "ON"
    assert "USE_MAGMA" not in none.expect


def test_mkl_is_in_the_environments_of_its_variants_and_of_no_others(targets: dict[str, Target]) -> None:
    for variant, target in targets.items():
        has = {each.name for each in target.environments if "mkl-devel" in each.requires}
        assert has == ({"compile", "bind"} if "-mkl-" in variant else set()), variant
        used = {stage.name: stage.environment for stage in target.stages}
        assert (used["libtorch"], used["bind"]) == ("compile", "bind")


def test_tools_of_a_gpu_are_asked_for_by_its_variants_only(plan: Plan) -> None:
    tools = {name: set(plan.stages[StageId(f"libtorch[{name}]")].step.tools) for name in ("cpu-openblas", "cu130-mkl")}
    assert tools == {"cpu-openblas": {"c++", "cc"}, "cu130-mkl": {"c++", "cc", "nvcc"}}
    rocm = plan.stages[StageId("libtorch[rocm7.1-generic]")]
    assert "hipcc" in rocm.step.tools
    assert rocm.needs["source"] == "hipify"
    assert plan.stages[StageId("libtorch[cpu-openblas]")].needs["source"] == "patch"


def test_rocm_names_its_openmp_and_expects_it(plan: Plan) -> None:
    for stage in ("libtorch[rocm7.1-generic]", "bind[py312-rocm7.1-generic]"):
        parameters = plan.stages[StageId(stage)].step.parameters
        assert isinstance(parameters, ProjectParameters)
        assert parameters.env["OpenMP_ROOT"] == "/opt/rocm/llvm"
        assert parameters.expect["USE_OPENMP"] == "ON"
    assert "OpenMP_ROOT" not in parameters_of(plan, "libtorch[cpu-openblas]", CompileParameters).env


def test_conda_build_strings_and_numbers(plan: Plan) -> None:
    shapes = {
        ("libtorch-conda", "cpu-openblas"): ("libtorch", "cpu_generic_h", "_0"),
        ("libtorch-conda", "cu130-mkl"): ("libtorch", "cuda130_mkl_h", "_350"),
        ("libtorch-cuda-linalg-conda", "cu130-mkl-magma"): ("libtorch-cuda-linalg", "cuda130_magma_mkl_h", "_350"),
        ("libtorch-cuda-linalg-conda", "cu126-mkl-nomagma"): ("libtorch-cuda-linalg", "cuda126_nomagma_mkl_h", "_320"),
        ("pytorch", "py313-cu126-mkl"): ("pytorch", "cuda126_mkl_py313_h", "_320"),
        ("pytorch", "py312-rocm7.1-generic"): ("pytorch", "rocm71_generic_py312_h", "_240"),
        ("pytorch-gpu", "cu130-mkl"): ("pytorch-gpu", "cuda130_mkl_h", "_350"),
        ("pytorch-cpu", "cpu-openblas"): ("pytorch-cpu", "cpu_generic_h", "_0"),
    }
    for (package, label), (name, start, end) in shapes.items():
        found = conda(plan, package, label)
        assert found.called == name
        assert (found.conda.build.startswith(start), found.conda.build.endswith(end)) == (True, True), found.conda.build
        assert end == f"_{found.conda.build_number}"


def test_conda_packages_hold_each_other_together(plan: Plan) -> None:
    library = conda(plan, "libtorch-conda", "cu130-mkl")
    linalg = conda(plan, "libtorch-cuda-linalg-conda", "cu130-mkl-magma")
    torch = conda(plan, "pytorch", "py312-cu130-mkl")
    assert torch.pins["libtorch-conda"] == f"libtorch 2.13.0 {library.conda.build}"
    assert "libtorch-cuda-linalg ==2.13.0 cuda130_*_mkl_*" in library.conda.depends
    assert "pytorch ==2.13.0 cuda130_mkl_*" in library.conda.constrains
    assert {"pytorch-gpu ==2.13.0", "pytorch-cpu <0.0a0"} <= set(library.conda.constrains)
    assert "libtorch ==2.13.0 cuda130_mkl_*" in linalg.conda.constrains
    assert "magma >=2.10.0,<2.11.0a0 cuda130_*" in linalg.conda.depends
    assert {"__cuda", "triton ==3.7.1"} <= set(torch.conda.depends)
    assert library.conda.weak == ("libtorch >=2.13.0,<2.14.0a0",)
    assert library.conda.strong == ()
    assert torch.conda.weak == ("pytorch >=2.13.0,<2.14.0a0", "libtorch >=2.13.0,<2.14.0a0")
    assert conda(plan, "pytorch-gpu", "cu130-mkl").conda.depends == ("pytorch ==2.13.0 cuda130_mkl_*",)


def test_without_magma_is_what_solvers_take_when_they_must(plan: Plan) -> None:
    without = conda(plan, "libtorch-cuda-linalg-conda", "cu130-mkl-nomagma")
    assert "magma <0.0a0" in without.conda.constrains
    assert without.conda.track_features == ("libtorch-cuda-linalg-nomagma",)
    assert not [each for each in without.conda.depends if each.startswith("magma")]
    assert conda(plan, "libtorch-cuda-linalg-conda", "cu130-mkl-magma").conda.track_features == ()


def test_conda_packages_for_cpus_ask_for_nothing_of_gpus(plan: Plan) -> None:
    library = conda(plan, "libtorch-conda", "cpu-openblas")
    assert library.conda.depends == ("libblas",)
    assert {"libopenblas * openmp_*", "pytorch-cpu ==2.13.0", "pytorch-gpu <0.0a0"} <= set(library.conda.constrains)
    assert not [each for each in conda(plan, "pytorch", "py312-cpu-openblas").conda.depends if "cuda" in each]


def test_wheels_for_cpus_require_each_other_only(targets: dict[str, Target]) -> None:
    target = targets["py312-cpu-openblas"]
    assert wheel(target, "libtorch") == ("2.13.0+cpu", set())
    assert wheel(target, "torch") == ("2.13.0+cpu", {"libtorch==2.13.0+cpu"})
    assert wheel(target, "torch-tests") == ("2.13.0+cpu", {"torch==2.13.0+cpu"})


def test_wheels_for_cuda_require_nvidias(targets: dict[str, Target]) -> None:
    _, twelve = wheel(targets["py312-cu126-mkl-magma"], "libtorch")
    assert {"nvidia-cublas-cu12==12.6.4.1", "nvidia-cudnn-cu12==9.10.2.21", "nvidia-nccl-cu12==2.28.9"} < twelve
    _, thirteen = wheel(targets["py312-cu130-mkl-magma"], "libtorch")
    extras = "cublas,cudart,cufft,cufile,cupti,curand,cusparse,nvjitlink,nvrtc,nvtx"
    assert f"cuda-toolkit[{extras}]==13.0.3" in thirteen
    assert {"nvidia-cudnn-cu13==9.17.1.4", "nvidia-nvshmem-cu13==3.4.5"} < thirteen
    for required in (twelve, thirteen):
        assert not [each for each in required if "cusolver" in each], "only linear algebra needs it"
    for variant, required in (("py312-cu126-mkl-magma", twelve), ("py312-cu130-mkl-magma", thirteen)):
        _, asked = wheel(targets[variant], "libtorch-conda")
        assert required - asked == {"mkl"}, "conda packages ask for the same, by the names that it has there"
    version, required = wheel(targets["py312-cu126-mkl-magma"], "libtorch-cuda-linalg")
    assert version == "2.13.0+cu126.magma"
    assert {"libtorch==2.13.0+cu126", "nvidia-cusolver-cu12==11.7.1.2"} < required


def test_either_linear_algebra_serves_a_torch(targets: dict[str, Target]) -> None:
    versions = {
        magma: wheel(targets[f"py312-cu130-mkl-{magma}"], "libtorch-cuda-linalg")[0] for magma in ("magma", "nomagma")
    }
    assert versions == {"magma": "2.13.0+cu130.magma", "nomagma": "2.13.0+cu130"}
    torch = {magma: wheel(targets[f"py312-cu130-mkl-{magma}"], "torch") for magma in ("magma", "nomagma")}
    assert torch["magma"] == torch["nomagma"]
    assert "libtorch-cuda-linalg==2.13.0" in torch["magma"][1], "a version without label fits any"
    assert "triton~=3.7.1; platform_system == 'Linux'" in torch["magma"][1]
    assert "triton-rocm~=3.7.1; platform_system == 'Linux'" in wheel(targets["py312-rocm7.1-generic"], "torch")[1]
