"""Pin the images that stages and tests use."""

from __future__ import annotations

from typing import TYPE_CHECKING

from axletree.app.images import make_image
from axletree.app.lock_changes import lines_changed
from axletree.app.source_lock import read_lock_file
from axletree.core.errors import AxletreeError
from axletree.host.image.inventory import take_inventory
from axletree.recipe.image_locks import IMAGE_LOCK, check_image_lock, parse_image_lock, render_image_lock
from axletree.recipe.images import images_of
from axletree.store import Store
from axletree.store.images import ROOT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from axletree.app.lock_context import LockContext
    from axletree.app.recipes import LoadedRecipe
    from axletree.recipe.image_locks import LockedImage
    from axletree.recipe.target import Target


def lock_images(
    loaded: LoadedRecipe,
    targets: Sequence[Target],
    surroundings: LockContext,
    *,
    upgrade: bool,
    note: Callable[[str], None],
) -> tuple[str, tuple[str, ...], int] | None:
    """Make the images that variants use, unless the lock already pins them and says what is in them.

    Returns:
        Text of the lock, what changed in it, and the number of images; ``None`` if the variants use no image.

    Raises:
        AxletreeError: an image can't be made; see :func:`make_image`.
    """
    path = loaded.places.find(IMAGE_LOCK)
    before = read_lock_file(path, parse_image_lock) or {}
    names = sorted({name for target in targets for name in images_of(target)})
    if not names:
        return None
    now = {name: locked for name, locked in before.items() if name in loaded.recipe.images}
    for name in names:
        image, tools = loaded.recipe.images[name], declared_tools(targets, name)
        pinned = before.get(name)
        fits = pinned is not None and not check_image_lock({name: pinned}, {name: image}, file=str(path))
        kept = pinned if fits and not upgrade else None
        if kept is not None and kept.inventory is not None and kept.inventory.tools.keys() >= tools:
            continue
        if kept is not None and kept.inventory is not None:
            tools |= kept.inventory.named
        try:
            now[name] = _with_inventory(loaded, name, kept, tools, surroundings, note)
        except AxletreeError as error:
            if kept is None:
                raise
            note(f"warning: image {name}: its inventory in the lock stays incomplete: {error.problems[0].message}")
    changes = lines_changed(_pins(before.values()), _pins(now.values()))
    return render_image_lock(now.values()), changes, len(names)


def _with_inventory(
    loaded: LoadedRecipe,
    name: str,
    locked: LockedImage | None,
    tools: Iterable[str],
    surroundings: LockContext,
    note: Callable[[str], None],
) -> LockedImage:
    """An image as the lock has it, made if it is not in the store."""
    store, image = Store.open(surroundings.store), loaded.recipe.images[name]
    environ, folder = surroundings.environ, loaded.path.parent
    record, made = make_image(store, name, image, locked, folder=folder, environ=environ, note=note)
    root = store.image_path(record.id) / ROOT
    return made.with_inventory(take_inventory(root, variables=made.variables, tools=tools))


def declared_tools(targets: Iterable[Target], image: str) -> frozenset[str]:
    """Programs that the stages in an image declare."""
    return frozenset(
        tool for target in targets for stage in target.stages if stage.image == image for tool in stage.tools
    )


def _pins(images: Iterable[LockedImage]) -> list[str]:
    """What a lock pins, a line each."""
    return [f"image {image.name} {image.id[:12]} ({image.reference})" for image in images]
