"""The tables ``[checkouts.NAME]``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from axletree.recipe.addresses import has_login, is_git_address
from axletree.recipe.faults import Fault

if TYPE_CHECKING:
    from collections.abc import Iterator

    from axletree.recipe.checkouts import Checkout
    from axletree.recipe.faults import Path
    from axletree.recipe.model import Recipe


def checkout_faults(recipe: Recipe) -> Iterator[Fault]:
    """All faults of checkouts."""
    taken = {recipe.name: "the source"} if recipe.source.git is not None else {}
    first = not taken
    for name, table in recipe.checkouts.items():
        path: Path = ("checkouts", name)
        if name == recipe.name and recipe.source.git is not None:
            yield Fault(path=path, message="the recipe's own git source already has this name")
            continue
        yield from _address_faults(table, path)
        yield from _ref_faults(table, path, main=first)
        first = False
        folder = table.folder or name
        for other, owner in taken.items():
            if f"{folder}/".startswith(f"{other}/") or f"{other}/".startswith(f"{folder}/"):
                at = (*path, "folder") if table.folder else path
                message = f"the folder {folder!r} overlaps the folder of {owner}: {other!r}"
                yield Fault(path=at, message=message, hint="give each checkout its own folder, next to the others")
        taken.setdefault(folder, f"checkout {name!r}")


def _address_faults(table: Checkout, path: Path) -> Iterator[Fault]:
    at = (*path, "git")
    if not is_git_address(table.git):
        message = "the git URL is not supported: it must begin with https:// or file://"
        yield Fault(path=at, message=message)
    elif has_login(table.git):
        message = "the URL contains a user name or password, which git would store in the clone's configuration"
        yield Fault(path=at, message=message, hint="store them in git's credential helper or ~/.netrc")


def _ref_faults(table: Checkout, path: Path, *, main: bool) -> Iterator[Fault]:
    if (table.ref is None) == (table.pin is None):
        found = "neither" if table.ref is None else "both"
        message = f"exactly one of ref and pin is required, found {found}"
        hint = "set ref to a tag, branch or commit, or set pin to a file in the main checkout that contains it"
        yield Fault(path=path, message=message, hint=hint)
    elif table.pin is not None and main:
        message = "the first checkout cannot have a pin: it is the main checkout, from which pins are read"
        yield Fault(path=(*path, "pin"), message=message, hint="give it a ref, or give the recipe a git source")
    if table.ref is not None and (table.ref.startswith("-") or not table.ref.strip()):
        yield Fault(path=(*path, "ref"), message="a ref cannot be empty or start with '-'")
