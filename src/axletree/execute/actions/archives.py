"""The archives of an index root as a tree, with their SHA-256 digests in a file that ``sha256sum -c`` reads."""

from __future__ import annotations

from typing import TYPE_CHECKING

from axletree.core.trees import Entry, make_tree
from axletree.execute.context import Outcome
from axletree.package.checksums import CHECKSUMS, render_checksums
from axletree.plan.actions.listing import ListedFile, ListingFacts

if TYPE_CHECKING:
    from axletree.execute.context import ActionContext
    from axletree.plan.actions.listing import ListingParameters


def run(context: ActionContext[ListingParameters]) -> Outcome:
    """Lay them out beside the index; the archives themselves are not copied, only named."""
    names = [name for name in context.request.inputs if name.startswith("zip:")]
    entries = [entry for name in names for entry in context.tree(name).entries]
    data = render_checksums({entry.path: entry.blob for entry in entries if entry.blob is not None})
    listing = Entry(path=CHECKSUMS, blob=context.store.put_bytes(data), size=len(data))
    tree = context.store.put_tree(make_tree([*entries, listing]))
    listed = tuple(
        ListedFile(filename=entry.path, sha256=entry.blob, size=entry.size)
        for entry in entries
        if entry.blob is not None
    )
    return Outcome(tree=tree, facts=ListingFacts(kind="archives", root=context.parameters.root, files=listed))
