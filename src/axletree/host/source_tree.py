"""Reads what a source tree says of its dependencies: a git repository, with or without a work tree, or a plain folder.

Git is asked and never told: no hook, filter, pager or credential helper runs, no protocol is allowed (so a partial
clone can't fetch either), and its notes about the files stay as they are. From a work tree files are read as they lie
there; from a bare repository out of its commit.
"""

from __future__ import annotations

import hashlib
import itertools
import os
import re
from typing import TYPE_CHECKING

import msgspec

from axletree.core.errors import Problem, UsageError
from axletree.core.trees import is_safe_path
from axletree.core.units import some_of
from axletree.host.files import file_errors
from axletree.host.gitoutput import GITLINK
from axletree.host.indexes import redact
from axletree.host.worktree import Worktree, files, said_of_modules
from axletree.package.drift.tree import SourceFacts, copy_of, is_wanted
from axletree.package.drift.vendored import VendoredSubmodule
from axletree.recipe.addresses import COMMIT

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping
    from pathlib import Path

_LARGEST = 1 << 20
"""Bytes of a file that is read; real ones have a few thousand."""
_MOST_FILES = 20_000
_DEEPEST = 8
_SHOWN = 3
_SKIPPED = frozenset({".git", ".hg", ".svn", ".pc", "node_modules", "__pycache__"})
"""Folders of tools; ``.pc`` is where quilt keeps files as they were before its patches."""
_VARIABLE = re.compile(r"GIT_.*")


def read_source(folder: Path, *, environ: Mapping[str, str], headers: frozenset[str]) -> SourceFacts:
    """Read a source tree.

    Args:
        folder: its root: of a work tree, a bare repository, or an unpacked archive.
        environ: variables that git starts from.
        headers: names of files to look at beside the usual ones, see ``headers_of``.

    Raises:
        UsageError: it is no folder.
        HostError: it can't be read, or git fails in what looks like a repository.
    """
    if not folder.is_dir():
        raise UsageError(
            f"source folder does not exist: {folder}", hint="run `axletree source sync` to create one from the recipe"
        )
    git = _open(folder, environ)
    if git is None:
        return _read_plain(folder, headers)
    head = git.commit_of("HEAD")
    if head is None:
        raise UsageError(Problem(file=str(folder), message="the git repository has no commits"))
    bare = git.run("rev-parse", "--is-bare-repository").strip() == "true"
    modules = tuple(_submodules(git, head, prefix="", bare=bare, depth=0))
    described = _describe(git, head)
    found, changed = (_from_commit(git, head, headers), ()) if bare else _from_work_tree(git, head, modules, headers)
    copies = {place for path in files(git, head) if (place := copy_of(path)) is not None}
    notes = (
        [f"files that changed since the commit were read with their changes: {some_of(changed, _SHOWN)}"]
        if changed
        else []
    )
    notes += _absent(modules, bare=bare)
    return SourceFacts(
        folder=str(folder),
        files=found,
        copies=tuple(sorted(copies)),
        submodules=modules,
        commit=head,
        described=described,
        notes=tuple(notes),
    )


def _absent(modules: Iterable[VendoredSubmodule], *, bare: bool) -> list[str]:
    """What to say of submodules that nothing but a commit is known of."""
    absent = [module.path for module in modules if not module.here]
    if not absent:
        return []
    if bare:
        return ["this is a bare repository, so only the commits of its submodules are known"]
    bring = "check them out with `git submodule update --init --recursive`"
    return [f"some submodules are not checked out, so only their commits are known: {some_of(absent, _SHOWN)}; {bring}"]


def describe(folder: Path, *, environ: Mapping[str, str]) -> str:
    """Output of ``git describe --long`` for the commit that is checked out; empty where no tag or no git is near.

    Raises:
        HostError: git fails in what looks like a repository.
    """
    git = _open(folder, environ)
    return "" if git is None else _describe(git, "HEAD")


def _describe(git: Worktree, commit: str) -> str:
    return git.attempt("describe", "--tags", "--long", "--abbrev=40", commit).text.strip()


def _open(folder: Path, environ: Mapping[str, str]) -> Worktree | None:
    """How git is run in a folder that is a repository's own root; ``None`` for others."""
    if not ((folder / ".git").exists() or ((folder / "HEAD").is_file() and (folder / "objects").is_dir())):
        return None
    variables = {name: value for name, value in environ.items() if not _VARIABLE.fullmatch(name)}
    variables |= {
        "GIT_CEILING_DIRECTORIES": str(folder.absolute().parent),
        "GIT_NO_LAZY_FETCH": "1",
        "GIT_NO_REPLACE_OBJECTS": "1",
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_PAGER": "cat",
        "GIT_TERMINAL_PROMPT": "0",
        "LC_ALL": "C",
    }
    git = Worktree(folder=folder, environ=variables, protocols=())
    git.run("rev-parse", "--git-dir")  # "dubious ownership" and the like are git's own words
    return git


def _submodules(git: Worktree, commit: str, *, prefix: str, bare: bool, depth: int) -> Iterator[VendoredSubmodule]:
    """The submodules of a commit, and those of them that are checked out."""
    said = _gitmodules(git, commit)
    for path, (mode, _, target) in sorted(files(git, commit).items()):
        if mode != GITLINK or not is_safe_path(path) or not COMMIT.fullmatch(target):
            continue
        inner = None if bare else _open_inner(git, path)
        url, branch = said.get(path, ("", ""))
        module = VendoredSubmodule(path=prefix + path, commit=target, url=_shown(url), branch=branch, nested=depth > 0)
        if inner is None:
            yield module
            continue
        yield _described(inner, module)
        if depth < _DEEPEST and inner.has(target):
            yield from _submodules(inner, target, prefix=f"{prefix}{path}/", bare=False, depth=depth + 1)


def _open_inner(git: Worktree, path: str) -> Worktree | None:
    place = git.folder / path
    inside = place.resolve().is_relative_to(git.folder.resolve())
    return _open(place, git.environ) if inside and (place / ".git").exists() else None


def _described(git: Worktree, module: VendoredSubmodule) -> VendoredSubmodule:
    """A submodule with what its own repository says of its commit."""

    def ask(*arguments: str) -> str:
        done = git.attempt(*arguments)
        return done.text.strip() if done.code == 0 else ""

    here = git.has(module.commit)
    describe = ("describe", "--long", "--abbrev=40")
    return msgspec.structs.replace(
        module,
        here=here,
        checked_out=git.commit_of("HEAD"),
        described=ask(*describe, "--tags", module.commit) if here else "",
        annotated=ask(*describe, module.commit) if here else "",
        contained=ask("describe", "--tags", "--contains", module.commit) if here else "",
        shallow=ask("rev-parse", "--is-shallow-repository") == "true",
        tags=len(ask("for-each-ref", "--format=%(refname)", "refs/tags").split()),
    )


def _gitmodules(git: Worktree, commit: str) -> dict[str, tuple[str, str]]:
    """Path -> address and branch, of the submodules that a commit's ``.gitmodules`` names."""
    named = (values for values in said_of_modules(git, commit).values() if "path" in values)
    return {values["path"]: (values.get("url", ""), values.get("branch", "")) for values in named}


def _shown(url: str) -> str:
    """An address without login; of a relative one, what stands after the dots tells enough."""
    return re.sub(r"^(?:\.\.?/)+", "", redact(url))


def _from_work_tree(
    git: Worktree, head: str, modules: Collection[VendoredSubmodule], headers: frozenset[str]
) -> tuple[dict[str, str], tuple[str, ...]]:
    """The tracked files that may tell, as they lie in the work tree and its submodules; and which of them changed."""
    folders = {module.path for module in modules}
    digests = {path: entry.digest for path, entry in files(git, head).items() if entry.mode.startswith("100")}
    for module in modules:
        if module.here:
            inner = files(git.at(module.path), module.commit)
            digests |= {
                f"{module.path}/{path}": entry.digest for path, entry in inner.items() if entry.mode.startswith("100")
            }
    wanted = [path for path in digests if is_wanted(path, modules=folders, headers=headers)]
    found = dict(_read(git.folder, wanted))
    # Asking git whether they changed would run the filters that a repository's own configuration names.
    changed = [path for path, data in found.items() if _blob(data, digests[path]) != digests[path]]
    return {path: _text(data) for path, data in found.items()}, tuple(sorted(changed))


def _blob(data: bytes, like: str) -> str:
    """Git's digest of a file's content, by the algorithm that another digest is of."""
    digest = hashlib.new("sha1" if len(like) == 40 else "sha256", usedforsecurity=False)
    digest.update(b"blob %d\0" % len(data) + data)
    return digest.hexdigest()


def _from_commit(git: Worktree, head: str, headers: frozenset[str]) -> dict[str, str]:
    """The same out of a commit."""
    entries = files(git, head)
    wanted = [
        path for path, entry in entries.items() if entry.mode.startswith("100") and is_wanted(path, headers=headers)
    ]
    found: dict[str, str] = {}
    for path in wanted[:_MOST_FILES]:
        done = git.attempt("cat-file", "blob", entries[path].digest)
        if done.code == 0 and len(done.out) <= _LARGEST:
            found[path] = _text(done.out)
    return found


def _read_plain(folder: Path, headers: frozenset[str]) -> SourceFacts:
    """A tree without git: all files, less those of tools and of a build."""
    paths: list[str] = []
    copies: set[str] = set()
    waiting = [""]
    while waiting:
        below = waiting.pop()
        with file_errors(folder / below), os.scandir(folder / below) as entries:
            for entry in entries:
                inside = f"{below}{entry.name}"
                if entry.is_dir(follow_symlinks=False):
                    if entry.name not in _SKIPPED and inside != "build":
                        waiting.append(f"{inside}/")
                elif entry.is_file(follow_symlinks=False):
                    copies |= {folder for folder in (copy_of(inside),) if folder is not None}
                    paths += [inside] if is_wanted(inside, headers=headers) else []
    found = {path: _text(data) for path, data in _read(folder, sorted(paths))}
    note = "this is not a git repository, so versions of vendored copies come only from their files"
    return SourceFacts(folder=str(folder), files=found, copies=tuple(sorted(copies)), notes=(note,))


def _read(folder: Path, paths: Iterable[str]) -> Iterator[tuple[str, bytes]]:
    """Content of files; those that are too large, are gone, or lead out of the tree are left out."""
    root = folder.resolve()
    for path in itertools.islice(paths, _MOST_FILES):
        place = folder / path
        if not is_safe_path(path) or not place.parent.resolve().is_relative_to(root):
            continue
        try:
            descriptor = os.open(place, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
            with os.fdopen(descriptor, "rb") as stream:
                data = stream.read(_LARGEST + 1)
        except OSError:
            continue
        if len(data) <= _LARGEST:
            yield path, data


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace").replace("\r\n", "\n").removeprefix("\ufeff")
