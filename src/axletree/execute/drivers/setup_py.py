"""PyTorch up to 2.13: a setup.py that configures CMake with what it makes of the environment.

It installs into the source's own ``torch`` folder. Its own second run would not configure again while there is a cache,
whatever changed; so it configures, and CMake builds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from axletree.execute.drivers.job import configure, run_tool
from axletree.store.disk import remove_tree

if TYPE_CHECKING:
    from collections.abc import Callable

    from axletree.execute.drivers.job import Job

_INSTALLED = ("bin", "include", "lib", "share", "test")
"""Folders of ``torch`` that CMake installs into, as far as the source has no files there."""


def build(job: Job) -> None:
    """Configure, build and install; ``job.out`` gets ``torch/{bin,include,lib,share,test}``.

    Raises:
        StageError: setup.py, CMake or the compiler fails, or a feature is not as expected.
    """

    def run(watch: Callable[[str], None]) -> None:
        run_tool(job, "python", "setup.py", "build", "--cmake-only", what="configuring", watch=watch)
        if job.options:
            defines = [f"-D{name}={value}" for name, value in job.options.items()]
            run_tool(job, "cmake", *defines, job.build, what="configuring", watch=watch)

    configure(job, run, driver="setup.py")
    package = job.source / "torch"
    ours = {entry.path for entry in job.context.tree("source").entries}
    for part in _INSTALLED:  # of an earlier install, perhaps of other settings
        if not any(path.startswith(f"torch/{part}/") for path in ours):
            remove_tree(package / part)
    targets = [word for target in job.targets or ("install",) for word in ("--target", target)]
    job.context.progress("compiling")
    run_tool(job, "cmake", "--build", job.build, *targets, what="the build")
    (job.out / "torch").mkdir()
    for part in _INSTALLED:
        if (package / part).is_dir():
            run_tool(job, "cp", "-a", package / part, job.out / "torch", what="copying what was installed")
