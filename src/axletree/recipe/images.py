"""The tables ``[images.NAME]``: root file systems that stages run in. A file of images has nothing but these."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated, Literal

import msgspec
from msgspec import Meta

from axletree.core.errors import RecipeError
from axletree.recipe.addresses import has_login
from axletree.recipe.base import Name, Table
from axletree.recipe.faults import Fault, related
from axletree.recipe.structure import check_structure
from axletree.recipe.toml import decode_toml, locate_faults

if TYPE_CHECKING:
    from collections.abc import Iterator

    from axletree.recipe.faults import Path
    from axletree.recipe.target import Target

IMAGE_KINDS = ("oci", "docker-archive", "tar", "registry", "debian", "host")
ImageKind = Literal["oci", "docker-archive", "tar", "registry", "debian", "host"]
NO_IMAGE = frozenset({None, "host", "none"})
"""What stages and tests call the files of the host."""
FILES = ("oci", "docker-archive", "tar")
"""Kinds that are something on a disk, each written as ``KIND:PATH``."""
_REFERENCE = re.compile(
    r"(?:[A-Za-z0-9.-]+(?::\d{1,5})?/)?[a-z0-9]+(?:[._/-]+[a-z0-9]+)*"
    r"(?::[A-Za-z0-9_][A-Za-z0-9._-]{0,127})?(?:@sha256:[0-9a-f]{64})?"
)
_OTHERS = re.compile(r"(?:containers-storage|dir|docker-daemon|oci-archive|ostree|sif):")
"""What skopeo reads besides; as names of images nobody has them."""
_SUITE = re.compile(r"[a-z][a-z0-9.-]*")
_PACKAGE = re.compile(r"[a-z0-9][a-z0-9+.-]+(?::[a-z0-9]+)?(?:[=/][A-Za-z0-9.+:~-]+)?")
_MIRROR = re.compile(r"(?:deb (?:\[[^\]\n]*\] )?)?(?:https?|file|copy)://?\S+(?: [^\n]*)?")
_LONGEST = 1000


class DebianTable(Table, frozen=True, kw_only=True):
    """A root that mmdebstrap creates from Debian packages."""

    suite: Annotated[str, Meta(description="Suite, such as `bookworm`.")]
    packages: Annotated[
        tuple[str, ...],
        Meta(description="Packages to install, in addition to the required ones and apt; recommended ones are not."),
    ] = ()
    mirror: Annotated[
        str | None,
        Meta(
            description="URL of the package archive, or a whole `deb` line; by default, the first archive that apt is configured with. It affects neither the image nor its identity."
        ),
    ] = None


class Image(Table, frozen=True, kw_only=True):
    """A root file system that stages run in: exactly one of `from` and `debian`."""

    from_: Annotated[
        str | None,
        Meta(
            description="Existing image: a registry reference such as `quay.io/pypa/manylinux_2_28_x86_64`, `oci:DIR[:TAG]`, `docker-archive:FILE[:NAME:TAG]`, or `tar:FILE` (a root file system). Paths are relative to the recipe."
        ),
    ] = msgspec.field(name="from", default=None)
    debian: Annotated[DebianTable | None, Meta(description="Create the image from Debian packages.")] = None

    @property
    def kind(self) -> ImageKind:
        """Where it comes from."""
        if self.debian is not None:
            return "debian"
        return split_from(self.from_ or "")[0]

    @property
    def reference(self) -> str:
        """What it is made from, in one line, as locks and lists have it."""
        if self.debian is None:
            return self.from_ or ""
        return " ".join(["debian", self.debian.suite, *sorted(self.debian.packages)])


class ImageFile(Table, frozen=True, kw_only=True):
    """A file of images."""

    images: Annotated[dict[Name, Image], Meta(description="Images by name.")]


def split_from(text: str) -> tuple[ImageKind, str, str | None]:
    """The parts of ``from``: its kind, its path or reference, and the tag that follows a path."""
    if text == "host":
        return "host", "", None
    for kind in FILES:
        if text.startswith(f"{kind}:"):
            path, _, tag = text.removeprefix(f"{kind}:").partition(":")
            return kind, path, tag or None  # type: ignore[return-value]  # mypy widens what FILES has
    return "registry", text.removeprefix("docker://"), None


def chosen_image(name: str | None) -> str | None:
    """The image that a stage or test names, with its placeholders filled; ``None`` for the files of the host."""
    return None if name in NO_IMAGE else name


def images_of(target: Target) -> tuple[str, ...]:
    """Images that the stages and tests of a target see."""
    named = [*(stage.image for stage in target.stages), *(test.image for test in target.tests)]
    return tuple(sorted({name for name in named if name is not None}))


def image_faults(images: dict[str, Image]) -> Iterator[Fault]:
    """All faults of tables of images."""
    for name, image in images.items():
        path: Path = ("images", name)
        if (image.from_ is None) == (image.debian is None):
            found = "neither" if image.from_ is None else "both"
            yield Fault(path=path, message=f"exactly one of from and debian is required, found {found}")
        if image.from_ is not None:
            yield from _from_faults(image.from_, (*path, "from"))
        if image.debian is not None:
            yield from _debian_faults(image.debian, (*path, "debian"))


def parse_image_file(text: str, *, filename: str) -> dict[str, Image]:
    """Read a file that has nothing but images.

    Raises:
        RecipeError: with every problem of the text.
    """
    faults, repaired = check_structure(decode_toml(text, filename), ImageFile)
    images = msgspec.convert(repaired, ImageFile).images
    wrong = [fault.path for fault in faults]
    faults += [fault for fault in image_faults(images) if not any(related(fault.path, path) for path in wrong)]
    problems = locate_faults(faults, text, filename)
    if problems:
        raise RecipeError(*problems)
    return images


def _from_faults(text: str, path: Path) -> Iterator[Fault]:
    kind, place, tag = split_from(text)
    forms = "a registry reference such as quay.io/pypa/manylinux_2_28_x86_64, oci:DIR, docker-archive:FILE, or tar:FILE"
    if kind in FILES and (not place or "\0" in place or (kind == "tar" and tag is not None)):
        missing = "a path without a colon" if tag is not None else "a path"
        yield Fault(path=path, message=f"expected {missing} after '{kind}:' in {text!r}")
    elif kind == "host":
        message = "an image cannot be made from this machine: nobody else could get the same one"
        hint = 'remove the table; stages with image = "host", or without `image`, use the files of the machine'
        yield Fault(path=path, message=message, hint=hint)
    elif kind == "registry" and (len(text) > _LONGEST or not _REFERENCE.fullmatch(place) or _OTHERS.match(place)):
        yield Fault(path=path, message=f"{text[:100]!r} is not a valid image", hint=f"use {forms}")


def _debian_faults(debian: DebianTable, path: Path) -> Iterator[Fault]:
    if not _SUITE.fullmatch(debian.suite):
        yield Fault(
            path=(*path, "suite"), message=f"{debian.suite!r} is not a valid suite (expected one such as bookworm)"
        )
    for number, package in enumerate(debian.packages):
        if not _PACKAGE.fullmatch(package):
            yield Fault(path=(*path, "packages", number), message=f"{package!r} is not a valid package name")
    if debian.mirror is not None and not _MIRROR.fullmatch(debian.mirror):
        message = f"{debian.mirror[:100]!r} is neither a URL nor a deb line"
        yield Fault(path=(*path, "mirror"), message=message, hint='use a URL such as "https://mirror.example/debian"')
    elif any(has_login(word) for word in (debian.mirror or "").split()):
        message = "the URL contains a user name or password, which other processes could read"
        yield Fault(path=(*path, "mirror"), message=message, hint="store them in /etc/apt/auth.conf.d")
