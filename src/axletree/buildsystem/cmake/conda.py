"""What conda's compilers ask of CMake: ``CMAKE_ARGS``, which their activation scripts set for the build scripts."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

_PREFIX_PATH = "CMAKE_PREFIX_PATH"


def conda_defines(env: Mapping[str, str]) -> dict[str, str]:
    """CMake variables of ``CMAKE_ARGS``, by ``NAME`` or ``NAME:TYPE``; without the install prefix, which is ours.

    There are none outside of conda environments.
    """
    words = shlex.split(env.get("CMAKE_ARGS", "")) if "BUILD_PREFIX" in env else []
    pairs = (word.removeprefix("-D").partition("=") for word in words if word.startswith("-D"))
    return {name: value for name, _, value in pairs if name.partition(":")[0] != "CMAKE_INSTALL_PREFIX"}


def told_to_setup_py(env: Mapping[str, str], *, driver: str, rules: str | None) -> dict[str, str]:
    """The variables, as the ``setup.py`` of PyTorch up to 2.11 needs them in conda environments; others as they are.

    It does not read ``CMAKE_ARGS``, but defines a CMake variable for each variable whose name begins with ``CMAKE_``.
    So it turns ``CMAKE_PREFIX_PATH`` into a list of CMake, in which colons separate nothing.

    Args:
        env: variables of the build.
        driver: what configures it.
        rules: how PyTorch's own tree makes CMake variables of the environment; ``None`` for other projects.
    """
    if "BUILD_PREFIX" not in env or (driver, rules) != ("setup.py", "setup.py"):
        return dict(env)
    defines = {name.partition(":")[0]: value for name, value in conda_defines(env).items()}
    result = {name: value for name, value in defines.items() if name.startswith("CMAKE_")} | dict(env)
    if _PREFIX_PATH in env:
        result[_PREFIX_PATH] = env[_PREFIX_PATH].replace(":", ";")
    return result
