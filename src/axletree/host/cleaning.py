"""What a build and hipify left in a source tree, found and removed; what is the user's is told from it.

A build product is a file that the project's own ``.gitignore`` files name. What only the user's exclude files name is
the user's, and so is what stands behind the line ``BEGIN NOT-CLEAN-FILES`` of a ``.gitignore``: PyTorch's own
``setup.py clean`` stops there. In a tree without git, folders count whose content shows that a build made them.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import msgspec

from axletree.buildsystem.pytorch.hipified import is_made_by_hipify
from axletree.host.obstacles import changed_files, populated
from axletree.host.worktree import links

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from axletree.host.worktree import Worktree

Fate = Literal["remove", "restore", "keep"]
_NOT_CLEAN = "BEGIN NOT-CLEAN-FILES"
_USERS = (".axletree", ".direnv", ".env", ".envrc", ".git", ".idea", ".venv", ".vscode", "venv")
"""Names of what people keep in a tree, and projects ignore for them."""
_MADE_BY = {
    "CMakeCache.txt": "CMake",
    "build.ninja": "ninja",
    "bdist.*": "setuptools",
    "lib.*": "setuptools",
    "temp.*": "setuptools",
    "*.whl": "a wheel builder",
    "PKG-INFO": "setuptools",
}
"""Files that show who made a folder in a tree without git."""
_FOLDERS = ("build", "dist", "_skbuild", "cmake-build-*", "*.egg-info", ".eggs")


class Item(msgspec.Struct, frozen=True, kw_only=True):
    """A file or folder of a tree, and what happens to it."""

    path: str
    """Path relative to the tree, including the path of its submodule."""
    fate: Fate
    why: str
    files: int = 1
    size: int = 0
    """Bytes."""


def find_products(folder: Path) -> Iterator[Item]:
    """Build products in a tree without git."""
    for pattern in _FOLDERS:
        for path in sorted(folder.glob(pattern)):
            made = next((who for file, who in _MADE_BY.items() if path.is_dir() and any(path.glob(file))), None)
            if made is not None and not path.is_symlink():
                yield _measured(folder, path, f"created by {made}")
    for path in sorted(folder.rglob("__pycache__")):
        if path.is_dir() and not path.is_symlink():
            yield _measured(folder, path, "created by Python")


def find_ignored(git: Worktree, top: Path) -> Iterator[Item]:
    """Build products in a repository, without its submodules.

    Raises:
        HostError: git failed.
    """
    listing = ("ls-files", "--others", "--ignored", "--directory", "-z")
    found = git.run(*listing, "--exclude-per-directory=.gitignore").split("\0")
    kept = _not_cleaned(git)
    for name in filter(None, found):
        path = git.folder / name.rstrip("/")
        if name in kept or any(part in _USERS for part in Path(name).parts):
            continue
        if path.is_dir() and not path.is_symlink():
            theirs = next((inner for inner in path.rglob("*") if inner.name in _USERS), None)
            if theirs is not None:
                yield _measured(
                    top, path, f"the folder contains {theirs.relative_to(path)}, which belongs to you", fate="keep"
                )
                continue
        yield _measured(top, path, "ignored by git")


def _not_cleaned(git: Worktree) -> set[str]:
    """What a project's ``.gitignore`` names behind the line that ends what its own clean command removes."""
    file = git.folder / ".gitignore"
    text = file.read_text(encoding="utf-8", errors="replace") if file.is_file() else ""
    _, mark, after = text.partition(_NOT_CLEAN)
    if not mark:
        return set()
    with tempfile.NamedTemporaryFile("w", encoding="utf-8") as patterns:
        patterns.write(after.partition("\n")[2])
        patterns.flush()
        listing = ("ls-files", "--others", "--ignored", "--directory", "-z", f"--exclude-from={patterns.name}")
        return set(git.run(*listing).split("\0"))


def find_hipified(git: Worktree, top: Path, copies: Sequence[Path]) -> Iterator[Item]:
    """What hipify made and edited in a repository, without its submodules.

    Args:
        git: the repository.
        top: the tree that paths are relative to.
        copies: what :func:`~axletree.host.hipify_replay.hipified_copies` gave for the tree.

    Raises:
        HostError: git failed.
    """
    for name in filter(None, git.run("ls-files", "--others", "-z").split("\0")):
        path = git.folder / name
        plain = path.is_file() and not path.is_symlink()
        if plain and (is_made_by_hipify(_start(path)) or _is_in(copies, top, path)):
            yield _measured(top, path, "created by hipify")
    for name in changed_files(git):
        path = git.folder / name
        if path.is_file() and not path.is_symlink() and _is_in(copies, top, path):
            yield _measured(top, path, "edited by hipify", fate="restore")
        else:
            yield Item(path=_shown(top, path), fate="keep", why="changed by more than hipify")


def _is_in(copies: Sequence[Path], top: Path, path: Path) -> bool:
    """Whether one of the copies has this very file."""
    theirs = [copy / path.relative_to(top) for copy in copies]
    size = path.stat().st_size
    return any(
        file.is_file() and file.stat().st_size == size and file.read_bytes() == path.read_bytes() for file in theirs
    )


def repositories_in(git: Worktree) -> Iterator[Worktree]:
    """A repository and its submodules that are there, recursively.

    Raises:
        HostError: git failed.
    """
    yield git
    if git.commit_of("HEAD") is not None:
        for path in populated(git, set(links(git, "HEAD"))):
            yield from repositories_in(git.at(path))


def changes_as_patch(git: Worktree, top: Path, names: Iterable[str]) -> str:
    """What tracked files are changed by, as a patch to be applied in ``top``.

    Raises:
        HostError: git failed.
    """
    inner = git.folder.relative_to(top).as_posix()
    prefix = "" if inner == "." else f"{inner}/"
    options = ("--binary", "--no-ext-diff", "--no-textconv", "--no-color", "--no-renames", "--ignore-submodules=all")
    prefixes = (f"--src-prefix=a/{prefix}", f"--dst-prefix=b/{prefix}")
    return git.run("--literal-pathspecs", "diff", *options, *prefixes, "HEAD", "--", *names)


def restore(git: Worktree, names: Iterable[str]) -> None:
    """Give tracked files the content of HEAD again.

    Raises:
        HostError: git failed.
    """
    options = ("--source=HEAD", "--staged", "--worktree", "--pathspec-from-file=-", "--pathspec-file-nul")
    git.run("--literal-pathspecs", "restore", *options, stdin="\0".join(names))


def remove(path: Path) -> None:
    """Remove a file, link or folder that may be gone already."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=False)
    else:
        path.unlink(missing_ok=True)


def remove_empty(folder: Path, *, top: Path) -> None:
    """Remove a folder of a tree if nothing is in it, then those above that it leaves empty; the tree itself stays."""
    while folder != top and folder.is_relative_to(top):
        try:
            folder.rmdir()
        except OSError:  # something is in it, or it is not ours to remove
            return
        folder = folder.parent


def _start(path: Path) -> bytes:
    with path.open("rb") as stream:
        return stream.read(200)


def _shown(top: Path, path: Path) -> str:
    return path.relative_to(top).as_posix()


def _measured(top: Path, path: Path, why: str, *, fate: Fate = "remove") -> Item:
    files = size = 0
    if path.is_dir() and not path.is_symlink():
        for root, _, names in os.walk(path):
            files += len(names)
            size += sum(os.lstat(os.path.join(root, name)).st_size for name in names)  # noqa: PTH118 (many files)
    else:
        files, size = 1, path.lstat().st_size
    return Item(path=_shown(top, path), fate=fate, why=why, files=files, size=size)
