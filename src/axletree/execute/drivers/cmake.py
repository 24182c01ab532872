"""A tree that CMake alone builds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from axletree.execute.drivers.job import configure, has_ninja, run_tool
from axletree.store.disk import remove_tree

if TYPE_CHECKING:
    from collections.abc import Callable

    from axletree.execute.drivers.job import Job


def build(job: Job) -> None:
    """Configure, build and install into ``job.out``.

    Raises:
        StageError: CMake or the compiler fails, or a feature is not as expected.
    """
    # One path for each workspace: an install prefix is a setting, and the folder for results is another each time.
    install = job.build.parent / "install"
    remove_tree(install)
    options = {"CMAKE_BUILD_TYPE": "Release", **job.options, "CMAKE_INSTALL_PREFIX:PATH": str(install / job.prefix)}
    generator = ["-G", "Ninja"] if has_ninja(job) and "CMAKE_GENERATOR" not in job.env else []

    def run(watch: Callable[[str], None]) -> None:
        defines = [f"-D{name}={value}" for name, value in options.items()]
        run_tool(job, "cmake", *generator, "-S", job.source, "-B", job.build, *defines, what="configuring", watch=watch)

    configure(job, run, driver="cmake")
    targets = [word for target in job.targets or ("install",) for word in ("--target", target)]
    job.context.progress("compiling")
    run_tool(job, "cmake", "--build", job.build, *targets, what="the build")
    if install.exists():
        job.out.rmdir()
        install.rename(job.out)
