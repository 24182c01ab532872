"""How git is run: with which settings and variables, and what an error of it says."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

from axletree.core.errors import HostError, Problem
from axletree.host.indexes import redact
from axletree.host.run import Finished, finish

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

_MISLEADING = re.compile(
    r"GIT_(DIR|WORK_TREE|INDEX_FILE|OBJECT_DIRECTORY|NAMESPACE|PREFIX|COMMON_DIR|CONFIG|CONFIG_PARAMETERS)"
)
"""Variables that point git at another repository, as they do inside a hook, or hand on another command's settings."""
_SETTINGS = (
    f"core.hooksPath={os.devnull}",
    "core.fsmonitor=false",
    "core.quotePath=false",
    "advice.detachedHead=false",
    "submodule.recurse=false",
    "fetch.recurseSubmodules=false",
    "fetch.prune=false",
    "fetch.pruneTags=false",
    "gc.auto=0",
    "maintenance.auto=false",
    "protocol.allow=never",
)
_ADDRESS_IN_TEXT = re.compile(r"[A-Za-z][A-Za-z0-9+.-]{0,30}://[^\s'\"]+")


def git_environ(environ: Mapping[str, str]) -> dict[str, str]:
    """The variables that git starts with: it never asks at a terminal, and speaks English."""
    kept = {name: value for name, value in environ.items() if not _MISLEADING.fullmatch(name)}
    return kept | {"GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C"}


def finish_git(
    arguments: Sequence[str],
    *,
    folder: Path,
    environ: Mapping[str, str],
    protocols: Sequence[str],
    text: str = "",
    held: Sequence[int] = (),
) -> Finished:
    """Run git; what its exit code means is the caller's business. File names that are no UTF-8 pass unchanged.

    Args:
        arguments: its subcommand with what belongs to it.
        folder: where it runs.
        environ: its variables, from :func:`git_environ`.
        protocols: those that it may use; no other.
        text: what it reads.
        held: file descriptors that it inherits.

    Raises:
        HostError: git is not installed, or the folder is gone.
    """
    settings = [*_SETTINGS, *(f"protocol.{name}.allow=always" for name in protocols)]
    command = ["git", *(part for setting in settings for part in ("-c", setting)), *arguments]
    if not folder.is_dir():
        raise HostError(Problem(file=str(folder), message="the folder no longer exists"))
    try:
        return finish(command, cwd=folder, environ=environ, text=text, held=held)
    except HostError as error:
        raise HostError("git is not installed", hint="install git, for example with `apt-get install git`") from error


def git_failure(subcommand: str, done: Finished, *, place: str) -> HostError:
    """The error of a git that failed: its last lines, without passwords."""
    text = _ADDRESS_IN_TEXT.sub(lambda match: redact(match.group()), done.ending())
    return HostError(Problem(file=place, message=f"git {subcommand} failed with {text}"))
