"""What a stage's programs find in conda environments: variables and search order, as conda-build has them.

Headers and libraries are those of the host environment; the build environment brings programs. The loader is told
nothing (``LD_LIBRARY_PATH``): programs of the system would load libraries of the prefix, which may be older than those
that they need. conda-build does not do that either.
"""

from __future__ import annotations

import os
import shlex
import shutil
from typing import TYPE_CHECKING

from msgspec.structs import replace

from axletree.environment.apply import combined
from axletree.environment.layers import deltas_of, order_of
from axletree.host.environment.prefixes import activated_by_scripts, conda_layers

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from axletree.environment.delta import Delta

_PACKAGE = {"PKG_NAME": "package", "PKG_VERSION": "0"}
"""What activation scripts of compilers put into flags. A name and a version there would compile everything again for
each release, so they are the same for all."""
_NAMES = {"cc": "CC", "gcc": "CC", "c++": "CXX", "g++": "CXX"}
"""Names by which builds call compilers without being told -> the variable that says which one is meant."""


def conda_variables(
    env: Mapping[str, str], *, build: Path, host: Path | None, root: Path, compiles: bool
) -> dict[str, str]:
    """Variables with the environments active.

    Args:
        env: variables so far, ``PATH`` of the system among them.
        build: prefix of the programs.
        host: prefix of what is linked against; ``None``: it is the same.
        root: folder of the sources.
        compiles: whether headers and libraries are to be found.

    Raises:
        StageError: an activation script fails.
    """
    prefixes = [build] if host is None else [build, host]
    result = dict(env)
    result["PATH"] = ":".join([*(f"{prefix}/bin" for prefix in prefixes), env["PATH"]])
    result |= {"CONDA_PREFIX": str(build), "CONDA_DEFAULT_ENV": str(build), "CONDA_SHLVL": "1"}
    if compiles:
        result |= {"PREFIX": str(host or build), "BUILD_PREFIX": str(build)}
    if host is not None:
        result |= {"CONDA_BUILD": "1", "SRC_DIR": str(root), **_PACKAGE}
    for prefix in reversed(prefixes):
        result = activated_by_scripts(prefix, result)
    for name in _PACKAGE if host is not None else ():
        result.pop(name, None)
    for delta in _search(build, host) if compiles else ():
        value = combined(delta, result.get(delta.variable))
        if value is not None:
            result[delta.variable] = value
    return result


def _search(build: Path, host: Path | None) -> Sequence[Delta]:
    """The changes that make compilers, linkers and CMake look into the prefixes."""
    own = [replace(layer, bin=(), settings=()) for layer in conda_layers(host or build, scripts=False)]
    programs = [replace(layer, bin=(), settings=()) for layer in conda_layers(build, scripts=False)] if host else []
    return deltas_of([*own, *programs], replace(order_of(own), run=()))


def compiler_names(env: Mapping[str, str], prefixes: Sequence[Path]) -> dict[str, str]:
    """Names of compilers that no prefix has -> the compiler of a prefix that the variables mean by them."""
    own = os.pathsep.join(f"{prefix}/bin" for prefix in prefixes)
    found: dict[str, str] = {}
    for name, variable in _NAMES.items():
        words = shlex.split(env.get(variable, ""))
        meant = shutil.which(words[0], path=own) if words else None
        if meant is not None and shutil.which(name, path=own) is None:
            found[name] = meant
    return found
