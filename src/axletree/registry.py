"""Every backend and action that ships: the one module that knows them all.

Other distributions add theirs through the entry-point groups ``axletree.backends`` and ``axletree.actions``.
"""

from __future__ import annotations

import importlib
import sys
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from axletree.backends.cpu import Cpu
from axletree.backends.cuda import Cuda
from axletree.backends.rocm import Rocm
from axletree.core.errors import UsageError
from axletree.plan.actions import ActionSpec

if TYPE_CHECKING:
    from collections.abc import Iterable
    from importlib.metadata import EntryPoint

    from axletree.backends.protocol import Backend
    from axletree.execute.context import ActionFunction

BACKENDS: tuple[Backend, ...] = (Cpu(), Cuda(), Rocm())

ACTIONS: dict[str, ActionSpec] = {
    "fetch": ActionSpec(module="axletree.execute.actions.fetch", revision=1, network=True),
    "patch": ActionSpec(module="axletree.execute.actions.patch", revision=1),
    "environment": ActionSpec(module="axletree.execute.actions.environment", revision=1, network=True),
    "build": ActionSpec(module="axletree.execute.actions.build", revision=4, compiles=True),
    "compile": ActionSpec(module="axletree.execute.actions.compile", revision=1, compiles=True),
    "run": ActionSpec(module="axletree.execute.actions.run", revision=3, compiles=True),
    "hipify": ActionSpec(module="axletree.execute.actions.hipify", revision=1),
    "install": ActionSpec(module="axletree.execute.actions.install", revision=1),
    "relocate": ActionSpec(module="axletree.execute.actions.relocate", revision=2),
    "pack": ActionSpec(module="axletree.execute.actions.pack", revision=2),
    "pack-conda": ActionSpec(module="axletree.execute.actions.pack_conda", revision=2),
    "pack-zip": ActionSpec(module="axletree.execute.actions.pack_zip", revision=1),
    "audit": ActionSpec(module="axletree.execute.actions.audit", revision=2),
    "audit-conda": ActionSpec(module="axletree.execute.actions.audit_conda", revision=1),
    "audit-zip": ActionSpec(module="axletree.execute.actions.audit_zip", revision=1),
    "index": ActionSpec(module="axletree.execute.actions.index", revision=1),
    "channel": ActionSpec(module="axletree.execute.actions.channel", revision=1),
    "archives": ActionSpec(module="axletree.execute.actions.archives", revision=1),
    "test": ActionSpec(module="axletree.execute.actions.test", revision=2, host=True),
}
"""Action -> what planning must know of it. Raise a revision when the action's results change."""


def backend_of(gpu: str) -> Backend | None:
    """The backend that owns a value of the ``gpu`` axis, or ``None``."""
    ours = next((backend for backend in BACKENDS if backend.owns(gpu)), None)
    return ours or next((backend for backend in _installed() if backend.owns(gpu)), None)


@cache
def _installed() -> tuple[Backend, ...]:
    """Backends of other distributions. To look for them costs milliseconds, and a plan asks for each of its stages."""
    return tuple(point.load()() for point in entry_points("axletree.backends"))


def driver_libraries() -> tuple[str, ...]:
    """Patterns of SONAMEs that the drivers of all backends bring."""
    return tuple(pattern for backend in (*BACKENDS, *_installed()) for pattern in backend.driver_libraries)


def action_spec(name: str) -> ActionSpec:
    """What planning must know of an action.

    Raises:
        UsageError: neither Axletree nor an installed distribution has it.
    """
    if name in ACTIONS:
        return ACTIONS[name]
    for point in entry_points("axletree.actions"):
        if point.name == name:
            spec: ActionSpec = point.load()
            return spec
    raise UsageError(f"there is no action {name!r}", hint=f"known: {', '.join(sorted(ACTIONS))}")


def load_action(name: str) -> ActionFunction:
    """Import the function of an action; only the process that runs a stage pays for that."""
    function: ActionFunction = importlib.import_module(action_spec(name).module).run
    return function


def entry_points(group: str) -> Iterable[EntryPoint]:
    """Entry points of a group, in any installed distribution.

    Most have none: then importing :mod:`importlib.metadata`, a sixth of what most commands take to start, is saved.
    """
    if not any(_may_name(Path(place), group.encode()) for place in sys.path):
        return ()
    from importlib.metadata import entry_points as find  # noqa: PLC0415 (start-up time)

    return find(group=group)


def _may_name(place: Path, group: bytes) -> bool:
    """Whether a distribution in a place of the module search path names a group; an archive, or whatever it is, may."""
    try:
        folders = [path for path in place.iterdir() if path.name.lower().endswith(("dist-info", "egg-info"))]
    except FileNotFoundError:
        return False
    except OSError:
        return True
    return any(group in _read(folder / "entry_points.txt") for folder in folders)


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""  # most distributions have none
