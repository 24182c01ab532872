"""Brings a git repository of the user's to a commit, with its submodules: cloned where it is not there, else updated.

A clone is made in a folder beside and renamed when it is whole; what a killed one has fetched is used by the next. An
update first fetches all that it needs, then looks for what it could lose (:mod:`axletree.host.obstacles`), and only
then changes files. While it does, a ref of our own says so, and the next sync finishes what a killed one began.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import time
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import msgspec

from axletree.core.errors import HostError, Problem, UsageError
from axletree.core.near import similar
from axletree.disk import lock_now
from axletree.host.files import file_errors
from axletree.host.indexes import redact
from axletree.host.obstacles import SYNCED, WANTED, find_obstacles, populated
from axletree.host.worktree import links, open_worktree, same_repository, submodules_of
from axletree.recipe.addresses import COMMIT

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from axletree.host.worktree import Worktree

State = Literal["cloned", "updated", "current", "would clone", "would update"]
_PATIENCE = 10.0
_MOVED = "refs/axletree/moved"


class Synced(msgspec.Struct, frozen=True, kw_only=True):
    """What became of a repository."""

    state: State
    commit: str
    before: str | None = None
    """The commit that was checked out before."""
    submodules: int = 0
    """Submodules that are checked out, nested ones too."""
    notes: tuple[str, ...] = ()
    """What is worth knowing: a branch that was left, a tag that has moved."""


@contextlib.contextmanager
def sync_lock(folder: Path) -> Iterator[tuple[int, ...]]:
    """Keep other syncs out of a folder of checkouts; gives the descriptor that git must inherit.

    So the lock outlives a killed run as long as a git of that run is at work.

    Raises:
        HostError: another one is at work, or the folder can't be made.
    """
    with file_errors(folder, "the folder cannot be used"):
        folder.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        end = time.monotonic() + _PATIENCE
        while not lock_now(descriptor):
            if time.monotonic() > end:
                hint = "wait until it finishes; if it was killed, wait until the git processes that it started end"
                message = "another sync is already running in this folder"
                raise HostError(Problem(file=str(folder), message=message, hint=hint))
            time.sleep(0.1)
        yield (descriptor,)
    finally:
        os.close(descriptor)


def sync_checkout(
    dest: Path,
    *,
    url: str,
    ref: str,
    submodules: bool,
    environ: Mapping[str, str],
    held: tuple[int, ...] = (),
    dry_run: bool = False,
) -> Synced:
    """Have a ref of a repository checked out in ``dest``, exactly.

    Args:
        dest: folder of the work tree.
        url: address, https:// or file://.
        ref: tag, branch or full commit. A tag goes before a branch of that name.
        submodules: whether submodules are checked out, recursively.
        environ: variables that git starts from.
        held: what :func:`sync_lock` gave.
        dry_run: ask the repository, change nothing.

    Raises:
        UsageError: something of the user's would be lost: all of it, each with what to do; ``dest`` is something else
            than a clone of that repository; or ``ref`` is no ref.
        HostError: git is missing or fails; there is no such ref.
    """
    if ref.startswith("-") or not ref.strip() or any(char in ref for char in " \t\n~^:?*[\\"):
        raise UsageError(f"{ref!r} is not a valid tag, branch or commit")
    if dest.is_dir() and not any(dest.iterdir()):
        dest.rmdir()
    if not os.path.lexists(dest):
        return _clone(dest, url=url, ref=ref, submodules=submodules, environ=environ, held=held, dry_run=dry_run)
    if not os.path.lexists(dest / ".git"):
        message = "this folder blocks the checkout because it is not a git repository"
        raise UsageError(
            Problem(
                file=str(dest),
                message=message,
                hint="move this folder elsewhere, or sync into a different folder with --into",
            )
        )
    git = open_worktree(dest, url=url, environ=environ, held=held, refresh=not dry_run)
    remote = _remote(git, url)
    if dry_run:
        return _foresee(git, url=url, ref=ref, submodules=submodules)
    finished = _finish_killed(git, url, submodules=submodules)
    return _update(git, url=url, ref=ref, remote=remote, submodules=submodules, finished=finished)


def _clone(
    dest: Path,
    *,
    url: str,
    ref: str,
    submodules: bool,
    environ: Mapping[str, str],
    held: tuple[int, ...],
    dry_run: bool,
) -> Synced:
    if dry_run:
        asked = open_worktree(_existing(dest), url=url, environ=environ, held=held)
        return Synced(state="would clone", commit=_ask(asked, url, ref)[1])
    beside = dest.parent / f".{dest.name}.axletree-clone"
    beside.mkdir(parents=True, exist_ok=True)
    git = open_worktree(beside, url=url, environ=environ, held=held)
    _remove_leftovers(beside / ".git")
    git.run("init", "--quiet")
    if git.attempt("remote", "set-url", "origin", url).code != 0:
        git.run("remote", "add", "origin", url)
    try:
        commit, _ = _fetch(git, url, ref, remote="origin")
        _check_out(git, commit, url, submodules=submodules, force=True)
    except HostError as error:
        hint = f"run the command again: complete downloads are kept in {beside} and are not fetched again"
        raise HostError(*error.problems, hint=hint) from error
    count = _mark(git)
    beside.rename(dest)
    return Synced(state="cloned", commit=commit, submodules=count)


def _existing(folder: Path) -> Path:
    return next(parent for parent in folder.absolute().parents if parent.is_dir())


def _remote(git: Worktree, url: str) -> str:
    """The remote that comes from an address.

    Raises:
        UsageError: none does, or the folder is no repository of its own.
    """
    place = str(git.folder)
    top = git.attempt("rev-parse", "--show-toplevel").text.rstrip("\n")
    if not top or Path(top) != git.folder.resolve():
        raise UsageError(Problem(file=place, message="the folder already exists, but is not a git repository"))
    listing = git.attempt("config", "-z", "--get-regexp", r"^remote\..*\.url$").text
    found = dict(entry.split("\n", 1) for entry in listing.split("\0") if "\n" in entry)
    for key, address in found.items():
        if same_repository(address, url):
            return key.removeprefix("remote.").removesuffix(".url")
    theirs = ", ".join(redact(address) for address in found.values()) or "none"
    hint = (
        f"if it is a fork, run `git -C {place} remote add upstream {redact(url)}`; otherwise, sync into a "
        "different folder with --into"
    )
    message = (
        f"the folder is a clone of a different repository: none of its remotes is {redact(url)} (remotes: {theirs})"
    )
    raise UsageError(Problem(file=place, message=message, hint=hint))


def _foresee(git: Worktree, *, url: str, ref: str, submodules: bool) -> Synced:
    """What an update would do."""
    _, commit = _ask(git, url, ref)
    interrupted = git.commit_of(WANTED)
    notes = (f"would first finish the interrupted update to {interrupted[:12]}",) if interrupted else ()
    problems = find_obstacles(git, interrupted or commit, killed=bool(interrupted), submodules=submodules)
    if problems:
        raise UsageError(*problems)
    before = git.commit_of("HEAD")
    state: State = "current" if before == commit and not interrupted else "would update"
    return Synced(state=state, commit=commit, before=before, notes=notes)


def _finish_killed(git: Worktree, url: str, *, submodules: bool) -> str | None:
    """Finish an update that was killed; returns its commit where there was one.

    Raises:
        UsageError: somebody has worked in there since.
    """
    commit = git.commit_of(WANTED)
    if commit is None:
        return None
    _remove_leftovers(git.git_folder)
    problems = find_obstacles(git, commit, killed=True, submodules=submodules)
    if problems:
        raise UsageError(*problems)
    _check_out(git, commit, url, submodules=submodules, force=True)
    _mark(git)
    git.run("update-ref", "-d", WANTED)
    return commit


def _update(git: Worktree, *, url: str, ref: str, remote: str, submodules: bool, finished: str | None) -> Synced:
    before = git.commit_of("HEAD")
    branch = git.attempt("symbolic-ref", "--quiet", "--short", "HEAD").text.strip()
    commit, notes = _fetch(git, url, ref, remote=remote)
    if submodules:
        _fetch_submodules(git, commit, url)
    problems = find_obstacles(git, commit, submodules=submodules)
    if problems:
        raise UsageError(*problems)
    if finished is not None:
        notes = [f"finished the interrupted update to {finished[:12]}", *notes]
    left = links(git, before).keys() - links(git, commit).keys() if before is not None and submodules else ()
    notes += [f"no longer a submodule, left unchanged: {path}" for path in populated(git, set(left))]
    complete = before == commit and (not submodules or _complete(git))
    if not complete:
        _mark(git)
        git.run("update-ref", WANTED, commit)
        _check_out(git, commit, url, submodules=submodules, force=False)
        if branch and before != commit:
            notes.append(f"switched away from branch {branch}, which is unchanged")
    elif submodules:
        _sync_addresses(git, commit, url)
    count = _mark(git)
    git.attempt("update-ref", "-d", WANTED)
    state: State = "current" if complete and finished is None else "updated"
    return Synced(state=state, commit=commit, before=before, submodules=count, notes=tuple(notes))


def _ask(git: Worktree, url: str, ref: str) -> tuple[str, str]:
    """Full name and commit of a ref, as the repository has it now; a full commit is its own name.

    Raises:
        HostError: it has no such tag or branch; the nearest names are given.
    """
    if COMMIT.fullmatch(ref):
        return ref, ref
    names = [ref] if ref.startswith("refs/") else [f"refs/tags/{ref}", f"refs/heads/{ref}"]
    found = _list(git, url, *names, *(f"{name}^{{}}" for name in names))
    for name in names:
        if name in found:
            return name, found.get(f"{name}^{{}}", found[name])
    every = _list(git, url, "--heads", "--tags")
    known = {name.split("/", 2)[2] for name in every if name.count("/") > 1 and not name.endswith("^{}")}
    near = similar(ref, known)
    hint = f"did you mean {', '.join(near)}?" if near else "specify a tag, a branch or a full commit hash"
    raise HostError(Problem(message=f"{redact(url)} has no tag, branch or commit {ref!r}", hint=hint))


def _list(git: Worktree, url: str, *arguments: str) -> dict[str, str]:
    options = [argument for argument in arguments if argument.startswith("-")]
    patterns = [argument for argument in arguments if not argument.startswith("-")]
    lines = git.run("ls-remote", "--quiet", *options, "--", url, *patterns).splitlines()
    return {name: digest for digest, _, name in (line.partition("\t") for line in lines)}


def _fetch(git: Worktree, url: str, ref: str, *, remote: str) -> tuple[str, list[str]]:
    """Fetch all branches and a ref; returns its commit, and what changed that people should know."""
    name, commit = _ask(git, url, ref)
    fetch = ["fetch", "--quiet", "--no-recurse-submodules"]
    git.run(*fetch, "--prune", "--", url, f"+refs/heads/*:refs/remotes/{remote}/*")
    notes = []
    if name.startswith("refs/tags/"):
        old = git.attempt("rev-parse", "--quiet", "--verify", name).text.strip()
        before = git.commit_of(name)
        if old and before is not None and before != commit:
            git.run("update-ref", f"{_MOVED}/{name.removeprefix('refs/tags/')}/{old}", old)
            notes.append(f"tag {ref} has moved: it used to be {before[:12]}")
        git.run(*fetch, "--no-tags", "--", url, f"+{name}:{name}")
    elif not git.has(commit):
        git.run(*fetch, "--no-tags", "--", url, commit if name == commit else name)
    found = git.commit_of(name if name.startswith("refs/tags/") else commit)
    if found is None:
        raise HostError(Problem(message=f"{redact(url)} has no commit {commit}"))
    return found, notes


def _fetch_submodules(git: Worktree, commit: str, url: str) -> None:
    """Have the commits of submodules that are there already, from where ``commit`` says that they come from."""
    wanted = links(git, commit)
    urls = submodules_of(git, commit, url=url)
    for path in populated(git, set(wanted)):
        inner = git.at(path)
        if path not in urls:
            message = f"submodule {path!r} has no URL in .gitmodules at {commit[:12]}"
            raise HostError(Problem(file=str(git.folder), message=message))
        for what in ("+refs/heads/*:refs/remotes/origin/*", wanted[path]):
            if not inner.has(wanted[path]):
                inner.run("fetch", "--quiet", "--no-recurse-submodules", "--", urls[path].url, what)
        _fetch_submodules(inner, wanted[path], urls[path].url)


def _check_out(git: Worktree, commit: str, url: str, *, submodules: bool, force: bool) -> None:
    """Change the files. Without ``force`` git refuses what was changed since it was looked at."""
    options = ["--force"] if force else []
    if force or git.commit_of("HEAD") != commit:
        git.run("checkout", "--quiet", "--no-overwrite-ignore", *options, "--detach", commit)
    if not submodules:
        return
    _sync_addresses(git, commit, url)
    git.run("submodule", "--quiet", "update", "--init", "--recursive", "--checkout", *options)
    if not _complete(git):
        raise HostError(Problem(file=str(git.folder), message="the submodules are not at the recorded commits"))


def _sync_addresses(git: Worktree, commit: str, url: str) -> None:
    """Give submodules the addresses that ``.gitmodules`` has now.

    Git starts relative ones from the remote ``origin``, which in a fork's clone is the fork.
    """
    wanted = submodules_of(git, commit, url=url)
    git.run("submodule", "--quiet", "sync", "--recursive")
    listing = git.attempt("config", "-z", "--get-regexp", r"^submodule\..*\.url$").text
    there = dict(entry.split("\n", 1) for entry in listing.split("\0") if "\n" in entry)
    for path, module in wanted.items():
        key = f"submodule.{module.name}.url"
        if there.get(key) != module.url:
            git.run("config", key, module.url)
            if populated(git, {path}):
                git.at(path).run("remote", "set-url", "origin", module.url)


def _complete(git: Worktree) -> bool:
    """Whether all submodules are there, at the commits that the checkout names."""
    return all(line.startswith(" ") for line in git.run("submodule", "status", "--recursive").splitlines())


def _mark(git: Worktree) -> int:
    """Note in a repository and its submodules that what is checked out is nobody's work; returns their number."""
    head = git.commit_of("HEAD")
    if head is None:
        return 0
    if git.commit_of(SYNCED) != head:
        git.run("update-ref", SYNCED, head)
    inner = populated(git, set(links(git, head)))
    return len(inner) + sum(_mark(git.at(path)) for path in inner)


def _remove_leftovers(folder: Path) -> None:
    """Remove what a killed git leaves: locks, packs that did not come whole, submodules that were never there."""
    if not folder.is_dir():
        return
    for pattern in ("*.lock", "tmp_pack_*", "tmp_idx_*", "tmp_obj_*"):
        for path in folder.rglob(pattern):
            if path.is_file():
                path.unlink(missing_ok=True)
    for config in list((folder / "modules").rglob("config")) if (folder / "modules").is_dir() else ():
        repository = config.parent
        if (repository / "objects").is_dir() and not _has_head(repository):
            shutil.rmtree(repository)


def _has_head(repository: Path) -> bool:
    """Whether a submodule's clone came far enough to have a commit."""
    refs = repository / "refs"
    packed = (repository / "packed-refs").is_file()
    return packed or any(path.is_file() for path in refs.rglob("*"))
