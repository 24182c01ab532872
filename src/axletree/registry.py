"""Every backend and action that ships: the one module that knows them all.

Other distributions add theirs through the entry-point groups ``axletree.backends`` and ``axletree.actions``.
"""

from __future__ import annotations

import importlib
import sys
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from axletree.backends.cpu import Cpu
from axletree.backends.cuda import Cuda
from axletree.backends.rocm import Rocm
from axletree.core.errors import UsageError
from axletree.plan.actions.table import ACTIONS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from importlib.metadata import EntryPoint

    from axletree.backends.protocol import Backend
    from axletree.execute.context import ActionFunction
    from axletree.plan.actions.spec import ActionSpec

BACKENDS: tuple[Backend, ...] = (Cpu(), Cuda(), Rocm())


def backend_of(gpu: str) -> Backend | None:
    """The backend that owns a value of the ``gpu`` axis, or ``None``."""
    ours = next((backend for backend in BACKENDS if backend.owns(gpu)), None)
    return ours or next((backend for backend in _installed() if backend.owns(gpu)), None)


def torch_indexes(axes: Mapping[str, str]) -> tuple[str, ...]:
    """Indexes that may have torch for a variant, to be asked after those of the user."""
    backend = backend_of(axes.get("gpu", ""))
    return () if backend is None else (backend.torch_index(axes["gpu"]),)


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
            return msgspec.structs.replace(spec, distribution=_brought_by(point))
    raise UsageError(f"there is no action {name!r}", hint=f"known: {', '.join(sorted(ACTIONS))}")


def _brought_by(point: EntryPoint) -> str:
    """The distribution of an entry point: other versions of a plug-in may make other results."""
    return "" if point.dist is None else f"{point.dist.name} {point.dist.version}"


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
