"""Variables that PyTorch's and conda-forge's build scripts are told what to do with, and what says the same here.

No variable of the user's shell changes a build, unless a stage passes it. Whoever has one of these set plainly expects
something of it, so a build names the variable and the option that does it.
"""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING

from axletree.recipe.faults import visible

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from axletree.recipe.model import Recipe

JOBS = ("MAX_JOBS", "CPU_COUNT", "CMAKE_BUILD_PARALLEL_LEVEL")
"""How many processes a build may start: told in one line, CI systems set them for everything."""
_ARCHITECTURES = ("TORCH_CUDA_ARCH_LIST", "PYTORCH_ROCM_ARCH")
_SWITCHES = ("USE_CUDA", "USE_ROCM", "FORCE_CUDA", "FORCE_ONLY_CPU")
_VERSIONS = ("PYTORCH_BUILD_VERSION", "OVERRIDE_PACKAGE_VERSION")
_FORMATS = {"conda": "conda", "wheel": "wheel", "manywheel": "wheel", "libtorch": "zip"}
_PYTHON = re.compile(r"(?:cp)?([23])\.?([0-9]{1,2}t?)(?:-cp.*)?")
_ARCH_LIST = "arch-list"
_LONGEST = 40


def ignored_variables(recipe: Recipe, environ: Mapping[str, str], *, said: Collection[str]) -> Iterator[str]:
    """A sentence for each variable of a shell that somebody expects to act on a build of this recipe, and does not.

    Args:
        recipe: what is built.
        environ: the shell's variables.
        said: options that the command was given, such as ``--jobs`` or ``--set``: a variable beside it is no news.
    """
    passed = {name for stage in recipe.stages.values() for name in stage.pass_env}
    passed |= {name for override in recipe.override for name in override.pass_env}
    given = {name: value for name, value in environ.items() if value.strip() and name not in passed}
    limits = [name for name in JOBS if name in given]
    if limits and "--jobs" not in said:
        shown = " and ".join(_shown(name, given) for name in limits)
        verb = "does" if len(limits) == 1 else "do"
        number = given[limits[0]] if given[limits[0]].isdecimal() else "N"
        yield f"{shown} in your shell {verb} not limit the build; to limit it, use -j {number}"
    for name, option in _options(recipe, given):
        if option.partition(" ")[0] not in said:
            yield f"{_shown(name, given)} in your shell does not affect the build; use {option}"


def _options(recipe: Recipe, given: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Variable -> the option that does what it is for."""
    if "gpu" in recipe.axes:
        for name in (*_ARCHITECTURES, *_SWITCHES):
            if name in given and (key := _key(recipe, name)) is not None:
                yield name, shlex.join(["--set", f"{key}={given[name]}"])
    if "DESIRED_CUDA" in given and "gpu" in recipe.axes:
        yield "DESIRED_CUDA", shlex.join(["--gpu", given["DESIRED_CUDA"]])
    if "DESIRED_PYTHON" in given and "python" in recipe.axes:
        match = _PYTHON.fullmatch(given["DESIRED_PYTHON"])
        yield "DESIRED_PYTHON", f"--variant 'py{match[1]}{match[2]}*'" if match else "--variant"
    if given.get("PACKAGE_TYPE") in _FORMATS:
        yield "PACKAGE_TYPE", f"--format {_FORMATS[given['PACKAGE_TYPE']]}"
    for name in _VERSIONS:
        if name in given:
            yield name, shlex.join(["--release", given[name]])


def _key(recipe: Recipe, variable: str) -> str | None:
    """The key of a recipe that says what a variable says."""
    if variable in _ARCHITECTURES:
        for value, texts in recipe.properties.get("gpu", {}).items():
            if _ARCH_LIST in texts and value.startswith("rocm") == (variable == "PYTORCH_ROCM_ARCH"):
                return f"properties.gpu.{'rocm' if value.startswith('rocm') else 'cu'}*.{_ARCH_LIST}"
    stage = next((name for name, each in recipe.stages.items() if each.action in {"build", "compile"}), None)
    return None if stage is None else f"stages.{stage}.env.{variable}"


def _shown(name: str, given: Mapping[str, str]) -> str:
    value = visible(given[name])
    return f"{name}={value if len(value) <= _LONGEST else value[:_LONGEST] + '...'}"
