"""Bring the wheels of a locked environment into the store, and prove that they install."""

from __future__ import annotations

from typing import TYPE_CHECKING

from axletree.core.trees import Entry, make_tree
from axletree.core.values import Digest, canonical_json
from axletree.execute.actions.fetch import fetch_blob
from axletree.execute.context import Outcome
from axletree.execute.stage_venvs import DESCRIPTION, LOCK, ensure_environment
from axletree.plan.actions.environment import EnvironmentFacts
from axletree.plan.actions.fetch import FileSource
from axletree.recipe.locks import make_lock, render_lock

if TYPE_CHECKING:
    from collections.abc import Iterator

    from axletree.execute.context import ActionContext
    from axletree.plan.actions.environment import EnvironmentParameters
    from axletree.recipe.locks import PyLock


def run(context: ActionContext[EnvironmentParameters]) -> Outcome:
    """Fetch what is missing, store the tree of lock and wheels, and make the virtual environment from it.

    Raises:
        HostError: a wheel cannot be had.
        IntegrityError: a wheel is not the locked one.
        StageError: the environment cannot be made.
    """
    parameters = context.parameters
    entries = list(_wheels(context))
    lock = render_lock(_lock(parameters)).encode()
    description = canonical_json({"version": parameters.version, "python": parameters.python})
    for path, data in ((LOCK, lock), (DESCRIPTION, description)):
        entries.append(Entry(path=path, blob=context.store.put_bytes(data), size=len(data)))
    tree = context.store.put_tree(make_tree(entries))
    ensure_environment(context, tree)
    facts = EnvironmentFacts(
        packages=tuple((wheel.name, wheel.version) for wheel in parameters.wheels),
        size=sum(wheel.size for wheel in parameters.wheels),
        python=parameters.python,
    )
    return Outcome(tree=tree, facts=facts)


def _lock(parameters: EnvironmentParameters) -> PyLock:
    """The lock of the wheels. What was required of the resolver is not in it: another way to the same is the same."""
    return make_lock((), python=parameters.version, platform=parameters.platform, wheels=parameters.wheels)


def _wheels(context: ActionContext[EnvironmentParameters]) -> Iterator[Entry]:
    """Fetch the wheels that the store lacks, with one progress over all of them."""
    wheels = context.parameters.wheels
    missing = [wheel for wheel in wheels if not context.store.has_blob(Digest(wheel.sha256))]
    total = sum(wheel.size for wheel in missing)
    done = 0
    for wheel in wheels:
        digest = Digest(wheel.sha256)
        if wheel in missing:
            wanted = FileSource(filename=wheel.filename, sha256=digest, size=wheel.size)
            digest = fetch_blob(context, wanted, before=done, total=total)
            done += wheel.size
        yield Entry(path=wheel.filename, blob=digest, size=wheel.size)
