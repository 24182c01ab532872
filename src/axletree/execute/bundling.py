"""What bundling reads: the package's part of a tree, what the package requires, whom the recipe names."""

from __future__ import annotations

from typing import TYPE_CHECKING

from packaging.utils import canonicalize_name

from axletree.core.errors import IntegrityError
from axletree.core.trees import make_tree
from axletree.execute.packing import content_of
from axletree.host.grafts import libraries_digest
from axletree.package.libraries.providers import Provider, required_names
from axletree.package.wheel.metadata import parse_metadata

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from axletree.core.trees import Entry, Tree
    from axletree.execute.context import Context
    from axletree.plan.actions.relocate import Bundled


def divided(context: Context, bundled: Bundled) -> tuple[Tree, dict[str, Entry]]:
    """A package's files with the metadata of their tree, and the files of the packages that share it.

    Raises:
        IntegrityError: the tree can't be divided as the recipe says.
        StageError: nothing is left for the package.
    """
    content = content_of(context, bundled.part)
    metadata = f"{content.brought}/"
    own = {*content.paths, *(path for path in content.entries if path.startswith(metadata))}
    rest = {path: entry for path, entry in content.entries.items() if path not in own}
    return make_tree(entry for path, entry in content.entries.items() if path in own), rest


def required_by(context: Context, bundled: Bundled, tree: Tree, folders: Iterable[Path]) -> frozenset[str]:
    """What a bundled package requires, by its metadata and the recipe.

    Raises:
        IntegrityError: its metadata is unreadable, or this machine's libraries are not those that were planned with.
    """
    if libraries_digest(folders) != bundled.libraries:
        message = "the libraries of this machine have changed since the build was planned"
        raise IntegrityError(message, hint="run `axletree build` again")
    requires = list(bundled.requires)
    for entry in tree.entries:
        if entry.blob is not None and entry.path.endswith(".dist-info/METADATA"):
            requires += parse_metadata(context.store.read_blob(entry.blob), file=entry.path).requires
    return required_names([*requires, *bundled.provided_by])


def stated_providers(bundled: Bundled | None) -> tuple[Provider, ...]:
    """Whom the recipe names for libraries."""
    stated = {} if bundled is None else bundled.provided_by
    return tuple(
        Provider(name=name, distributions=(canonicalize_name(name),), sonames=patterns)
        for name, patterns in stated.items()
    )
