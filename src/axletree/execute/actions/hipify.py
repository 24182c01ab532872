"""Make HIP code of a source's CUDA code with PyTorch's own ``tools/amd_build/build_amd.py``, in a copy.

Upstream's script writes HIP files beside the CUDA files that they are made of, and edits others where they lie, third
parties' included: a checkout that it ran in is dirty afterwards, and a CPU or CUDA build in there wants HIP's headers.
Here it runs in a copy: its result is a tree of its own, and the source stays what it was.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from axletree.buildsystem.pytorch.hipified import SCRIPT
from axletree.core.errors import StageError
from axletree.core.units import plural
from axletree.execute.context import Outcome
from axletree.execute.environments import ensure_environment
from axletree.execute.process import check_program
from axletree.execute.variables import child_environment
from axletree.plan.actions.hipify import HipifyFacts

if TYPE_CHECKING:
    from axletree.core.trees import Tree
    from axletree.execute.context import ActionContext
    from axletree.plan.actions.project import WorkParameters


class HipifyChanges(msgspec.Struct, frozen=True, kw_only=True):
    """What hipify did to a source. Paths, sorted."""

    made: tuple[str, ...]
    edited: tuple[str, ...]
    removed: tuple[str, ...]


def run(context: ActionContext[WorkParameters]) -> Outcome:
    """Run the script in a copy of the source; what comes out is the source with the files that it made and edited.

    Whether a HIP compiler is installed where the script looks (``$HIP_PATH``) changes what it makes of kernel launches,
    so it finds none unless the recipe's ``env`` says where.

    Raises:
        StageError: the source has no such script, it fails, or it has nothing to do.
    """
    before = context.tree("source")
    folder = context.parameters.directory
    script = SCRIPT if folder == "." else f"{folder}/{SCRIPT}"
    if before.find(script) is None:
        raise StageError(
            f"the source does not contain {script}",
            hint="hipify stages need PyTorch's source tree; set `directory` if it is in a subfolder",
        )
    venv = ensure_environment(context, context.request.inputs["environment"])
    source = context.materialise("source", "source")
    context.progress("converting CUDA code to HIP")
    with child_environment(context, venv=venv, compiles=False, variables=context.parameters.env) as env:
        check_program(
            [str(venv / "bin" / "python"), SCRIPT],
            cwd=source / folder,
            env={"HIP_PATH": str(context.work / "no-hip"), **env},
            log=context.log,
            progress=context.progress,
            what=SCRIPT,
        )
    result = context.store.ingest(source, adopt=True)
    changes = compare(before, context.store.get_tree(result))
    if not changes.made:
        raise StageError(
            f"{SCRIPT} created no files",
            hint=(
                "restore the source if an earlier run already converted it, or remove the hipify stage if it "
                "contains no CUDA code"
            ),
        )
    said = f"{plural(len(changes.made), 'file')} created, {len(changes.edited):,} edited in place"
    context.progress(said)
    context.log.say(said)
    for path in changes.edited:
        context.log.say(f"edited: {path}")
    facts = HipifyFacts(made=len(changes.made), edited=changes.edited, removed=changes.removed)
    return Outcome(tree=result, facts=facts)


def compare(before: Tree, after: Tree) -> HipifyChanges:
    """What differs between two trees."""
    old, new = ({entry.path: entry for entry in tree.entries} for tree in (before, after))
    return HipifyChanges(
        made=tuple(sorted(new.keys() - old.keys())),
        edited=tuple(sorted(path for path in new.keys() & old.keys() if new[path] != old[path])),
        removed=tuple(sorted(old.keys() - new.keys())),
    )
