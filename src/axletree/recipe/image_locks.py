"""The lock of a recipe's images, ``images.lock.toml``: which image each name means, exactly."""

from __future__ import annotations

import tomllib
from typing import TYPE_CHECKING, Annotated, Literal

import msgspec
import tomli_w
from msgspec import Meta

from axletree.core.errors import Problem, RecipeError
from axletree.core.formats import format_problem
from axletree.recipe.base import Name, Sha256, Table
from axletree.recipe.locks import REMAKE

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from axletree.recipe.images import Image

IMAGE_LOCK = "images.lock.toml"
"""Name of the lock in a recipe's companion folder."""
_VERSION: Literal[1] = 1


class LockedDeb(Table, frozen=True, kw_only=True, omit_defaults=True):
    """A Debian package of an image."""

    name: str
    version: str
    architecture: str
    sha256: Sha256


class LockedInventory(Table, frozen=True, kw_only=True, omit_defaults=True):
    """What is in the root of an image, as far as builds depend on it: a job that runs in it proves itself by this."""

    database: Literal["dpkg", "rpm", "apk"] | None = None
    """Whose list of packages it is; ``None``: the root has none that can be read, so its packages are not known."""
    packages: tuple[str, ...] = ()
    """Installed packages, ``NAME VERSION ARCHITECTURE`` each; empty where they are the image's ``debs``."""
    files: dict[str, str] = {}
    """What is in /usr/local and /opt: path -> kind and size, or the target of a link."""
    depth: int | None = None
    """Folders so many levels deep have one entry for all that is in them; ``None``: each file has one."""
    tools: dict[str, Annotated[str, Meta(pattern=r"^([0-9a-f]{64})?$")]] = {}
    """Program -> SHA-256 of its file; empty where the image has none."""

    @property
    def named(self) -> frozenset[str]:
        """The programs that go by their names, as stages declare them; a compiler's own parts go by their paths."""
        return frozenset(name for name in self.tools if "/" not in name)


class LockedImage(Table, frozen=True, kw_only=True, omit_defaults=True):
    """One image."""

    name: Name
    kind: Literal["oci", "docker-archive", "tar", "registry", "debian"]
    reference: str
    """What it was made from, as the recipe has it."""
    id: Sha256
    """What names it in the store: in keys, this and its variables stand for the image."""
    platform: str
    """``linux/amd64``."""
    layers: Annotated[tuple[Sha256, ...], Meta(min_length=1)]
    """SHA-256 of the uncompressed layers, the lowest first."""
    manifest: Sha256 | None = None
    """SHA-256 of its manifest, where it had one: by it, a registry has it whatever its tag means later."""
    variables: dict[str, str] = {}
    """Environment variables that it sets."""
    debs: tuple[LockedDeb, ...] = ()
    inventory: LockedInventory | None = None
    """What is in it; locks of earlier versions have none."""

    @property
    def known_inventory(self) -> LockedInventory | None:
        """The inventory with its packages, wherever the lock has them."""
        found = self.inventory
        if found is None or found.database != "dpkg" or found.packages:
            return found
        return msgspec.structs.replace(found, packages=_names(self.debs))

    def with_inventory(self, inventory: LockedInventory) -> LockedImage:
        """The same image with an inventory, whose packages are left out if they are the image's ``debs``."""
        if inventory.database == "dpkg" and inventory.packages == _names(self.debs):
            inventory = msgspec.structs.replace(inventory, packages=())
        return msgspec.structs.replace(self, inventory=inventory)


def _names(debs: Iterable[LockedDeb]) -> tuple[str, ...]:
    return tuple(sorted(f"{deb.name} {deb.version} {deb.architecture}" for deb in debs))


class ImageLock(Table, frozen=True, kw_only=True):
    """All images of a recipe."""

    lock_version: Literal[1] = _VERSION
    images: tuple[LockedImage, ...] = ()


def render_image_lock(images: Iterable[LockedImage]) -> str:
    """Text of a lock; equal locks have equal texts."""
    ordered = tuple(sorted(images, key=lambda image: image.name))
    return tomli_w.dumps(msgspec.to_builtins(ImageLock(images=ordered)))


def parse_image_lock(text: str, *, file: str) -> dict[str, LockedImage]:
    """Read a lock: name -> image.

    Raises:
        RecipeError: it is no lock of images, of another version, or lists a name twice.
    """
    try:
        data = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise RecipeError(Problem(message=f"the file is not valid TOML: {error}", file=file, hint=REMAKE)) from error
    problem = format_problem(data.get("lock-version", _VERSION), _VERSION, file=file, remake=REMAKE)
    if problem is not None:
        raise RecipeError(problem)
    try:
        images = msgspec.convert(data, ImageLock).images
    except msgspec.ValidationError as error:
        message = f"the file is not a lock created by `axletree lock`: {error}"
        raise RecipeError(Problem(message=message, file=file, hint=REMAKE)) from error
    names = [image.name for image in images]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise RecipeError(*(Problem(message=f"the lock lists an image twice: {name}", file=file) for name in twice))
    return {image.name: image for image in images}


def check_image_lock(
    locked: Mapping[str, LockedImage], images: Mapping[str, Image], *, file: str
) -> tuple[Problem, ...]:
    """What of a lock no longer fits the recipe; nothing where it fits."""
    wanted = {name: image for name, image in images.items() if image.kind != "host"}
    changes = [(name, f"image {name} added") for name in wanted if name not in locked]
    changes += [(name, f"image {name} removed") for name in locked if name not in wanted]
    changes += [
        (name, f"image {name} is {image.reference}, was {locked[name].reference}")
        for name, image in wanted.items()
        if name in locked and (locked[name].kind, locked[name].reference) != (image.kind, image.reference)
    ]
    return tuple(
        Problem(message=f"the lock is out of date: {change}", file=file, key=f"images.{name}", hint=REMAKE)
        for name, change in changes
    )
