"""Have a recipe's git repositories on disk, side by side, each at the commit that belongs to the others."""

from __future__ import annotations

import re
import shutil
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import msgspec

from axletree.app.recipes import load_recipe
from axletree.core.errors import AxletreeError, HostError, Problem, UsageError
from axletree.host.checkout import sync_checkout, sync_lock
from axletree.host.indexes import redact
from axletree.host.worktree import open_worktree
from axletree.recipe.addresses import COMMIT
from axletree.recipe.checkouts import Repository, repositories
from axletree.recipe.faults import suggestion

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

_PIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/+-]*")
State = Literal["cloned", "updated", "current", "would clone", "would update", "unknown", "refused", "failed"]


class RepositoryReport(msgspec.Struct, frozen=True, kw_only=True):
    """The state of one repository of a recipe."""

    name: str
    url: str
    folder: str
    ref: str | None
    """The requested ref, or the content of the pin file; ``None`` if it could not be read."""
    pin: str | None
    """The file that contains the ref."""
    state: State
    """``refused``: work of the user would be lost. ``unknown``: a dry run cannot know before the main repository
    exists."""
    commit: str | None = None
    before: str | None = None
    submodules: int = 0
    notes: tuple[str, ...] = ()
    problems: tuple[Problem, ...] = ()

    @property
    def good(self) -> bool:
        """Whether it is, or would be, as the recipe asks."""
        return self.state not in {"refused", "failed"}


class SyncedSources(msgspec.Struct, frozen=True, kw_only=True):
    """A recipe's repositories: report of ``source sync``."""

    into: Path
    """Folder of the checkouts."""
    repositories: tuple[RepositoryReport, ...]


def sync_sources(
    name_or_path: str,
    *,
    into: Path,
    environ: Mapping[str, str],
    ref: str | None = None,
    only: Sequence[str] = (),
    sets: Sequence[str] = (),
    dry_run: bool = False,
    started: Callable[[str], None] | None = None,
) -> Iterator[RepositoryReport]:
    """Clone or update a recipe's repositories in its order; one that fails keeps none of the others from it.

    Args:
        name_or_path: the recipe.
        into: folder that holds the checkouts.
        environ: variables that git starts from.
        ref: tag, branch or commit of the main checkout, instead of the recipe's.
        sets: changes of the recipe, ``KEY=VALUE`` each.
        only: names of repositories; default is all. Pins are then read from the main checkout as it is.
        dry_run: ask the repositories, change nothing.
        started: told the name of each repository before it is worked on.

    Raises:
        UsageError: there is no such repository, or the recipe names none.
        RecipeError: the recipe is wrong.
        HostError: git is not installed, or another sync is at work in the folder.
    """
    if shutil.which("git", path=environ.get("PATH")) is None:
        raise HostError("git is not installed", hint="install git, for example with `apt-get install git`")
    loaded = load_recipe(name_or_path, sets)
    wanted = repositories(loaded.recipe)
    _check_names(wanted, only, str(loaded.path))
    main = wanted[0] if ref is None else msgspec.structs.replace(wanted[0], ref=ref)
    wanted = (main, *wanted[1:])
    nothing_there = dry_run and not into.is_dir()
    with nullcontext(()) if nothing_there else sync_lock(into) as held:
        yield from _each(wanted, only, into, environ, held, dry_run=dry_run, asked=ref, started=started)


def _check_names(wanted: Sequence[Repository], only: Sequence[str], file: str) -> None:
    if not wanted:
        hint = 'add a git source, or a table such as [checkouts.vision] with git = "https://..."'
        raise UsageError(Problem(file=file, message="the recipe has no git repository", hint=hint))
    names = [repository.name for repository in wanted]
    problems = [
        Problem(
            message=f"{file} does not define a repository called {name!r}",
            hint=suggestion(name, names, "its repositories"),
        )
        for name in only
        if name not in names
    ]
    if problems:
        raise UsageError(*problems)


def _each(
    wanted: Sequence[Repository],
    only: Sequence[str],
    into: Path,
    environ: Mapping[str, str],
    held: tuple[int, ...],
    *,
    dry_run: bool,
    asked: str | None,
    started: Callable[[str], None] | None,
) -> Iterator[RepositoryReport]:
    main: RepositoryReport | None = None
    for repository in wanted:
        if only and repository.name not in only:
            continue
        if started is not None:
            started(repository.name)
        ref = repository.ref
        try:
            if repository.pin is not None:
                ref = None
                commit = _pinning(wanted[0], main, into, environ, asked=asked, dry_run=dry_run)
                ref = None if commit is None else _read_pin(wanted[0], repository.pin, commit, into, environ)
            if ref is None:
                report = _report(repository, None, state="unknown")
            else:
                synced = sync_checkout(
                    into / repository.folder,
                    url=repository.git,
                    ref=ref,
                    submodules=repository.submodules,
                    environ=environ,
                    held=held,
                    dry_run=dry_run,
                )
                report = _report(repository, ref, state=synced.state)
                report = msgspec.structs.replace(report, **msgspec.structs.asdict(synced))
        except AxletreeError as error:
            state: State = "refused" if isinstance(error, UsageError) else "failed"
            report = _report(repository, ref, state=state, problems=error.problems)
        except OSError as error:  # a folder that may not be written, a disk that is full
            problem = Problem(file=error.filename, message=error.strerror or str(error))
            report = _report(repository, ref, state="failed", problems=(problem,))
        if repository is wanted[0]:
            main = report
        yield report


def _report(
    repository: Repository, ref: str | None, *, state: State, problems: tuple[Problem, ...] = ()
) -> RepositoryReport:
    return RepositoryReport(
        name=repository.name,
        url=redact(repository.git),
        folder=repository.folder,
        ref=ref,
        pin=repository.pin,
        state=state,
        problems=problems,
    )


def _pinning(
    main: Repository,
    report: RepositoryReport | None,
    into: Path,
    environ: Mapping[str, str],
    *,
    asked: str | None,
    dry_run: bool,
) -> str | None:
    """The commit of the main checkout that pins are read from; ``None`` where a dry run does not have it yet.

    Never that of an older checkout: a library at another release's pin is what pins are there to prevent.
    """
    git = open_worktree(into / main.folder, url=main.git, environ=environ)
    if report is not None:
        if report.commit is None:
            raise HostError(
                f"the pin for this checkout is in {main.name}, which could not be synced (see the error above)"
            )
        there = git.folder.is_dir() and git.has(report.commit)
        return report.commit if there or not dry_run else None
    hint = f"run `axletree source sync` for {main.name} first"
    if not git.folder.is_dir():
        raise HostError(f"the pin for this checkout is in {main.name}, which is not checked out yet", hint=hint)
    if asked is None:
        commit = git.commit_of("HEAD")
    else:
        commit = git.commit_of(asked if COMMIT.fullmatch(asked) else f"refs/tags/{asked}")
        commit = commit or git.commit_of(f"refs/remotes/origin/{asked}")
    if commit is None:
        raise HostError(
            f"the pin for this checkout is in {main.name}, which does not have {asked or 'a commit'} yet", hint=hint
        )
    return commit


def _read_pin(main: Repository, pin: str, commit: str, into: Path, environ: Mapping[str, str]) -> str:
    """What a pin file of the main checkout says: a commit, or a tag."""
    git = open_worktree(into / main.folder, url=main.git, environ=environ)
    shown = git.attempt("cat-file", "blob", f"{commit}:{pin}")
    where = f"{main.folder}/{pin}"
    if shown.code != 0:
        hint = "set a ref for this checkout, or correct the path of the pin file for this release"
        raise HostError(Problem(file=where, message=f"the file does not exist in commit {commit[:12]}", hint=hint))
    text = shown.text.strip()
    if not _PIN.fullmatch(text):
        first = text.splitlines()[0][:60] if text else "nothing"
        raise HostError(
            Problem(
                file=where, message=f"in commit {commit[:12]}, the file contains {first!r} instead of a commit or tag"
            )
        )
    return text
