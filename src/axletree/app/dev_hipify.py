"""hipify in an editable tree: said before it writes into the user's files, with the way back, and then done."""

from __future__ import annotations

import filecmp
import os
import shutil
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from axletree.buildsystem.editable import compare_files
from axletree.buildsystem.pytorch.hipified import SCRIPT
from axletree.core.errors import StageError
from axletree.core.units import plural
from axletree.execute.actions.hipify import HipifyChanges
from axletree.execute.process import check_program
from axletree.host import devtree
from axletree.host.devtree import FOLDER
from axletree.host.files import replace_file

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from axletree.execute.context import Progress
    from axletree.execute.editable import Project
    from axletree.host.devtree import DevState

LISTING = "hipify.txt"
"""File beside the build folder that lists what hipify was going to write."""
_SHOWN = 5
_NOT_COPIED = {".git", FOLDER, "build", "__pycache__"}


def hipify_tree(
    state: DevState, project: Project, files: Mapping[str, devtree.Stamp], progress: Progress
) -> tuple[bool, tuple[str, ...]]:
    """Run the source's own script in the tree, for a variant of hipified code whose files are not as it left them.

    The first time it runs in a copy before, so that what it will write can be said.

    Args:
        state: the tree.
        project: its project.
        files: the code in the tree.
        progress: gets what is going to happen.

    Returns:
        Whether it ran, and what the user must know of it afterwards.

    Raises:
        StageError: the tree has no such script, or it fails.
    """
    if state.hipify is None:
        _announce_extension(state, project, progress)
        return False, ()
    if state.hipified and not compare_files(devtree.read_files(Path(state.tree)), files):
        return False, ()
    if not (project.source / SCRIPT).is_file():
        raise StageError(
            f"the tree does not contain {SCRIPT}", hint="variants with a hipify stage need PyTorch's source tree"
        )
    undo = _undo(state)
    if state.hipified:
        progress("running hipify again because the code changed")
        _run(project, project.source, state.hipify)
        return True, ()
    progress("finding out what hipify will write")
    changes = _preview(project, state.hipify)
    for line in _announced(changes, project, undo):
        progress(line)
    listed = [f"create {path}" for path in changes.made] + [f"edit {path}" for path in changes.edited]
    replace_file(project.scratch / LISTING, "".join(f"{line}\n" for line in listed).encode("utf-8", "surrogateescape"))
    _run(project, project.source, state.hipify)
    made, edited = len(changes.made), len(changes.edited)
    return True, (f"hipify created {plural(made, 'file')} and edited {edited:,} in the tree; undo: {undo}",)


def _undo(state: DevState) -> str:
    return f"axletree clean --hipify --yes {state.tree}"


def _announced(changes: HipifyChanges, project: Project, undo: str) -> Iterator[str]:
    listing = project.scratch / LISTING
    yield f"hipify will create {plural(len(changes.made), 'file')} and edit {len(changes.edited):,} in {project.source}"
    for verb, paths in (("create", changes.made), ("edit", changes.edited)):
        for path in paths[:_SHOWN]:
            yield f"  {verb} {path}"
        if len(paths) > _SHOWN:
            yield f"  and {len(paths) - _SHOWN:,} more to {verb}, listed in {listing}"
    if any((folder / ".git").exists() for folder in (project.source, *project.source.parents)):
        yield f"undo it with: {undo}"
    else:
        yield "edited files cannot be restored, because the tree is not in a git repository: keep a copy"


def _announce_extension(state: DevState, project: Project, progress: Progress) -> None:
    """Say that PyTorch's own build of an extension hipifies, which is seen only once it has."""
    setting = state.request.local.setting
    listing = project.scratch / LISTING
    if setting is None or not setting.gpu.startswith("rocm") or listing.exists():
        return
    with suppress(OSError):
        if "CUDAExtension" in (project.source / "setup.py").read_text(encoding="utf-8", errors="replace"):
            progress(f"PyTorch hipifies the extension's CUDA files and writes HIP files into {project.source}")
            progress(f"undo it with: {_undo(state)}")
            replace_file(listing, b"written by the extension's own build\n")


def _preview(project: Project, variables: Mapping[str, str]) -> HipifyChanges:
    """What the script would do, by what it does in a copy."""
    copy = project.context.work / "hipify"
    top = str(project.source)
    shutil.copytree(
        top, copy, symlinks=True, ignore=lambda place, names: _NOT_COPIED & set(names) if place == top else ()
    )
    _run(project, copy, variables)
    made: list[str] = []
    edited: list[str] = []
    for place, _, names in os.walk(copy):
        for name in names:
            after = Path(place, name)
            path = after.relative_to(copy)
            before = project.source / path
            if "__pycache__" in path.parts or after.is_symlink():
                continue
            if not before.exists():
                made.append(str(path))
            elif not filecmp.cmp(before, after, shallow=False):
                edited.append(str(path))
    shutil.rmtree(copy)
    return HipifyChanges(made=tuple(sorted(made)), edited=tuple(sorted(edited)), removed=())


def _run(project: Project, folder: Path, variables: Mapping[str, str]) -> None:
    """Run the script as a hipify stage does: without a HIP compiler, unless the recipe names one."""
    check_program(
        ["python", SCRIPT],
        cwd=folder,
        env={**project.env, "HIP_PATH": str(project.context.work / "no-hip"), **variables},
        log=project.context.log,
        progress=project.context.progress,
        what=SCRIPT,
    )
