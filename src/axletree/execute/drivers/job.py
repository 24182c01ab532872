"""What every driver gets, and what it may rely on."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from axletree.buildsystem.cmake.cache import parse_cache
from axletree.buildsystem.cmake.features import check_features
from axletree.buildsystem.pytorch.forwarding import changed
from axletree.core.errors import Problem, StageError
from axletree.execute.context import Context
from axletree.execute.process import check_program
from axletree.store.disk import remove_tree

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

CACHE = "CMakeCache.txt"
_STAMP = "axletree-configured.json"
_OF_EACH_RUN = frozenset(
    {"CMAKE_BUILD_PARALLEL_LEVEL", "MAKEFLAGS", "MAX_JOBS", "AXLETREE_JOBS", "SOURCE_DATE_EPOCH", "DIST_EXTRA_CONFIG"}
)
"""Variables that say how a build runs, not what it makes."""


class Job(msgspec.Struct, frozen=True, kw_only=True):
    """A project that is to be configured, built and installed."""

    context: Context
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
    expect: dict[str, str]


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


def run_commands(context: Context, source: Path, env: Mapping[str, str]) -> None:
    """Run what the recipe does to the source before it is configured.

    Raises:
        StageError: a command fails.
    """
    commands = context.parameters.get("commands")
    if commands:
        check_program(
            ["/bin/bash", "-euo", "pipefail", "-c", "\n".join(commands)],
            cwd=source,
            env=env,
            log=context.log,
            progress=context.progress,
            what="a command of the stage",
        )


def configure(job: Job, run: Callable[[Callable[[str], None]], None], *, driver: str) -> None:
    """Configure the build folder where it was not configured in exactly this way, and check what CMake enabled.

    ``run`` does it, and passes on each line that is printed. Where something differs, CMake's cache goes and what was
    compiled stays: an edited cache would keep what CMake had found by the old settings, and ninja compiles again only
    what has another command now. With another compiler everything goes.

    Raises:
        StageError: CMake fails, or a feature is not as expected.
    """
    wanted = _settings(job, driver)
    before = _read_stamp(job.build / _STAMP)
    cache = job.build / CACHE
    if before == wanted and cache.exists():
        return
    if before is not None and cache.exists():
        kind = changed(before["env"], wanted["env"], "setup.py").kind
        job.context.log.say("settings changed: configuring again" + (" from nothing" if kind == "anew" else ""))
        if kind == "anew":
            remove_tree(job.build)
    cache.unlink(missing_ok=True)
    (job.build / _STAMP).unlink(missing_ok=True)
    job.context.progress("configuring")
    lines: list[str] = []
    run(lines.append)
    check_expectations(job.expect, cache, lines)
    (job.build / _STAMP).write_bytes(msgspec.json.encode(wanted))


def _settings(job: Job, driver: str) -> dict[str, Any]:
    work = str(job.context.work)
    env = {name: value for name, value in job.env.items() if name not in _OF_EACH_RUN and work not in value}
    return {"driver": driver, "options": job.options, "env": env, "expect": job.expect}


def _read_stamp(path: Path) -> dict[str, Any] | None:
    try:
        return msgspec.json.decode(path.read_bytes(), type=dict[str, Any])
    except (OSError, msgspec.MsgspecError):
        return None


def check_expectations(expected: Mapping[str, str], cache: Path, lines: list[str]) -> None:
    """Compare what CMake enabled with what the recipe expects.

    Raises:
        StageError: something is otherwise; all of it.
        IntegrityError: the cache is damaged.
    """
    if not expected:
        return
    text = cache.read_bytes().decode("utf-8", "surrogateescape")
    mismatches = check_features(expected, parse_cache(text, file=CACHE), lines)
    if mismatches:
        raise StageError(
            *(
                Problem(message=str(each), excerpt="\n".join(each.why) or None, hint=each.hint or None)
                for each in mismatches
            )
        )


def has_ninja(job: Job) -> bool:
    """Whether the stage's programs include ninja."""
    return any(shutil.which(name, path=job.env["PATH"]) for name in ("ninja", "ninja-build"))
