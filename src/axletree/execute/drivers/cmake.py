"""A tree that CMake alone builds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from axletree.execute.drivers.job import configure, finish, has_ninja, install_arguments, run_tool
from axletree.store.disk import remove_tree

if TYPE_CHECKING:
    from collections.abc import Callable

    from axletree.execute.drivers.job import Job

_DEFAULTS = {
    "CMAKE_BUILD_TYPE": "Release",
    # So that paths of the build are in no library, whose size and build ID would depend on them.
    "CMAKE_BUILD_RPATH_USE_ORIGIN": "ON",
}
"""Where neither the recipe's options nor its environment say otherwise."""


def build(job: Job) -> None:
    """Configure, build and install into ``job.out``.

    Raises:
        StageError: CMake or the compiler fails, or a feature is not as expected.
    """
    # One path for each workspace: an install prefix is a setting, and the folder for results is another each time.
    install = job.build.parent / "install"
    remove_tree(install)
    given = {name.partition(":")[0] for name in job.options} | job.env.keys()
    options = {name: value for name, value in _DEFAULTS.items() if name not in given}
    options |= {**job.options, "CMAKE_INSTALL_PREFIX:PATH": str(install / job.prefix)}
    generator = ["-G", "Ninja"] if has_ninja(job) and "CMAKE_GENERATOR" not in job.env else []

    def run(_anew: bool, watch: Callable[[str], None]) -> None:  # noqa: FBT001 (one of two values, always both given)
        defines = [f"-D{name}={value}" for name, value in options.items()]
        run_tool(job, "cmake", *generator, "-S", job.source, "-B", job.build, *defines, what="configuring", watch=watch)

    configure(job, run, driver="cmake", prefix=job.prefix)
    job.context.progress("compiling")
    run_tool(job, "cmake", "--build", job.build, *install_arguments(job), what="the build")
    finish(job, driver="cmake", prefix=job.prefix)
    if install.exists():
        job.out.rmdir()
        install.rename(job.out)
