"""A tree that CMake alone builds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from axletree.buildsystem.cmake.conda import conda_defines
from axletree.disk import remove_tree
from axletree.execute.drivers.job import configure, finish, install_arguments, run_tool
from axletree.host.room import find_program, unaliased

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from axletree.execute.drivers.job import Job

_DEFAULTS = {
    "CMAKE_BUILD_TYPE": "Release",
    # So that paths of the build are in no library, whose size and build ID would depend on them.
    "CMAKE_BUILD_RPATH_USE_ORIGIN": "ON",
}
"""Where neither the recipe's options nor its environment say otherwise."""


def configure_command(
    source: Path,
    build: Path,
    *,
    env: Mapping[str, str],
    options: Mapping[str, str],
    prefix: Path,
    defaults: Mapping[str, str],
) -> list[str]:
    """The command that configures a build folder, for ninja where there is one.

    Args:
        source: folder of the project.
        build: the folder.
        env: variables of the build.
        options: CMake variables, ``NAME`` or ``NAME:TYPE``.
        prefix: where it is installed.
        defaults: variables that count where neither ``options`` nor ``env`` says otherwise.
    """
    given = {name.partition(":")[0] for name in options} | env.keys()
    chosen = {name: value for name, value in defaults.items() if name not in given}
    chosen = {**conda_defines(env), **chosen, **options, "CMAKE_INSTALL_PREFIX:PATH": str(prefix)}
    ninja = any(find_program(name, env["PATH"]) for name in ("ninja", "ninja-build"))
    generator = ["-G", "Ninja"] if ninja and "CMAKE_GENERATOR" not in env else []
    defines = [f"-D{name}={value}" for name, value in chosen.items()]
    return ["cmake", *generator, "-S", str(source), "-B", str(build), *defines]


def build(job: Job) -> None:
    """Configure, build and install into ``job.out``.

    Raises:
        StageError: CMake or the compiler fails, or a feature is not as expected.
    """
    # One path for each workspace: an install prefix is a setting, and the folder for results is another each time.
    install = job.build.parent / "install"
    remove_tree(install)
    command = configure_command(
        job.source, job.build, env=job.env, options=job.options, prefix=install / job.prefix, defaults=_DEFAULTS
    )

    def run(_anew: bool, watch: Callable[[str], None]) -> None:  # noqa: FBT001 (one of two values, always both given)
        run_tool(job, *command, what="configuring", watch=watch)

    configure(job, run, driver="cmake", prefix=job.prefix)
    job.context.progress("compiling")
    run_tool(job, "cmake", "--build", job.build, *install_arguments(job), what="the build")
    finish(job, driver="cmake", prefix=job.prefix)
    if install.exists():
        job.out.rmdir()
        unaliased(install).rename(job.out)
