"""The index of a conda channel on disk, by py-rattler where it is installed."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from contextlib import suppress
from typing import TYPE_CHECKING

from axletree.core.errors import HostError, Problem

if TYPE_CHECKING:
    from pathlib import Path

# In a process of its own: a damaged package that lies in the channel can take the whole interpreter down, and so can
# the threads that still run when it ends.
_INDEX = """
import asyncio, os, sys
from rattler.index import index_fs
asyncio.run(index_fs(sys.argv[1], write_shards=False))
os._exit(0)
"""


def index_channel(channel: Path) -> bool:
    """Write ``repodata.json`` into each subfolder of a channel; ``False`` where py-rattler is not installed.

    The subfolder ``noarch`` is made: every channel has one.

    Raises:
        HostError: a package or the folder can't be read or written.
    """
    if importlib.util.find_spec("rattler") is None:
        return False
    try:
        (channel / "noarch").mkdir(exist_ok=True)
    except OSError as error:
        raise HostError(Problem(file=str(channel), message=f"can't be written: {error.strerror}")) from error
    command = [sys.executable, "-P", "-c", _INDEX, str(channel)]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if done.returncode:
        reason = next((line for line in reversed(done.stderr.splitlines()) if line.strip()), "it ended without a word")
        message = f"can't be indexed: {reason[:300]}"
        hint = "is a package in it damaged? `axletree audit` tells; then run the same command again"
        raise HostError(Problem(file=str(channel), message=message), hint=hint)
    with suppress(OSError):
        (channel / ".tmp").rmdir()  # it is left behind
    return True
