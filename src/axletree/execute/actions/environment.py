"""Bring the wheels of a locked environment into the store, and prove that they install."""

from __future__ import annotations

from typing import TYPE_CHECKING

from axletree.core.trees import Entry, make_tree
from axletree.core.values import Digest, canonical_json
from axletree.execute.actions.fetch import fetch_file
from axletree.execute.context import Outcome
from axletree.execute.environments import DESCRIPTION, LOCK, ensure_environment

if TYPE_CHECKING:
    from axletree.execute.context import Context


def run(context: Context) -> Outcome:
    """Fetch what is missing, store the tree of lock and wheels, and make the virtual environment from it.

    Raises:
        HostError: a wheel cannot be had.
        IntegrityError: a wheel is not the locked one.
        StageError: the environment cannot be made.
    """
    parameters = context.parameters
    entries = [_wheel(context, wheel) for wheel in parameters["wheels"]]
    lock = parameters["lock"].encode()
    description = canonical_json({"version": parameters["version"], "python": parameters["python"]})
    for path, data in ((LOCK, lock), (DESCRIPTION, description)):
        entries.append(Entry(path=path, blob=context.store.put_bytes(data), size=len(data)))
    tree = context.store.put_tree(make_tree(entries))
    ensure_environment(context, tree)
    size = sum(wheel["size"] for wheel in parameters["wheels"])
    packages = [[wheel["name"], wheel["version"]] for wheel in parameters["wheels"]]
    return Outcome(tree=tree, facts={"packages": packages, "size": size, "python": parameters["python"]})


def _wheel(context: Context, wheel: dict[str, object]) -> Entry:
    digest = Digest(str(wheel["sha256"]))
    size = int(str(wheel["size"]))
    if not context.store.has_blob(digest):
        digest, size = context.store.put_file(fetch_file(context, wheel), adopt=True)
    return Entry(path=str(wheel["filename"]), blob=digest, size=size)
