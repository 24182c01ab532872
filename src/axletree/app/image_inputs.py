"""What planning knows of the images of a recipe's stages. Recipes without images load nothing for them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import msgspec

from axletree.core.errors import Problem, UsageError
from axletree.core.images import ImageId, StageImage
from axletree.host.room import STORE
from axletree.recipe.images import images_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from axletree.app.planning import Prepared
    from axletree.app.recipes import LoadedRecipe
    from axletree.core.records import Interpreter
    from axletree.package.python.portable import Portable
    from axletree.plan.graph import PlannedStage
    from axletree.recipe.image_locks import LockedImage
    from axletree.recipe.target import Target

PYTHONS = "pythons"
"""Folder of portable Pythons among the caches of a store."""


@dataclass(frozen=True, kw_only=True)
class ImageInputs:
    """What planning knows of images; empty for recipes whose stages use none."""

    locked: dict[str, LockedImage] = field(default_factory=dict)
    """Name -> the image that the lock pins."""
    pythons: dict[str, Portable] = field(default_factory=dict)
    """Version -> the Python of this machine that goes into images."""
    here: bool = False
    """Whether stages see this machine's files, because it runs in the image."""
    gpus: bool = False
    """Whether tests in images see the GPUs of this machine."""
    fixed: bool = True
    """Whether stages see the store at its fixed path, and the Python with it."""
    refused: Problem | None = None
    """Why no image can be entered, if that is so."""
    unproved: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Name -> why this machine's files are not known to be those of the image."""

    @property
    def in_keys(self) -> dict[str, StageImage]:
        """Name -> what keys have of an image."""
        return {
            name: StageImage(id=ImageId(locked.id), variables=locked.variables) for name, locked in self.locked.items()
        }

    @property
    def portable(self) -> dict[str, str]:
        """Version -> identity of the Python."""
        return {version: python.id for version, python in self.pythons.items()}


def image_inputs(
    loaded: LoadedRecipe,
    targets: Iterable[Target],
    interpreters: Mapping[str, Interpreter],
    *,
    environ: Mapping[str, str],
    gpus: bool = False,
) -> ImageInputs:
    """What the lock says of the images that variants use, and the Pythons for them.

    ``gpus`` says whether tests in images see the GPUs of this machine.

    Raises:
        LockError: the lock is out of date.
        RecipeError: it is not a lock of images.
        HostError: it can't be read, or an interpreter can't be taken into an image.
    """
    names = {name for target in targets for name in images_of(target)}
    if not names:
        return ImageInputs()
    from axletree.app.image_names import locked_images  # noqa: PLC0415 (start-up time: most recipes have no image)
    from axletree.host.portable_survey import survey  # noqa: PLC0415

    images = {name: image for name, image in loaded.recipe.images.items() if name in names}
    found = {version: each for version, each in interpreters.items() if each.path}
    return ImageInputs(
        locked=locked_images(loaded.places, images),
        pythons={version: survey(interpreter, environ=environ) for version, interpreter in found.items()},
        gpus=gpus,
    )


def portable_interpreters(prepared: Prepared) -> dict[str, Interpreter]:
    """The interpreters that stages with images use, at the paths that they see.

    Where a stage that runs here cannot see the store at its fixed path, it uses the machine's own interpreter, whose
    files are the same.
    """
    if not prepared.images.fixed:
        return prepared.interpreters
    return {
        version: msgspec.structs.replace(
            prepared.interpreters[version], path=str(STORE / "cache" / PYTHONS / python.id / python.program)
        )
        for version, python in prepared.images.pythons.items()
    }


def image_name(prepared: Prepared, stage: PlannedStage) -> str | None:
    """What the recipe calls the image of a stage."""
    return None if stage.step.image is None else image_of_recipe(prepared, stage)


def image_of_recipe(prepared: Prepared, stage: PlannedStage) -> str:
    """The same for a stage that has one."""
    image = stage.step.image
    return next(name for name, each in prepared.inputs.images.items() if each == image)


def refuse_images(prepared: Prepared, command: str) -> None:
    """Refuse a command that works with the files of the host for stages that have an image.

    Raises:
        UsageError: one of the stages has.
    """
    for stage in prepared.plan.stages.values():
        if stage.step.image is not None:
            message = f"`{command}` cannot use images yet, and stage {stage.id} has one"
            raise UsageError(Problem(message=message, hint="choose a variant without an image: -v or --set"))
