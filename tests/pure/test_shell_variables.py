"""Variables of the shell that somebody expects to act on a build: which are named, and what is said to do it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from axletree.recipe.shell_variables import ignored_variables
from support.recipes import SMALL, recipe_of

if TYPE_CHECKING:
    from axletree.recipe.model import Recipe

TABLED = recipe_of(
    SMALL.replace("GPU={gpu}", "ARCHS={gpu.arch-list}")
    + '\n[properties.gpu.cpu]\narch-list = ""\n[properties.gpu.cu130]\narch-list = "8.0"\n'
)
PLAIN = recipe_of()
NO_AXES = recipe_of(
    'name = "a"\nversion = "1"\nsource = { path = "src" }\n[stages.build]\naction = "run"\n'
    'commands = ["make"]\npass-env = ["CPU_COUNT"]\n'
)


def told(recipe: Recipe, *said: str, **environ: str) -> list[str]:
    return list(ignored_variables(recipe, environ, said=said))


def test_a_plain_shell_is_told_nothing() -> None:
    plain = {"PATH": "/bin", "HOME": "/root", "CC": "gcc", "CI": "true", "MAX_JOBS": "", "CMAKE_PREFIX_PATH": "/opt"}
    assert told(PLAIN, **plain) == []


@pytest.mark.parametrize(
    ("environ", "line"),
    [
        ({"CPU_COUNT": "2"}, "CPU_COUNT=2 in your shell does not limit the build; to limit it, use -j 2"),
        (
            {"CPU_COUNT": "2", "MAX_JOBS": "4"},
            "MAX_JOBS=4 and CPU_COUNT=2 in your shell do not limit the build; to limit it, use -j 4",
        ),
        ({"MAX_JOBS": "$(nproc)"}, "MAX_JOBS=$(nproc) in your shell does not limit the build; to limit it, use -j N"),
        ({"DESIRED_CUDA": "cu126"}, "DESIRED_CUDA=cu126 in your shell does not affect the build; use --gpu cu126"),
        (
            {"DESIRED_PYTHON": "3.8"},
            "DESIRED_PYTHON=3.8 in your shell does not affect the build; use --variant 'py38*'",
        ),
        (
            {"DESIRED_PYTHON": "cp313-cp313t"},
            "DESIRED_PYTHON=cp313-cp313t in your shell does not affect the build; use --variant 'py313*'",
        ),
        (
            {"PACKAGE_TYPE": "manywheel"},
            "PACKAGE_TYPE=manywheel in your shell does not affect the build; use --format wheel",
        ),
        (
            {"PYTORCH_BUILD_VERSION": "1.8.0"},
            "PYTORCH_BUILD_VERSION=1.8.0 in your shell does not affect the build; use --release 1.8.0",
        ),
        (
            {"FORCE_CUDA": "1"},
            "FORCE_CUDA=1 in your shell does not affect the build; use --set stages.bind.env.FORCE_CUDA=1",
        ),
        (
            {"TORCH_CUDA_ARCH_LIST": "8.0;9.0"},
            (
                "TORCH_CUDA_ARCH_LIST=8.0;9.0 in your shell does not affect the build; "
                "use --set 'stages.bind.env.TORCH_CUDA_ARCH_LIST=8.0;9.0'"
            ),
        ),
    ],
)
def test_each_is_named_with_its_option(environ: dict[str, str], line: str) -> None:
    assert told(PLAIN, **environ) == [line]


def test_architectures_are_set_in_the_table_where_there_is_one() -> None:
    (line,) = told(TABLED, TORCH_CUDA_ARCH_LIST="8.0")
    assert line.endswith("use --set 'properties.gpu.cu*.arch-list=8.0'")
    (line,) = told(TABLED, PYTORCH_ROCM_ARCH="gfx90a")
    assert line.endswith("use --set stages.bind.env.PYTORCH_ROCM_ARCH=gfx90a")


def test_what_the_command_says_is_not_said_again() -> None:
    environ = {
        "MAX_JOBS": "4",
        "DESIRED_CUDA": "cpu",
        "DESIRED_PYTHON": "3.8",
        "PACKAGE_TYPE": "conda",
        "USE_CUDA": "1",
    }
    assert told(PLAIN, "--jobs", "--gpu", "--variant", "--format", "--set", **environ) == []
    assert len(told(PLAIN, "--jobs", **environ)) == 4


def test_what_cannot_concern_a_recipe_is_not_named() -> None:
    """One without GPUs compiles nothing for them; what a stage passes acts."""
    assert told(NO_AXES, TORCH_CUDA_ARCH_LIST="8.0", USE_CUDA="1", DESIRED_CUDA="cu126", CPU_COUNT="2") == []
    assert len(told(NO_AXES, MAX_JOBS="2")) == 1


def test_values_are_fit_for_a_terminal() -> None:
    (line,) = told(PLAIN, PYTORCH_BUILD_VERSION="\x1b[31m" + "1" * 100)
    assert "\x1b" not in line.partition("; use")[0]
    assert "..." in line
