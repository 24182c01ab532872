"""The triton that goes with what is planned: read from the pins in the source, where the source has them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from packaging.version import Version

from axletree.buildsystem.pytorch.triton import FILES, World, other_pins, pinned_triton
from axletree.core.values import StageId
from axletree.registry import backend_of
from axletree.report.plan import TritonUse

if TYPE_CHECKING:
    from axletree.app.planning import Prepared
    from axletree.store.store import Store

_FETCH = StageId("fetch")
_WORLDS: dict[str, World] = {"cuda": "cuda", "rocm": "rocm"}


def triton_uses(prepared: Prepared, store: Store) -> tuple[TritonUse, ...]:
    """What the source pins for each GPU world that is planned, and which packages say otherwise.

    Nothing where the source is not here yet, or pins none.

    Raises:
        IntegrityError: a pin is damaged.
    """
    files = _read(prepared, store)
    if not files:
        return ()
    version = Version(prepared.plan.version)
    uses: dict[str, TritonUse] = {}
    for target in prepared.targets:
        gpu = target.axes.get("gpu", "")
        backend = backend_of(gpu)
        world: World | None = "xpu" if gpu == "xpu" else _WORLDS.get(backend.name if backend else "")
        pin = pinned_triton(files, world=world, release=not version.is_prerelease) if world else None
        if pin is not None and gpu not in uses:
            requires = {package.name: package.requires for package in target.packages}
            uses[gpu] = TritonUse(
                gpu=gpu, requirement=pin.requirement, channel=pin.channel, other=dict(other_pins(requires, pin))
            )
    return tuple(uses.values())


def _read(prepared: Prepared, store: Store) -> dict[str, str]:
    record = prepared.resolved[_FETCH].record
    if record is None:
        return {}
    tree = store.get_tree(record.tree)
    found = {path: entry.blob for path in FILES if (entry := tree.find(path)) is not None and entry.blob is not None}
    return {path: store.read_blob(blob).decode(errors="replace") for path, blob in found.items()}
