"""The tables ``[checkouts.NAME]``: git repositories that are worked on side by side.

A build does not read them: it has its locked source. They are what a developer has on disk.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import msgspec
from msgspec import Meta

from axletree.recipe.base import Table
from axletree.recipe.placeholders import render

if TYPE_CHECKING:
    from axletree.recipe.model import Recipe


class Checkout(Table, frozen=True, kw_only=True):
    """A git repository next to the source, at its own ref or at the one that the main checkout specifies.

    The main checkout is the recipe's git source, or the first of these tables where the source is of another kind.
    """

    git: Annotated[str, Meta(description="URL of the repository, https:// or file://.")]
    ref: Annotated[str | None, Meta(description="Tag, branch or commit. Either this or `pin`.")] = None
    pin: Annotated[
        str | None,
        Meta(
            description=(
                "File in the main checkout that contains the commit or tag, such as "
                "`.github/ci_commit_pins/vision.txt`; the file is read from the commit that is checked out."
            )
        ),
    ] = None
    folder: Annotated[
        str | None, Meta(description="Folder to clone the repository into; by default, the name of the checkout.")
    ] = None
    submodules: Annotated[bool, Meta(description="Whether to also check out submodules, recursively.")] = True


class Repository(msgspec.Struct, frozen=True, kw_only=True):
    """A repository to check out; no placeholders are left."""

    name: str
    git: str
    folder: str
    ref: str | None = None
    pin: str | None = None
    submodules: bool = True


def repositories(recipe: Recipe) -> tuple[Repository, ...]:
    """The repositories of a recipe, the main one first; none where it names no git repository."""
    values = {"name": recipe.name, "version": recipe.version}

    def fill(text: str | None) -> str | None:
        return None if text is None else render(text, values, allowed=frozenset())

    found = []
    source = recipe.source
    if source.git is not None:
        found.append(
            Repository(
                name=recipe.name,
                git=fill(source.git) or "",
                folder=recipe.name,
                ref=fill(source.ref),
                submodules=source.submodules,
            )
        )
    found += [
        Repository(
            name=name,
            git=fill(table.git) or "",
            folder=fill(table.folder) or name,
            ref=fill(table.ref),
            pin=fill(table.pin),
            submodules=table.submodules,
        )
        for name, table in recipe.checkouts.items()
    ]
    return tuple(found)
