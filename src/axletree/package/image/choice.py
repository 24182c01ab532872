"""Which image of several a name means: by its tag, then by its platform."""

from __future__ import annotations

from typing import TYPE_CHECKING

from axletree.core.errors import Problem, UsageError
from axletree.core.units import some_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from axletree.package.image.documents import Descriptor


def tagged(found: Sequence[Descriptor], tag: str | None, *, file: str) -> tuple[Descriptor, ...]:
    """What a layout has under a tag; without one, all that it has.

    Raises:
        UsageError: nothing has that tag, or there are several and no tag says which.
    """
    images = tuple(each for each in found if each.is_index or each.is_manifest)
    if not images:
        raise UsageError(Problem(file=file, message="the image index contains no image"))
    tags = sorted({each.tag for each in images if each.tag})
    known = f"its tags: {some_of(tags)}" if tags else None
    if tag is not None:
        chosen = tuple(each for each in images if each.tag == tag)
        if not chosen:
            raise UsageError(
                Problem(file=file, message=f"the image index has no image with the tag {tag!r}", hint=known)
            )
        return chosen
    if len(tags) > 1:
        message = f"the image index has {len(tags)} tags, but none is selected"
        raise UsageError(Problem(file=file, message=message, hint=f"add one of them, such as `:{tags[0]}`; {known}"))
    return images


def for_platform(found: Sequence[Descriptor], platform: str, *, file: str) -> Descriptor:
    """The image for a platform.

    One that does not state its platform is taken if no other fits: its configuration states it.

    Raises:
        UsageError: there is none, or several.
    """
    fitting = {each.digest: each for each in found if each.platform is not None and each.platform.name == platform}
    fitting = fitting or {each.digest: each for each in found if each.platform is None}
    if not fitting:
        names = sorted({each.platform.name for each in found if each.platform is not None} - {"unknown/unknown"})
        raise wrong_platform(names, platform, file=file)
    if len(fitting) > 1:
        digests = some_of([digest[:19] for digest in fitting], 4)
        message = f"the image index has {len(fitting)} images for {platform}: {digests}"
        raise UsageError(Problem(file=file, message=message, hint="name one of them by its tag"))
    return next(iter(fitting.values()))


def wrong_platform(found: Sequence[str], wanted: str, *, file: str) -> UsageError:
    """The error for an image that this machine can't run; not raised here."""
    message = f"the image is not built for {wanted}, but for {some_of(list(found)) or 'no known platform'}"
    return UsageError(Problem(file=file, message=message, hint=f"use an image for {wanted}"))
