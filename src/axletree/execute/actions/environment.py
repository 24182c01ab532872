"""Bring the wheels of a locked environment into the store, and prove that they install."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from axletree.core.trees import Entry, make_tree
from axletree.core.values import Digest, canonical_json
from axletree.execute.actions.fetch import fetch_blob
from axletree.execute.context import Outcome
from axletree.execute.environments import DESCRIPTION, LOCK, ensure_environment
from axletree.recipe.locks import LockedWheel, make_lock, render_lock

if TYPE_CHECKING:
    from collections.abc import Iterator

    from axletree.execute.context import Context
    from axletree.recipe.locks import PyLock


def run(context: Context) -> Outcome:
    """Fetch what is missing, store the tree of lock and wheels, and make the virtual environment from it.

    Raises:
        HostError: a wheel cannot be had.
        IntegrityError: a wheel is not the locked one.
        StageError: the environment cannot be made.
    """
    parameters = context.parameters
    entries = list(_wheels(context, parameters["wheels"]))
    lock = render_lock(_lock(parameters)).encode()
    description = canonical_json({"version": parameters["version"], "python": parameters["python"]})
    for path, data in ((LOCK, lock), (DESCRIPTION, description)):
        entries.append(Entry(path=path, blob=context.store.put_bytes(data), size=len(data)))
    tree = context.store.put_tree(make_tree(entries))
    ensure_environment(context, tree)
    size = sum(wheel["size"] for wheel in parameters["wheels"])
    packages = [[wheel["name"], wheel["version"]] for wheel in parameters["wheels"]]
    return Outcome(tree=tree, facts={"packages": packages, "size": size, "python": parameters["python"]})


def _lock(parameters: dict[str, Any]) -> PyLock:
    """The lock of the wheels. What was required of the resolver is not in it: another way to the same is the same."""
    return make_lock(
        (),
        python=parameters["version"],
        platform=parameters["platform"],
        wheels=(LockedWheel(**wheel) for wheel in parameters["wheels"]),
    )


def _wheels(context: Context, wheels: list[dict[str, Any]]) -> Iterator[Entry]:
    """Fetch the wheels that the store lacks, with one progress over all of them."""
    missing = [wheel for wheel in wheels if not context.store.has_blob(Digest(wheel["sha256"]))]
    total = sum(wheel["size"] for wheel in missing)
    done = 0
    for wheel in wheels:
        digest = Digest(wheel["sha256"])
        if wheel in missing:
            digest = fetch_blob(context, wheel, before=done, total=total)
            done += wheel["size"]
        yield Entry(path=wheel["filename"], blob=digest, size=wheel["size"])
