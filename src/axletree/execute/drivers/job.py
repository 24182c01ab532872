"""What every driver gets, and what it may rely on."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from axletree.buildsystem.cmake.cache import CACHE_FILE
from axletree.buildsystem.pytorch.forwarding import Era
from axletree.execute.context import ActionContext
from axletree.execute.drivers.configure import Build, check_configured, make_room, vouch
from axletree.execute.process import check_program
from axletree.plan.actions.project import ProjectParameters

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from axletree.execute.workspace import Workplace


class Job(msgspec.Struct, frozen=True, kw_only=True):
    """A project that is to be configured, built and installed."""

    context: ActionContext[ProjectParameters]
    source: Path
    build: Path
    """Folder that CMake builds in; kept with the workspace."""
    out: Path
    """Empty folder for what is installed."""
    env: dict[str, str]
    options: dict[str, str]
    """CMake variables of the recipe."""
    targets: tuple[str, ...]
    prefix: str
    rules: Era | None
    """How PyTorch's own tree makes CMake variables of the environment; ``None`` for other projects."""


def own_files(context: ActionContext[ProjectParameters]) -> frozenset[str]:
    """Paths of the source itself, relative to the folder in which the stage works."""
    directory = context.parameters.directory
    prefix = "" if directory == "." else f"{directory}/"
    paths = (entry.path for entry in context.tree("source").entries if entry.path.startswith(prefix))
    return frozenset(path.removeprefix(prefix) for path in paths)


def run_tool(job: Job, *words: str | Path, what: str, watch: Callable[[str], None] | None = None) -> None:
    """Run a program in the source's folder, its output in the log; ``watch`` gets each line.

    Raises:
        StageError: it fails.
    """
    context = job.context
    check_program(
        [str(word) for word in words],
        cwd=job.source,
        env=job.env,
        log=context.log,
        progress=context.progress,
        what=what,
        watch=watch,
    )


def build_folder(place: Workplace, source: Path, driver: str) -> Path:
    """Where CMake builds: setup.py has one place for it, others may have one outside of the source."""
    return source / "build" if driver == "setup.py" else place.root / "build"


def configure(job: Job, run: Callable[[bool, Callable[[str], None]], None], *, driver: str, **more: str) -> None:
    """Configure the build folder by ``run``, and check what CMake enabled before anything is compiled.

    ``run`` gets whether the cache is gone, and what wants each line that is printed.

    Raises:
        StageError: CMake fails, or a feature is not as expected.
    """
    anew = make_room(job.context, job.build, env=job.env, settings=_settings(job, driver, more))
    job.context.progress("configuring")
    lines: list[str] = []
    run(anew, lines.append)
    check_configured(build_of(job, driver), job.build / CACHE_FILE, lines)


def build_of(job: Job, driver: str) -> Build:
    """The job as what is compared with the recipe once CMake has configured."""
    return Build(context=job.context, driver=driver, rules=job.rules, env=job.env)


def finish(job: Job, *, driver: str, **more: str) -> None:
    """Say that the folder holds a whole build of these settings."""
    vouch(job.context, job.build, env=job.env, settings=_settings(job, driver, more))


def _settings(job: Job, driver: str, more: Mapping[str, str]) -> dict[str, str]:
    return {"driver": driver, **more, **job.options}


def install_arguments(job: Job) -> list[str]:
    """Words for ``cmake --build`` that name what is built."""
    return [word for target in job.targets or ("install",) for word in ("--target", target)]
