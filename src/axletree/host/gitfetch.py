"""Brings a commit of a git repository, with its submodules, into a folder: its files only, no ``.git``.

Each repository has a bare one of its own in the cache, so what was fetched once is not fetched again. The files are
written by git's plumbing with no configuration of the user's, so no hook, filter or attribute of a machine can change
them. Submodules come at the commits that the parent's tree names, which is why one commit pins everything.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import filelock
import msgspec

from axletree.core.errors import HostError, IntegrityError, UsageError
from axletree.core.trees import is_safe_path
from axletree.core.values import digest_of
from axletree.disk import part_folder
from axletree.host.git import finish_git, git_environ, git_failure
from axletree.host.gitoutput import GITLINK, module_address, modules_listing, parse_modules, parse_tree, tree_listing
from axletree.host.indexes import redact
from axletree.recipe.addresses import COMMIT, GIT_PROTOCOLS

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

_DEPTH_LIMIT = 16


_SMALL = 1 << 20


class GitCommit(msgspec.Struct, frozen=True, kw_only=True):
    """What a ref of a repository is."""

    commit: str
    tree: str
    """Git's digest of the commit's files."""


class _Git(msgspec.Struct, frozen=True, kw_only=True):
    """How git is run: for one repository, with one environment."""

    url: str
    folder: Path
    environ: dict[str, str]
    protocols: tuple[str, ...]

    def run(self, *arguments: str, index: Path | None = None, network: bool = False) -> str:
        """Run git on the bare repository and return what it prints."""
        variables = self.environ
        if not network:
            variables = variables | {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
        if index is not None:
            variables = variables | {"GIT_INDEX_FILE": str(index)}
        command = (f"--git-dir={self.folder}", *arguments)
        done = finish_git(command, folder=self.folder, environ=variables, protocols=self.protocols)
        if done.code != 0:
            raise git_failure(arguments[0], done, place=redact(self.url))
        return done.text


def fetch_git(
    url: str,
    ref: str,
    dest: Path,
    *,
    cache: Path,
    environ: Mapping[str, str],
    submodules: bool = False,
    offline: bool = False,
) -> GitCommit:
    """Write the files of a ref to ``dest``, which must not exist; it appears complete or not at all.

    Args:
        url: address of the repository, ``https://``, or ``file://`` for one of this machine. Only the latter may have
            submodules of this machine.
        ref: tag, branch or full commit. A commit that the cache has is not asked for again.
        dest: folder for the files.
        cache: folder of the bare repositories.
        environ: variables for git: proxies, certificates, credential helpers count while fetching.
        submodules: whether submodules come too, recursively.
        offline: whether the network must not be used.

    Raises:
        UsageError: an address, also of a submodule, that is not allowed; a ref that git would take for an option.
        HostError: git is missing or fails; the ref does not exist; offline and not in the cache.
        IntegrityError: a submodule's path or address leads out of the repository.
    """
    dest.parent.mkdir(parents=True, exist_ok=True)
    with part_folder(dest) as folder:
        beside = folder / "files"
        git = _open(url, cache=cache, environ=environ)
        found = _obtain(git, ref, offline=offline)
        _export(git, found.commit, beside, scratch=folder)
        if submodules:
            _submodules(git, found.commit, beside, cache=cache, offline=offline, depth=0)
        beside.rename(dest)
    return found


def resolve_ref(url: str, ref: str, *, cache: Path, environ: Mapping[str, str], offline: bool = False) -> GitCommit:
    """What a ref is now; asks the repository, and keeps the commit in the cache. Offline: what it was the last time.

    Raises:
        UsageError: an address or ref that git would take for an option.
        HostError: git is missing or fails; the ref does not exist; offline and not in the cache.
    """
    return _obtain(_open(url, cache=cache, environ=environ), ref, offline=offline)


def read_at(url: str, commit: str, path: str, *, cache: Path, environ: Mapping[str, str]) -> str:
    """Text of a small file of a commit; empty where the cache does not have that, or where there is no such file."""
    try:
        git, name = _open(url, cache=cache, environ=environ), f"{commit}:{path}"
        return git.run("cat-file", "blob", name) if int(git.run("cat-file", "-s", name)) <= _SMALL else ""
    except HostError:
        return ""


def list_tags(url: str, *, cache: Path, environ: Mapping[str, str]) -> tuple[str, ...]:
    """The tags that a repository has now.

    Raises:
        UsageError: an address that is not allowed.
        HostError: git is missing or fails.
    """
    git = _open(url, cache=cache, environ=environ)
    listed = git.run("ls-remote", "--tags", "--refs", "--", git.url, network=True)
    return tuple(line.partition("\trefs/tags/")[2] for line in listed.splitlines())


def _open(
    url: str, *, cache: Path, environ: Mapping[str, str], protocols: Collection[str] = tuple(GIT_PROTOCOLS)
) -> _Git:
    """The bare repository of an address, made where there is none yet; ``protocols`` are those of its parent."""
    scheme = urlsplit(url).scheme
    if scheme not in protocols:
        raise UsageError(f"the git URL uses a protocol that is not allowed: {redact(url)}", hint="use https://")
    folder = cache / f"{digest_of(redact(url).encode())[:24]}.git"
    git = _Git(url=url, folder=folder, environ=git_environ(environ), protocols=GIT_PROTOCOLS[scheme])
    if not (folder / "HEAD").is_file():
        folder.mkdir(parents=True, exist_ok=True)
        git.run("init", "--bare", "--quiet", "--template=", ".")
    with contextlib.suppress(OSError):
        os.utime(folder)  # in use: what was not touched for long may be cleaned away
    return git


def _obtain(git: _Git, ref: str, *, offline: bool) -> GitCommit:
    """Have a ref's commit in the bare repository: from there, else by a shallow fetch, else by a full one."""
    if ref.startswith("-") or not ref:
        raise UsageError(f"{ref!r} is not a valid git ref")
    if COMMIT.fullmatch(ref) and (known := _describe(git, ref)) is not None:
        return known
    if offline and (known := _describe(git, _asked(ref))) is not None:
        return known
    if offline:
        hint = "run the command once without --offline"
        raise HostError(
            f"{ref} of {redact(git.url)} is not in the cache, and cannot be downloaded with --offline", hint=hint
        )
    # Two processes would write over each other's FETCH_HEAD.
    with filelock.FileLock(f"{git.folder}.lock"):
        found = _fetch(git, ref)
        if found is None:
            raise HostError(f"{redact(git.url)} has no commit {ref}")
        # Named, so that git's own cleaning keeps it.
        git.run("update-ref", f"refs/axletree/kept/{found.commit}", found.commit)
        git.run("update-ref", _asked(ref), found.commit)
    return found


def _asked(ref: str) -> str:
    """Name under which a repository keeps what a ref was when it was last asked for."""
    return f"refs/axletree/asked/{digest_of(ref.encode())}"


def _fetch(git: _Git, ref: str) -> GitCommit | None:
    fetch = ["fetch", "--quiet", "--no-tags", "--force", "--no-recurse-submodules"]
    try:
        git.run(*fetch, "--depth=1", "--", git.url, ref, network=True)
        return _describe(git, "FETCH_HEAD")
    except HostError:
        if not COMMIT.fullmatch(ref):
            raise
    # Not every server gives a commit by its digest; then only the whole history has it.
    if git.run("rev-parse", "--is-shallow-repository").strip() == "true":
        fetch.append("--unshallow")
    git.run(*fetch, "--", git.url, "+refs/*:refs/axletree/all/*", network=True)
    return _describe(git, ref)


def _describe(git: _Git, name: str) -> GitCommit | None:
    try:
        commit, tree = git.run("rev-parse", f"{name}^{{commit}}", f"{name}^{{tree}}").split()
    except (HostError, ValueError):
        return None
    return GitCommit(commit=commit, tree=tree)


def _export(git: _Git, commit: str, dest: Path, *, scratch: Path) -> None:
    """Write the files of a commit."""
    index = scratch / f"{commit}.index"
    dest.mkdir(parents=True, exist_ok=True)
    git.run("read-tree", commit, index=index)
    git.run(f"--work-tree={dest}", "checkout-index", "--all", "--force", f"--prefix={dest}/", index=index)
    index.unlink(missing_ok=True)


def _submodules(git: _Git, commit: str, dest: Path, *, cache: Path, offline: bool, depth: int) -> None:
    """Write the submodules of a commit into its files, and theirs into them."""
    tree = parse_tree(git.run(*tree_listing(commit)))
    links = {path: item.digest for path, item in tree.items() if item.mode == GITLINK}
    if not links:
        return
    if depth >= _DEPTH_LIMIT:
        raise IntegrityError(f"submodules are nested more than {_DEPTH_LIMIT} levels deep in {redact(git.url)}")
    urls = _submodule_urls(git, commit)
    for path, target in links.items():
        folder = dest / path
        if not is_safe_path(path) or path not in urls or not folder.resolve().is_relative_to(dest.resolve()):
            raise IntegrityError(
                f"{redact(git.url)} has a submodule that has no URL or is outside the repository: {path!r}"
            )
        inner = _open(urls[path], cache=cache, environ=git.environ, protocols=git.protocols)
        found = _obtain(inner, target, offline=offline)
        if folder.is_dir():
            shutil.rmtree(folder)
        _export(inner, found.commit, folder, scratch=dest.parent)
        _submodules(inner, found.commit, folder, cache=cache, offline=offline, depth=depth + 1)


def _submodule_urls(git: _Git, commit: str) -> dict[str, str]:
    """Path -> address of the submodules that a commit's ``.gitmodules`` names; relative ones resolved as git does."""
    said = parse_modules(git.run(*modules_listing(commit))).values()
    named = ((values.get("path"), values.get("url")) for values in said)
    return {path: module_address(git.url, address) for path, address in named if path and address}
