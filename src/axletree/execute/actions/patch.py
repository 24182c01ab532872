"""Apply the recipe's patches to the source, all or none."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

from axletree.core.errors import HostError, StageError
from axletree.execute.context import Outcome
from axletree.execute.process import run_program

if TYPE_CHECKING:
    from axletree.execute.context import ActionContext
    from axletree.plan.actions.patch import PatchParameters


def run(context: ActionContext[PatchParameters]) -> Outcome:
    """Apply patches in order; a hunk whose lines are not in the source, all of them and unchanged, fails the stage.

    They may be found at other line numbers than the patch says, as with ``git apply``; the log tells by how much.

    Raises:
        StageError: a patch does not apply; which one, and GNU patch's own words are in the log.
        HostError: GNU patch is not installed.
    """
    program = shutil.which("patch")
    if program is None:
        raise HostError(
            "the recipe has patches, but patch is not on PATH", hint="install it (Debian: apt-get install patch)"
        )
    source = context.materialise("source", "source")
    for number, patch in enumerate(context.parameters.patches, start=1):
        name = patch.file
        context.progress(f"applying {name}", done=number, total=len(context.parameters.patches))
        path = context.work / f"{number:04d}.patch"
        path.write_bytes(context.store.read_blob(patch.blob))
        argv = [program, f"-p{patch.strip}", "--batch", "--forward", "--fuzz=0", "--no-backup-if-mismatch"]
        code = run_program(
            [*argv, "--reject-file=-", f"--input={path}"],
            cwd=source,
            env={"PATH": "/usr/bin:/bin", "LC_ALL": "C", "TMPDIR": str(context.work)},
            log=context.log,
            progress=context.progress,
        )
        if code != 0:
            raise StageError(
                f"patch {name} does not apply",
                hint=(
                    "create the patch again from the locked source, or remove it from `patches` if upstream already "
                    "contains the change"
                ),
            )
    return Outcome(tree=context.store.ingest(source, adopt=True))
