"""Images that somebody names: of a recipe, of a file of images, or one that ships with Axletree."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from axletree.app.recipes import load_recipe
from axletree.app.shipped import recipes_folder
from axletree.core.errors import HostError, LockError, Problem, UsageError
from axletree.core.near import nearest
from axletree.recipe.faults import suggestion
from axletree.recipe.image_locks import IMAGE_LOCK, LockedImage, check_image_lock, parse_image_lock
from axletree.recipe.images import Image, parse_image_file
from axletree.recipe.toml import tables_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from axletree.app.lock_places import LockPlaces

_FOLDER = "images"
_LARGEST = 1 << 20


class NamedImages(msgspec.Struct, frozen=True, kw_only=True):
    """Images by name, and what their tables are relative to."""

    images: dict[str, Image]
    folder: Path
    locked: dict[str, LockedImage] = {}
    """Those that a lock pins."""


def find_images(asked: str) -> NamedImages:
    """The images that a command line names.

    Args:
        asked: ``RECIPE``, a file of images, or the name of an image that ships; with ``:NAME``, only that one of it.

    Raises:
        UsageError: there is no such recipe, file or image.
        RecipeError: the file has faults, all of which are given.
        LockError: the recipe's lock of images is out of date.
        HostError: the file can't be read.
    """
    place, wanted = (asked, "") if Path(asked).is_file() else _split(asked)
    found = _all_of(place)
    if not found.images:
        hint = "add a table such as [images.bookworm]"
        raise UsageError(Problem(file=place, message="the file defines no images", hint=hint))
    if not wanted:
        return found
    if wanted not in found.images:
        hints = suggestion(wanted, found.images, "images")
        raise UsageError(Problem(file=place, message=f"the file defines no image called {wanted!r}", hint=hints))
    return msgspec.structs.replace(found, images={wanted: found.images[wanted]})


def shipped_images() -> dict[str, Path]:
    """Files of the images that ship with Axletree, by name."""
    folder = recipes_folder()
    return {path.stem: path for path in sorted((folder / _FOLDER).glob("*.toml"))} if folder is not None else {}


def _split(asked: str) -> tuple[str, str]:
    place, colon, name = asked.rpartition(":")
    return (place, name) if colon else (asked, "")


def _all_of(place: str) -> NamedImages:
    path, shipped = Path(place), shipped_images()
    if not path.is_file() and place in shipped:
        path = shipped[place]
    text = _text(path, place) if path.is_file() else None
    if text is not None and set(tables_of(text)) == {"images"}:
        return NamedImages(images=parse_image_file(text, filename=place), folder=path.parent)
    try:
        loaded = load_recipe(place)
    except UsageError as error:
        near = nearest(place, shipped)
        if near is None:
            raise
        hint = f"the image {near!r} ships with Axletree"
        raise UsageError(*error.problems[:-1], msgspec.structs.replace(error.problems[-1], hint=hint)) from None
    images = loaded.recipe.images
    return NamedImages(images=images, folder=loaded.path.parent, locked=locked_images(loaded.places, images))


def _text(path: Path, name: str) -> str | None:
    """A file's text; ``None`` where it is too large, or no text, which whoever reads recipes tells."""
    try:
        with path.open("rb") as stream:
            data = stream.read(_LARGEST + 1)
        return data.decode() if len(data) <= _LARGEST else None
    except UnicodeDecodeError:
        return None
    except OSError as error:
        raise HostError(Problem(file=name, message=f"the file cannot be read: {error.strerror}")) from error


def locked_images(places: LockPlaces, images: Mapping[str, Image]) -> dict[str, LockedImage]:
    """What a recipe's lock pins of some of its images.

    Raises:
        LockError: the lock of one of them is out of date.
        RecipeError: it is not a lock of images.
        HostError: it can't be read.
    """
    path = places.find(IMAGE_LOCK)
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError) as error:
        raise HostError(Problem(file=str(path), message=f"the file cannot be read: {error}")) from error
    locked = {name: image for name, image in parse_image_lock(text, file=str(path)).items() if name in images}
    problems = check_image_lock(locked, images, file=str(path))
    if problems:
        raise LockError(*problems)
    return locked
