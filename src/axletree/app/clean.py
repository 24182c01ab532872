"""Remove what a build and hipify left in a source tree: shown first, then done, nothing of the user's lost."""

from __future__ import annotations

import datetime as dt
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import msgspec

from axletree.app.recipes import load_recipe
from axletree.core.errors import HostError, Problem, UsageError
from axletree.host import cleaning
from axletree.host.cleaning import Item
from axletree.host.files import replace_file
from axletree.host.hipify_replay import hipified_copies
from axletree.host.obstacles import changed_files
from axletree.host.worktree import open_worktree
from axletree.recipe.checkouts import repositories

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from axletree.host.worktree import Worktree

What = Literal["build", "hipify", "all"]


class CleanReport(msgspec.Struct, frozen=True, kw_only=True):
    """A tree, and what happens to its content."""

    folder: str
    items: tuple[Item, ...]
    done: bool
    patch: str | None = None
    """File with the reverted changes; apply it in the folder with ``git apply``."""


class CleanedTrees(msgspec.Struct, frozen=True, kw_only=True):
    """Each cleaned tree: report of ``clean``."""

    trees: tuple[CleanReport, ...]


def find_trees(recipe_or_folder: str, *, here: Path) -> tuple[Path, ...]:
    """The folders that are meant: one that is named, or a recipe's source folder and its checkouts in ``here``.

    Raises:
        UsageError: there is none.
        RecipeError: the recipe is wrong.
    """
    folder = Path(recipe_or_folder)
    if folder.is_dir():
        return (folder,)
    loaded = load_recipe(recipe_or_folder)
    places = [here / repository.folder for repository in repositories(loaded.recipe)]
    if loaded.recipe.source.path is not None:
        places.insert(0, loaded.file(loaded.recipe.source.path))
    found = tuple(place for place in places if place.is_dir())
    if not found:
        looked = ", ".join(map(str, places)) or "the recipe does not set a source folder"
        hint = "specify the source folder, or run the command in the folder that `source sync` created"
        raise UsageError(
            Problem(file=str(loaded.path), message=f"no source tree found here (looked for: {looked})", hint=hint)
        )
    return found


def clean(folder: Path, what: What, *, environ: Mapping[str, str], really: bool) -> CleanReport:
    """Find what is to go from a tree, and remove it if ``really``.

    Args:
        folder: the tree, a git repository or not.
        what: ``build``: build products; ``hipify``: what hipify made and edited, in submodules too; ``all``: both, in
            submodules too, and all other changes of tracked files.
        environ: variables that git starts from.
        really: whether it is done. Changes that are taken back are saved as a patch beside the folder first.

    Raises:
        UsageError: hipify's edits are asked for in a tree without git.
        HostError: git fails, or something can't be removed or written.
    """
    top = folder.resolve()
    if not (top / ".git").exists():
        if what != "build":
            hint = (
                "run `axletree clean --build`: without git, the original content of files is unknown, so nothing "
                "else can be undone"
            )
            raise UsageError(Problem(file=str(folder), message="the folder is not a git repository", hint=hint))
        items = tuple(cleaning.find_products(top))
        _carry_out(top, items, {}, really=really)
        return CleanReport(folder=str(folder), items=items, done=really)
    git = open_worktree(top, url=top.as_uri(), environ=environ, refresh=really)
    trees = (git,) if what == "build" else tuple(cleaning.repositories_in(git))
    with nullcontext(()) if what == "build" else hipified_copies(git, trees) as copies:
        found = {tree.folder: (tree, tuple(_find(tree, top, what, copies))) for tree in trees}
    items = _distinct(item for _, inner in found.values() for item in inner)
    restored = {
        tree.folder: (tree, [_inside(tree, top, item) for item in inner if item.fate == "restore"])
        for tree, inner in found.values()
    }
    patch = _carry_out(top, items, restored, really=really)
    shown = None if patch is None else str(_as_given(patch, folder))
    return CleanReport(folder=str(folder), items=items, done=really, patch=shown)


def _as_given(beside: Path, folder: Path) -> Path:
    """A file beside a folder, called as the folder was, where that leads there."""
    found = folder.parent / beside.name
    return found if found.exists() else beside


def _find(git: Worktree, top: Path, what: What, copies: Sequence[Path]) -> Iterator[Item]:
    if what in {"build", "all"}:
        yield from cleaning.find_ignored(git, top)
    if what == "build":
        return
    both = _staged_and_changed_again(git) if what == "all" else set()
    for item in cleaning.find_hipified(git, top, copies):
        if what == "all" and item.fate == "keep":
            if _inside(git, top, item) in both:
                yield msgspec.structs.replace(
                    item,
                    why="you staged the file and then changed it again, and a patch cannot contain both versions",
                )
            else:
                yield msgspec.structs.replace(
                    item, fate="restore", why="you changed the file, so your changes are saved as a patch"
                )
        else:
            yield item


def _staged_and_changed_again(git: Worktree) -> set[str]:
    """Tracked files with one content in the index and another on disk, both unlike HEAD's."""
    staged, changed = (
        set(
            filter(
                None, git.run("diff", "--name-only", "-z", "--no-renames", "--ignore-submodules=all", *more).split("\0")
            )
        )
        for more in (("--cached",), ())
    )
    return staged & changed & set(changed_files(git))


def _inside(git: Worktree, top: Path, item: Item) -> str:
    return (top / item.path).relative_to(git.folder).as_posix()


def _distinct(items: Iterator[Item]) -> tuple[Item, ...]:
    """Without what lies in a folder that goes as a whole."""
    every = list(items)
    whole = {item.path for item in every if item.fate == "remove"}
    return tuple(
        item
        for item in sorted(every, key=lambda item: (item.path, item.why))
        if not any(str(parent) in whole for parent in Path(item.path).parents)
    )


def _carry_out(
    top: Path, items: tuple[Item, ...], restored: Mapping[Path, tuple[Worktree, list[str]]], *, really: bool
) -> Path | None:
    if not really:
        return None
    trees = [(git, names) for git, names in restored.values() if names]
    text = "".join(cleaning.changes_as_patch(git, top, names) for git, names in trees)
    patch = _new_file(top) if text else None
    try:
        if patch is not None:
            replace_file(patch, text.encode("utf-8", "surrogateescape"))
        for git, names in trees:
            cleaning.restore(git, names)
        for item in items:
            if item.fate == "remove":
                cleaning.remove(top / item.path)
                cleaning.remove_empty((top / item.path).parent, top=top)
    except OSError as error:
        message = f"the file cannot be removed or written: {error.strerror}"
        raise HostError(Problem(file=str(error.filename or top), message=message)) from error
    return patch


def _new_file(top: Path) -> Path:
    """A name beside the tree that is not taken."""
    now = dt.datetime.now(tz=dt.UTC).strftime("%Y%m%dT%H%M%S")
    first = top.parent / f"{top.name}-changes-{now}.patch"
    number, path = 1, first
    while path.exists():
        number += 1
        path = first.with_stem(f"{first.stem}-{number}")
    return path
