"""PyTorch up to 2.13: a setup.py that configures CMake with what it makes of the environment.

It installs into the source. Its own second run would not configure again while there is a cache, whatever changed; so
it configures, and CMake builds.
"""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

from axletree.buildsystem.cmake.cache import CACHE_FILE, parse_cache
from axletree.buildsystem.cmake.local_install import unlisted_target
from axletree.core.errors import StageError
from axletree.execute.drivers.installed import clear_leftovers, installed_files
from axletree.execute.drivers.job import configure, finish, install_arguments, own_files, run_tool
from axletree.execute.process import check_program

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from axletree.execute.context import Context
    from axletree.execute.drivers.job import Job


def configure_again(
    context: Context, source: Path, build: Path, env: Mapping[str, str], watch: Callable[[str], None]
) -> None:
    """Run CMake in a folder that has its cache, where setup.py would not; ``watch`` gets each line.

    Raises:
        StageError: CMake fails, or ``watch`` raises it.
    """
    check_program(
        ["cmake", str(build)],
        cwd=source,
        env=env,
        log=context.log,
        progress=context.progress,
        what="configuring",
        watch=watch,
    )


def build(job: Job) -> None:
    """Configure, build and install; ``job.out`` gets what was installed, ``torch/{bin,include,lib,share}``.

    Raises:
        StageError: setup.py, CMake or the compiler fails, or a feature is not as expected; or CMake is too old to tell
            what the targets install.
    """

    def run(anew: bool, watch: Callable[[str], None]) -> None:  # noqa: FBT001 (one of two values, always both given)
        if anew:
            run_tool(job, "python", "setup.py", "build", "--cmake-only", what="configuring", watch=watch)
        if job.options or not anew:
            defines = [f"-D{name}={value}" for name, value in job.options.items()]
            run_tool(job, "cmake", *defines, job.build, what="configuring", watch=watch)

    clear_leftovers(job.source, job.build, ours=own_files(job.context))
    configure(job, run, driver="setup.py")
    _check_targets(job)
    job.context.progress("compiling")
    run_tool(job, "cmake", "--build", job.build, *install_arguments(job), what="the build")
    finish(job, driver="setup.py")
    for path in installed_files(job.source, job.build):
        target = job.out / path
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(job.source / path, target, follow_symlinks=False)


def _check_targets(job: Job) -> None:
    """Refuse what would be compiled in vain: files that no list of CMake's names are not found in the source."""
    text = (job.build / CACHE_FILE).read_bytes().decode("utf-8", "surrogateescape")
    cache = parse_cache(text, file=CACHE_FILE)
    target = unlisted_target(job.targets, cache)
    if target is not None:
        version = ".".join(cache.get(f"CMAKE_CACHE_{part}_VERSION") or "?" for part in ("MAJOR", "MINOR", "PATCH"))
        raise StageError(
            f"CMake {version} does not list the files that target {target} installs",
            hint="use CMake 3.31 or later, or target install",
        )
