"""A shell in an image: to look around, and to try what a stage would do there."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from axletree.app.image_names import find_images
from axletree.app.images import find_image, make_image
from axletree.core.errors import Problem, UsageError
from axletree.host.tools import SYSTEM_PATH
from axletree.host.visit import View, visit
from axletree.store.images import ROOT

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from axletree.core.images import ImageRecord
    from axletree.store import Store

_SHELL = ("/bin/sh", "-i")


def image_to_enter(store: Store, asked: str, *, environ: Mapping[str, str], note: Callable[[str], None]) -> ImageRecord:
    """An image of the store by its id, or one that is named as for ``image make``, made now if it is not there.

    Raises:
        UsageError: there is no such image, or the name means several.
        AxletreeError: it cannot be made; see :func:`make_image`.
    """
    try:
        return find_image(store, asked)
    except UsageError:
        named = find_images(asked)
    if len(named.images) > 1:
        names = ", ".join(f"{asked}:{name}" for name in sorted(named.images))
        raise UsageError(Problem(file=asked, message="the file defines several images", hint=f"choose one: {names}"))
    ((name, image),) = named.images.items()
    locked = named.locked.get(name)
    return make_image(store, name, image, locked, folder=named.folder, environ=environ, note=note)[0]


def run_in_image(store: Store, image: ImageRecord, argv: Sequence[str], *, environ: Mapping[str, str]) -> int:
    """Run a program in an image, a shell if none is given; its exit code. What it changes is gone afterwards.

    Raises:
        HostError: this host cannot enter images.
        UsageError: the image has no such program.
    """
    variables = {"PATH": ":".join(SYSTEM_PATH), "HOME": "/", "LC_ALL": "C.UTF-8", **image.variables}
    variables["TERM"] = environ.get("TERM", "dumb")
    root = store.image_path(image.id).relative_to(store.root) / ROOT
    view = View(store=store.root, folder=Path("/"), image=str(root))
    return visit(view, tuple(argv) or _SHELL, variables)
