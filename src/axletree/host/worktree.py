"""Git with work trees of the user's: how it is run there, and what a repository answers.

In contrast to :mod:`axletree.host.gitfetch` the user's configuration counts (line ends, large files, credentials), as
it does when they call git themselves. Hooks don't run: a clone that is brought up to date must not start programs of
its own, and a hook written for people's commits must not stop it.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlsplit

import msgspec

from axletree.core.errors import IntegrityError, Problem, UsageError
from axletree.host.git import finish_git, git_environ, git_failure
from axletree.host.gitoutput import (
    GITLINK,
    TreeItem,
    module_address,
    modules_listing,
    parse_modules,
    parse_tree,
    tree_listing,
)
from axletree.host.indexes import redact
from axletree.recipe.addresses import GIT_PROTOCOLS

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from axletree.host.run import Finished

_SCP = re.compile(r"(?:[^@/\s]+@)?(?P<host>[^:/\s]+):(?P<path>(?!//).+)")


class Worktree(msgspec.Struct, frozen=True, kw_only=True):
    """A repository with a work tree, and how git is run in it."""

    folder: Path
    environ: dict[str, str]
    protocols: tuple[str, ...]
    held: tuple[int, ...] = ()
    """File descriptors that git inherits: a lock that is held until the last process of a killed run is gone."""

    def at(self, path: str) -> Worktree:
        """A submodule's."""
        return msgspec.structs.replace(self, folder=self.folder / path)

    @property
    def git_folder(self) -> Path:
        """Where the repository keeps what is not the work tree."""
        return Path(self.run("rev-parse", "--absolute-git-dir").rstrip("\n"))

    def attempt(self, *arguments: str, stdin: str | None = None) -> Finished:
        """Run git; what its exit code means is the caller's business. File names that are no UTF-8 pass unchanged.

        Raises:
            HostError: git is not installed, or the folder is gone.
        """
        return finish_git(
            arguments,
            folder=self.folder,
            environ=self.environ,
            protocols=self.protocols,
            text=stdin or "",
            held=self.held,
        )

    def run(self, *arguments: str, stdin: str | None = None) -> str:
        """Run git and return what it prints.

        Raises:
            HostError: it failed; with its last lines, without passwords.
        """
        done = self.attempt(*arguments, stdin=stdin)
        if done.code != 0:
            raise git_failure(arguments[0], done, place=str(self.folder))
        return done.text

    def commit_of(self, name: str) -> str | None:
        """The commit that a name stands for here; ``None`` where there is none."""
        done = self.attempt("rev-parse", "--quiet", "--verify", "--end-of-options", f"{name}^{{commit}}")
        return done.text.strip() if done.code == 0 else None

    def has(self, commit: str) -> bool:
        """Whether a commit is here."""
        return self.commit_of(commit) is not None


def open_worktree(
    folder: Path, *, url: str, environ: Mapping[str, str], held: tuple[int, ...] = (), refresh: bool = True
) -> Worktree:
    """How git is run in a folder whose repository comes from ``url``: that decides which protocols may be used.

    Args:
        folder: folder of the work tree.
        url: https:// or file:// address.
        environ: variables that git starts from.
        held: see :class:`Worktree`.
        refresh: whether questions may update git's notes about the files, which is a write.

    Raises:
        UsageError: an address of another kind.
    """
    scheme = urlsplit(url).scheme
    if scheme not in GIT_PROTOCOLS:
        raise UsageError(f"the git URL uses a protocol that is not allowed: {redact(url)}", hint="use https://")
    variables = git_environ(environ)
    if not refresh:
        variables["GIT_OPTIONAL_LOCKS"] = "0"
    return Worktree(folder=folder, environ=variables, protocols=GIT_PROTOCOLS[scheme], held=held)


def same_repository(one: str, other: str) -> bool:
    """Whether two addresses name one repository: https, ssh and ``host:path`` of a host are the same to people."""
    return _place(one) == _place(other)


def _place(url: str) -> tuple[str, str]:
    scp = _SCP.fullmatch(url) if "://" not in url else None
    host, path = (scp["host"], scp["path"]) if scp else (urlsplit(url).hostname or "", urlsplit(url).path or url)
    return host.lower(), path.strip("/").removesuffix(".git")


def links(git: Worktree, commit: str) -> dict[str, str]:
    """Path -> commit of the submodules in a commit's tree.

    Raises:
        HostError: git failed.
    """
    return {path: item.digest for path, item in files(git, commit).items() if item.mode == GITLINK}


def files(git: Worktree, commit: str) -> dict[str, TreeItem]:
    """Path -> what lies there, of everything in a commit's tree.

    Raises:
        HostError: git failed.
    """
    return parse_tree(git.run(*tree_listing(commit)))


class Submodule(NamedTuple):
    """What ``.gitmodules`` says of a submodule."""

    name: str
    url: str


def submodules_of(git: Worktree, commit: str, *, url: str) -> dict[str, Submodule]:
    """Path -> the submodules that a commit's ``.gitmodules`` names.

    Args:
        git: the repository.
        commit: whose file is read.
        url: address of the repository, which relative ones start from (gitmodules(5)).

    Raises:
        HostError: git failed.
        IntegrityError: an address with a protocol that is not allowed, such as ``ext::``.
    """
    found = {}
    for name, values in said_of_modules(git, commit).items():
        path, address = values.get("path"), values.get("url")
        if path and address:
            whole = module_address(url, address)
            _require_protocol(whole, git.protocols, path, git.folder)
            found[path] = Submodule(name, whole)
    return found


def said_of_modules(git: Worktree, commit: str) -> dict[str, dict[str, str]]:
    """Name -> path, address and branch, of the submodules that a commit's ``.gitmodules`` names; none without one."""
    done = git.attempt(*modules_listing(commit))
    return parse_modules(done.text) if done.code == 0 else {}


def _require_protocol(url: str, protocols: Collection[str], path: str, folder: Path) -> None:
    if urlsplit(url).scheme not in protocols:
        message = f"the URL of submodule {path!r} uses a protocol that is not allowed: {redact(url)}"
        raise IntegrityError(Problem(file=str(folder), message=message))
