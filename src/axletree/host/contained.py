"""The stage's side of a container: its first process ends, and all others with it, once the driver is gone.

Killing an engine's client leaves the container alive, and a killed driver tells nobody. So the driver keeps a file of
the store locked, which the kernel frees in any case, and the first process waits for that lock.
"""

from __future__ import annotations

import fcntl
import os
import signal
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from axletree.host.hiding import hide_start
from axletree.host.room import STORE, join_room
from axletree.host.sandbox import Isolation

if TYPE_CHECKING:
    from collections.abc import Callable

_ENDED = 137
"""Exit code of who was killed."""


class Surroundings(msgspec.Struct, frozen=True, kw_only=True):
    """What the first process of a container has to be told of the outside."""

    store: str
    """Where the store is outside."""
    sign: str
    """The file that the driver keeps locked, relative to the store."""
    kept: str | None = None
    """The folder of the store that is at the fixed place of kept folders, relative to the store."""


def run_contained(body: Callable[[Isolation], int], surroundings: Surroundings, *, network: bool) -> int:
    """Run ``body`` in the container that this process is the first of, and return its exit code.

    Args:
        body: The work; gets what the engine isolates.
        surroundings: What is outside.
        network: Whether the container has a network.
    """
    end_with_driver(STORE / surroundings.sign)
    hide_start()
    join_room(Path(surroundings.store), surroundings.kept)
    code = body(Isolation(processes=True, network=not network, mounts=False, paths=True))
    sys.stdout.flush()
    return code


def end_with_driver(sign: Path) -> None:
    """End this process, and with it the container, when nobody holds the lock of a file any more; also on SIGTERM.

    Raises:
        OSError: the file is not there: the driver is gone already.
    """
    descriptor = os.open(sign, os.O_RDONLY | os.O_CLOEXEC)
    # The first process of a container gets no signal that it does not ask for.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: os._exit(_ENDED))
    threading.Thread(target=_wait_for, args=(descriptor,), name="driver", daemon=True).start()


def _wait_for(descriptor: int) -> None:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH)
    except OSError:  # a file system without locks: the driver removes the container by its name
        return
    os._exit(_ENDED)
