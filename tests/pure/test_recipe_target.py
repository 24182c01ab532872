"""Targets: each part sees its own axes only, overrides apply in order, names are as documented."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace

from axletree.core.errors import RecipeError
from axletree.recipe.axes import expand
from axletree.recipe.environments import lock_name
from axletree.recipe.parse import parse_recipe
from axletree.recipe.target import resolve
from support.recipes import SMALL, recipe_of, shipped_defaults, targets_of

SCATTER = Path(__file__).parents[2] / "recipes" / "torch-scatter.toml"


def test_variants_that_agree_on_a_stages_axes_have_equal_stages() -> None:
    targets = targets_of()
    library = {variant: target.stages[0] for variant, target in targets.items()}
    assert library["py311-cpu"] == library["py312-cpu"] != library["py312-cu130"]
    assert library["py311-cpu"].axes == {"gpu": "cpu"}
    assert len({msgspec.json.encode(target.stages[1]) for target in targets.values()}) == 4


def test_packages_and_tests_have_the_axes_of_what_they_are_made_from() -> None:
    target = targets_of()["py312-cu130"]
    assert [package.axes for package in target.packages] == [{"gpu": "cu130"}, {"python": "3.12", "gpu": "cu130"}]
    assert target.tests[0].axes == {"python": "3.12", "gpu": "cu130"}
    assert target.packages[1].requires == ("small-lib==1.0+cu130",)


def test_versions_are_normalised_with_their_label() -> None:
    text = SMALL.replace('version = "1.0"', 'version = "v1.0-RC1"').replace('local = "{gpu}"', 'local = "gpu.{gpu}"')
    text = text.replace("=={version}+{gpu}", "")
    assert targets_of(text)["py311-cpu"].packages[0].version == "1.0rc1+gpu.cpu"


def test_the_summary_of_a_package_defaults_to_that_of_the_recipe() -> None:
    text = 'summary = "All"\n' + SMALL.replace("[packages.small]\n", '[packages.small]\nsummary = "For {gpu}"\n')
    assert [package.summary for package in targets_of(text)["py311-cpu"].packages] == ["All", "For cpu"]


OVERRIDES = """
[[override]]
when = { gpu = "cu130" }
stage = "lib"
env = { A = "{gpu}", B = "1" }
resources = { memory = "4 GB", cores = 2 }

[[override]]
when = { gpu = ["cpu", "cu130"] }
stage = "lib"
env = { B = "2" }

[[override]]
when = { gpu = "cpu" }
stage = "lib"
commands = []

[[override]]
when = { python = "3.12" }
environment = "build"
requires = ["wheel"]

[[override]]
when = { python = "3.12", gpu = "cu130" }
package = "small"
requires = ["nvidia-runtime"]
"""


def test_overrides_apply_in_order_to_variants_that_match() -> None:
    targets = targets_of(SMALL + OVERRIDES.replace("commands = []", 'commands = ["make cpu"]'))
    cpu, cuda = targets["py311-cpu"], targets["py312-cu130"]
    assert cpu.stages[0].env == {"B": "2"}
    assert cpu.stages[0].commands == ("make cpu",)
    assert cuda.stages[0].env == {"A": "cu130", "B": "2"}
    assert cuda.stages[0].commands == ("make GPU=cu130 DESTDIR=$AXLETREE_OUT",)
    assert (cuda.stages[0].resources.memory, cuda.stages[0].resources.cores) == (4_000_000_000, 2)
    assert cpu.environments[0].requires == ("setuptools",)
    assert cuda.environments[0].requires == ("setuptools", "wheel")
    assert cuda.packages[1].requires == ("small-lib==1.0+cu130", "nvidia-runtime")
    assert cpu.packages[1].requires == ("small-lib==1.0+cpu",)


CONDITIONAL = """
[stages.hip]
action = "run"
when = { gpu = "cpu" }
commands = ["true"]

[stages.more]
action = "run"
axes = ["gpu"]
when = { gpu = "cu130" }
inputs = ["lib"]
commands = ["true"]

[stages.both]
action = "run"
axes = ["gpu"]
source-from = "hip"
inputs = ["lib", "more"]
commands = ["true"]

[packages.more]
from = "more"
local = "{gpu}"

[[override]]
stage = ["lib", "both"]
env = { ALL = "{gpu}" }
[[override]]
when = { gpu = "cu130" }
stage = ["lib", "both"]
tools = ["nvcc"]
pass-env = ["CUDA_HOME"]
"""


def test_a_stage_with_a_condition_is_missed_by_nobody_where_it_is_not() -> None:
    targets = targets_of(SMALL + CONDITIONAL)
    cpu, cuda = targets["py311-cpu"], targets["py311-cu130"]
    assert [stage.name for stage in cpu.stages] == ["lib", "bind", "hip", "both"]
    assert [stage.name for stage in cuda.stages] == ["lib", "bind", "more", "both"]
    assert (cpu.stages[-1].inputs, cpu.stages[-1].source_from) == (("lib",), "hip")
    assert (cuda.stages[-1].inputs, cuda.stages[-1].source_from) == (("lib", "more"), None)
    assert "more" not in [package.name for package in cpu.packages]
    assert cuda.packages[-1].chosen_by == {"gpu": "cu130"}, "siblings know that others may not have it"


def test_one_override_changes_several_packages() -> None:
    text = SMALL + '\n[[override]]\npackage = ["small", "small-lib"]\nrequires = ["numpy"]\n'
    for target in targets_of(text).values():
        assert [package.requires[-1] for package in target.packages] == ["numpy", "numpy"]


def test_one_override_changes_several_stages() -> None:
    targets = targets_of(SMALL + CONDITIONAL)
    for stage in (targets["py311-cpu"].stages[0], targets["py311-cpu"].stages[-1]):
        assert (stage.env, stage.tools, stage.pass_env) == ({"ALL": "cpu"}, stage.tools, ())
        assert "nvcc" not in stage.tools
    for stage in (targets["py311-cu130"].stages[0], targets["py311-cu130"].stages[-1]):
        assert stage.tools[-1] == "nvcc"
        assert stage.pass_env == ("CUDA_HOME",)


PATCHES = """
[[patches]]
file = "fixes/{name}-{version}.patch"

[[patches]]
file = "cuda.patch"
strip = 0
when = { gpu = "cu130" }
"""


def test_a_source_sees_the_axes_of_its_patches_conditions() -> None:
    targets = targets_of(SMALL + PATCHES)
    assert targets["py311-cpu"].source.axes == {"gpu": "cpu"}
    assert [patch.file for patch in targets["py311-cpu"].source.patches] == ["fixes/small-1.0.patch"]
    assert targets["py311-cu130"].source == targets["py312-cu130"].source
    assert [patch.strip for patch in targets["py311-cu130"].source.patches] == [1, 0]


@pytest.mark.parametrize(
    ("line", "kind", "location", "ref"),
    [
        ('pypi = "Small"', "pypi", "Small", None),
        ('git = "https://git.example/{name}", ref = "v{version}"', "git", "https://git.example/small", "v1.0"),
        ('path = ".."', "path", "..", None),
        ('wheel = "{name}.whl"', "wheel", "small.whl", None),
    ],
)
def test_sources(line: str, kind: str, location: str, ref: str | None) -> None:
    source = targets_of(SMALL.replace('path = "src"', line))["py311-cpu"].source
    assert (source.kind, source.location, source.ref, source.axes) == (kind, location, ref, {})


@pytest.mark.parametrize(
    ("environment", "values", "name"),
    [
        ("build", {}, "pylock.build.toml"),
        ("build", {"python": "3.11", "gpu": "cpu"}, "pylock.build-py311-cpu.toml"),
        ("build", {"torch": "2.13.0"}, "pylock.build-torch2_13_0.toml"),
        ("a.b", {"platform": "linux"}, "pylock.a_b.toml"),
    ],
)
def test_lock_names_have_no_dot_inside(environment: str, values: dict[str, str], name: str) -> None:
    assert lock_name(environment, values, {"platform": ("linux",)}) == name


def test_a_stage_that_reads_what_it_does_not_declare_is_an_error_here_too() -> None:
    recipe = recipe_of()
    stage = replace(recipe.stages["lib"], commands=("make {python}",))
    with pytest.raises(RecipeError, match="uses axis 'python', which is not declared"):
        resolve(replace(recipe, stages={"lib": stage}), expand(recipe)[0])


def test_the_first_recipe() -> None:
    recipe = parse_recipe(
        SCATTER.read_text(encoding="utf-8"), filename="torch-scatter.toml", defaults=shipped_defaults(SCATTER)
    )
    target = resolve(recipe, expand(recipe)[0])
    assert target.packages[0].version.endswith("+torch.2.13.cpu")
    assert target.packages[0].index == "torch-2.13/cpu"
    assert target.environments[0].requires[0] == "torch==2.13.0+cpu"
    assert msgspec.json.decode(msgspec.json.encode(target), type=type(target)) == target
