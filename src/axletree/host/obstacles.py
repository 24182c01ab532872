"""What of the user's a checkout would lose: looked for before anything is changed, in submodules too.

Four kinds: changes of tracked files, commits that no remote has, files that git does not track where the new commit has
some, and a merge or rebase that is under way. What a killed run of ours left half done is told from the user's work by
its content: git writes files of the old or the new commit, or the beginning of one.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from axletree.core.errors import Problem
from axletree.core.units import some_of
from axletree.host.worktree import files, links

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from axletree.host.worktree import Worktree

OWN_REFS = "refs/axletree"
SYNCED = f"{OWN_REFS}/synced"
"""The commit that was checked out last, or that was found to hold nothing of the user's."""
WANTED = f"{OWN_REFS}/wanted"
"""The commit that is being checked out: there only while that is under way, or after it was killed."""
_UNDER_WAY = {
    "MERGE_HEAD": "merge",
    "rebase-merge": "rebase",
    "rebase-apply": "rebase or am",
    "CHERRY_PICK_HEAD": "cherry-pick",
    "REVERT_HEAD": "revert",
}
_SHOWN = 5


def find_obstacles(
    git: Worktree, target: str | None, *, killed: bool = False, submodules: bool = True
) -> list[Problem]:
    """Everything of the user's that a checkout of ``target`` would lose.

    Args:
        git: the repository.
        target: commit that is to be checked out. ``None`` where it is not known: then only what can be lost whatever
            it is.
        killed: whether an earlier checkout of ``target`` was killed; what it left is no obstacle.
        submodules: whether submodules are checked out too.

    Raises:
        HostError: git failed.
    """
    return list(_find(git, target, killed=killed, submodules=submodules))


def _find(git: Worktree, target: str | None, *, killed: bool, submodules: bool) -> Iterator[Problem]:
    place = str(git.folder)
    head = git.commit_of("HEAD")
    folder = git.git_folder
    for name, what in _UNDER_WAY.items():
        if (folder / name).exists():
            hint = f"finish it, or stop it with `git -C {place} {what.split()[0]} --abort`"
            yield Problem(file=place, message=f"a {what} is in progress", hint=hint)
    changed = changed_files(git)
    if killed and target is not None:
        changed = _not_ours(git, changed, head, target)
    if changed:
        hint = f"commit them (`git -C {place} switch -c NAME && git commit -a`), stash them, or discard them"
        yield Problem(file=place, message=f"there are uncommitted changes: {some_of(changed, _SHOWN)}", hint=hint)
    if head is not None and head != target:
        yield from _commits(git, head, target)
    known = target if target is not None and git.has(target) else None
    if head is not None and known is not None and head != known:
        in_the_way = untracked_in_the_way(git, head, known)
        if killed:
            in_the_way = [path for path in in_the_way if not _begun(git, path, known)]
        if in_the_way:
            shown = some_of(in_the_way, _SHOWN)
            message = f"{known[:12]} would overwrite untracked files: {shown}"
            yield Problem(file=place, message=message, hint="move these files elsewhere, or remove them")
    if submodules:
        wanted = links(git, known) if known is not None else {}
        for path in populated(git, {*(links(git, head) if head else ()), *wanted}):
            if known is None or path in wanted:
                yield from _find(git.at(path), wanted.get(path), killed=killed, submodules=True)


def populated(git: Worktree, paths: set[str]) -> list[str]:
    """The submodules that are there as repositories, sorted."""
    return sorted(path for path in paths if os.path.lexists(git.folder / path / ".git"))


def changed_files(git: Worktree) -> list[str]:
    """Tracked files that are not as HEAD has them, in the index or on disk; submodules are looked at on their own.

    Raises:
        HostError: git failed.
    """
    entries = iter(
        git.run("status", "--porcelain=v1", "-z", "--untracked-files=no", "--ignore-submodules=all").split("\0")
    )
    found = []
    for entry in entries:
        if entry:
            found.append(entry[3:])
            if entry[0] in "RC":
                found.append(next(entries))
    return found


def _commits(git: Worktree, head: str, target: str | None) -> Iterator[Problem]:
    """Commits that only this repository has, on what is checked out. Other branches stay where they are."""
    seen = ["--remotes", "--tags", f"--glob={OWN_REFS}/*"]
    excluded = [target] if target is not None and git.has(target) else []
    found = git.run("log", "--format=%h %s", f"--max-count={_SHOWN + 1}", head, "--not", *seen, *excluded).splitlines()
    if found:
        place = str(git.folder)
        message = f"some commits are not on any remote: {some_of(found, _SHOWN, separator='; ')}"
        hint = f"push them, or keep them with a tag: `git -C {place} tag mine`"
        yield Problem(file=place, message=message, hint=hint)


def untracked_in_the_way(git: Worktree, head: str, target: str) -> list[str]:
    """Files and folders, ignored ones too, that lie where ``target`` has something that ``head`` has not.

    Git itself would write over ignored files without a word.

    Raises:
        HostError: git failed.
    """
    listing = git.run("diff-tree", "-r", "-z", "--name-only", "--no-renames", "--diff-filter=A", head, target)
    new = [path for path in listing.split("\0") if path]
    if not new:
        return []
    tracked = files(git, head)
    modules = links(git, target)
    found = {}
    for path in new:
        lying = _first_lying(git, path)
        if lying is None or lying in tracked:
            continue
        if path in modules and lying == path:
            folder = git.folder / path
            if folder.is_dir() and (os.path.lexists(folder / ".git") or not any(folder.iterdir())):
                continue
        elif lying == path and (git.folder / path).is_dir() and not (git.folder / path).is_symlink():
            inside = any(other.startswith(f"{path}/") for other in tracked)
            if inside and not _strangers(git, path):
                continue
        found[lying] = True
    return list(found)


def _first_lying(git: Worktree, path: str) -> str | None:
    """The path itself if it is there, or a file that lies where one of its folders would be."""
    parts = path.split("/")
    for count in range(1, len(parts)):
        above = git.folder / "/".join(parts[:count])
        if not os.path.lexists(above):
            return None
        if above.is_symlink() or not above.is_dir():
            return "/".join(parts[:count])
    return path if os.path.lexists(git.folder / path) else None


def _strangers(git: Worktree, path: str) -> bool:
    """Whether a folder holds something that git does not track."""
    return bool(git.run("ls-files", "--others", "-z", "--", f":(literal){path}"))


def _not_ours(git: Worktree, changed: Sequence[str], head: str | None, target: str) -> list[str]:
    """Those of the changed files that hold something else than what a killed checkout leaves."""
    before = files(git, head) if head is not None else {}
    after = files(git, target) if git.has(target) else {}
    staged = {}
    for entry in git.run("ls-files", "--stage", "-z").split("\0"):
        where, tab, path = entry.partition("\t")
        if tab:
            staged[path] = where.split()[1]
    present = [path for path in changed if (git.folder / path).is_file() and not (git.folder / path).is_symlink()]
    plain = [path for path in present if "\n" not in path and not path.startswith('"')]
    listed = git.run("hash-object", "--stdin-paths", stdin="".join(f"{path}\n" for path in plain)) if plain else ""
    digests = dict(zip(plain, listed.split(), strict=True))
    found = []
    for path in changed:
        known = {tree[path].digest for tree in (before, after) if path in tree}
        if path in staged and staged[path] not in known:
            found.append(path)
        elif (git.folder / path).is_symlink():
            link = str((git.folder / path).readlink())
            if not any(git.attempt("cat-file", "blob", digest).text == link for digest in known):
                found.append(path)
        elif path in present and digests.get(path) not in known and not _begun(git, path, target):
            found.append(path)
    return found


def _begun(git: Worktree, path: str, target: str) -> bool:
    """Whether a file is the beginning of what ``target`` has there."""
    if not (git.folder / path).is_file():
        return False
    whole = git.attempt("cat-file", "--filters", f"{target}:{path}")
    if whole.code != 0:
        return False
    content = (git.folder / path).read_bytes()
    return whole.out.startswith(content)
