"""Images and Pythons of stages, made before these run; or the proof that this machine is the image already."""

from __future__ import annotations

import dataclasses
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from axletree.app.image_baselines import check_baselines
from axletree.app.image_inputs import PYTHONS, image_of_recipe
from axletree.app.images import make_image
from axletree.core.errors import HostError, Problem
from axletree.core.units import plural, some_of
from axletree.host.image.inventory import take_inventory
from axletree.host.image.source import host_platform
from axletree.host.namespaces import no_images
from axletree.host.portable_python import make_portable
from axletree.host.room import STORE
from axletree.host.sandbox import grants_room
from axletree.host.tools import SYSTEM_PATH
from axletree.package.image.inventory import doubts
from axletree.plan.containers import ENGINES
from axletree.store.images import ROOT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from axletree.app.image_inputs import ImageInputs
    from axletree.app.planning import Prepared
    from axletree.plan.graph import PlannedStage
    from axletree.recipe.image_locks import LockedImage
    from axletree.recipe.settings import Settings
    from axletree.store import Store

_HERE = Path("/")


def make_ready(
    prepared: Prepared,
    store: Store,
    *,
    settings: Settings,
    environ: Mapping[str, str],
    note: Callable[[str], object],
) -> Prepared:
    """Make the images and Pythons that stages without a result need, and see that the images have their tools.

    With the runner ``here``, this machine's files are those of the image: they are compared with the lock instead.

    Returns:
        The plan, with what was found out of its images.

    Raises:
        HostError: an image lacks a declared tool, or can't be made.
        RecipeError: an image does not fit what a package is to be.
        IntegrityError: an image is no longer what is locked.
    """
    waiting = waiting_stages(prepared)
    if not waiting:
        return prepared
    here, room = settings.runner == "here", grants_room(store.root)
    if settings.runner == "namespace" and not room:
        engines = [name for name in ENGINES if shutil.which(name, path=environ.get("PATH")) is not None]
        return _with(prepared, refused=no_images(engines))
    names = tuple(dict.fromkeys(image_of_recipe(prepared, stage) for stage in waiting))
    unproved: dict[str, tuple[str, ...]] = {}
    for name in names:
        locked = prepared.images.locked[name]
        if here:
            unproved[name] = _doubts(prepared, locked, waiting, note)
        else:
            table = prepared.loaded.recipe.images[name]
            make_image(store, name, table, locked, folder=prepared.loaded.path.parent, environ=environ, note=note)
    roots = {name: _HERE if here else store.image_path(prepared.inputs.images[name].id) / ROOT for name in names}
    problems = [problem for stage in waiting for problem in _lacking_tools(prepared, roots, stage, here=here)]
    if problems:
        raise HostError(*dict.fromkeys(problems))
    for finding in check_baselines(prepared, roots, frozenset(stage.id for stage in waiting)):
        note(f"{finding.severity}: {finding.message}")
    fixed = room or not here
    for python in prepared.images.pythons.values() if fixed else ():
        folder = store.cache / PYTHONS / python.id
        make_portable(python, folder, home=str(STORE / folder.relative_to(store.root)))
    return _with(prepared, here=here, fixed=fixed, unproved=unproved)


def _with(prepared: Prepared, **found: object) -> Prepared:
    images: ImageInputs = dataclasses.replace(prepared.images, **found)  # type: ignore[arg-type]  # names of its fields
    return msgspec.structs.replace(prepared, images=images)


def waiting_stages(prepared: Prepared) -> tuple[PlannedStage, ...]:
    """Stages with an image that have no result yet."""
    stages = prepared.plan.stages.values()
    return tuple(each for each in stages if each.step.image is not None and prepared.resolved[each.id].record is None)


def _doubts(
    prepared: Prepared, locked: LockedImage, waiting: Iterable[PlannedStage], note: Callable[[str], object]
) -> tuple[str, ...]:
    """Why this machine is not known to be an image; says what came of it."""
    stages = [stage for stage in waiting if image_of_recipe(prepared, stage) == locked.name]
    tools = {tool for stage in stages for tool in stage.step.tools}
    known = locked.known_inventory
    taken = take_inventory(
        _HERE, variables=locked.variables, tools={*tools, *(known.named if known else ())}, whole=True
    )
    found = doubts(known, taken, tools=tools)
    if locked.platform != host_platform():
        found = (f"this machine is {host_platform()}, the image {locked.platform}", *found)
    if found:
        note(f"warning: unproved image: Axletree cannot prove that this machine is the image {locked.name}")
        for line in found:
            note(f"  {line}")
        return found
    files = f"{plural(len(taken.files), 'file')} in /usr/local and /opt"
    same = f"{plural(len(taken.packages), 'package')}, {files} and {plural(len(taken.tools), 'program')} match the lock"
    note(f"note: this machine is the image {locked.name}: {same}")
    return ()


def _lacking_tools(
    prepared: Prepared, roots: Mapping[str, Path], stage: PlannedStage, *, here: bool
) -> Iterable[Problem]:
    image = stage.step.image
    assert image is not None  # noqa: S101 (only stages with images wait for them)
    name = image_of_recipe(prepared, stage)
    folders = image.variables.get("PATH", ":".join(SYSTEM_PATH)).split(":")
    missing = [tool for tool in (*stage.step.tools, "bash") if not _has(roots[name], folders, tool)]
    if missing:
        table = prepared.loaded.recipe.images[name]
        hint = f"add the packages that contain them to images.{name}.debian.packages, then lock the recipe again"
        if here:
            hint = f"--runner here uses the programs of this machine: start the job from the image {name}"
        yield Problem(
            file=str(prepared.loaded.path),
            key=f"stages.{stage.step.name}",
            message=f"{'this machine' if here else f'image {name}'} does not contain {some_of(missing)}",
            hint=hint if here or table.debian is not None else "use an image that contains them",
        )


def _has(root: Path, folders: Iterable[str], tool: str) -> bool:
    """Whether a program is there; links are not followed, since absolute ones lead elsewhere on the host."""
    names = (f"{folder.strip('/')}/{tool}" for folder in folders)
    return any((root / name).is_symlink() or (root / name).is_file() for name in names)
