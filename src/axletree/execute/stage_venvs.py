"""Virtual environments made from the trees of environment stages.

The result of an environment stage is data: a lock with its wheels beside it. A virtual environment is made from that
when a stage needs one, and kept as long as the store pleases; deleting it costs time and nothing else.
"""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

from axletree.core.errors import HostError
from axletree.core.values import digest_of
from axletree.disk import part_folder, remove_tree
from axletree.host.environment.prefixes import name_plainly
from axletree.host.room import in_room
from axletree.host.sandbox import can_protect
from axletree.host.venvs import create_venv

if TYPE_CHECKING:
    from pathlib import Path

    from axletree.core.records import Interpreter
    from axletree.core.values import Digest
    from axletree.execute.context import Context

UV_CACHE = "uv"
"""Name of uv's cache among the caches of a store."""
LOCK = "pylock.environment.toml"
"""Member of an environment's tree that names its wheels, which lie beside it (PEP 751)."""
DESCRIPTION = "environment.json"
"""Member of an environment's tree that says which interpreter it is for and what was asked of the resolver."""


def describe(context: Context, digest: Digest) -> dict[str, Any]:
    """What the environment stage wrote about itself."""
    entry = context.store.get_tree(digest).find(DESCRIPTION)
    if entry is None or entry.blob is None:
        raise HostError(f"tree {digest} is not an environment: it does not contain {DESCRIPTION}")
    description: dict[str, Any] = json.loads(context.store.read_blob(entry.blob))
    return description


def interpreter_for(context: Context, version: str) -> Interpreter:
    """The interpreter that planning found on this machine for a version.

    Raises:
        HostError: the request names none.
    """
    found = context.request.local.interpreters.get(version)
    if found is None:
        raise HostError(
            f"the stage's request does not name an interpreter for Python {version}",
            hint="plan the build again on this machine",
        )
    return found


def wheel_folder(context: Context, digest: Digest) -> Path:
    """Lay an environment's lock and wheels out in a folder of the stage, read-only, without copying where possible."""
    folder = context.work / "wheels"
    context.store.materialise(digest, folder, link=True, writable=False)
    return folder


def ensure_venv(context: Context, digest: Digest) -> Path:
    """The virtual environment for an environment's tree, made now if it is not there.

    Libraries that wheels put into its ``lib``, as Intel's do, have their plain names there too: linkers look for those.

    Raises:
        StageError: the installer refuses; its words are in the message.
    """
    description = describe(context, digest)
    interpreter = interpreter_for(context, description["version"])
    # Programs in an environment name their interpreter by its path, and a stage may see another than the next one.
    name = f"{digest[:24]}-fixed" if in_room() else digest[:24]
    name += f"-{digest_of(interpreter.path.encode())[:8]}" if context.ingredients.image is not None else ""
    folder = context.store.environments / name
    with context.store.lock(f"environment-{digest}"):
        if _works(folder, interpreter):
            name_plainly([folder / "lib"], folder / "lib")
            os.utime(folder)  # it is in use: `store gc` goes by that
            return folder
        context.progress("creating the environment")
        wheels = wheel_folder(context, digest)
        clear_away(folder)
        create_venv(
            folder,
            interpreter=interpreter,
            lock_folder=wheels,
            uv_cache=uv_cache(context),
            environ=client_environ(context),
            share=can_protect(),
            say=context.log.write,
        )
        name_plainly([folder / "lib"], folder / "lib")
        remove_tree(wheels)  # other names of files in the store, which nobody may write to
    return folder


def clear_away(folder: Path) -> None:
    """Make room for an environment that is no longer of use, at once; what is left of the old one then takes time."""
    if folder.is_symlink() or folder.exists():
        with part_folder(folder) as aside:
            folder.rename(aside / folder.name)


def client_environ(context: Context) -> dict[str, str]:
    """Variables for pip and uv themselves: nothing of the user's shell, a home of the stage's own."""
    return {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": str(context.work), "LC_ALL": "C.UTF-8"}


def uv_cache(context: Context) -> Path:
    """Folder of unpacked wheels that uv links from."""
    return context.store.cache / UV_CACHE


def _works(folder: Path, interpreter: Interpreter) -> bool:
    """Whether an environment is there and its interpreter still is the one that it was made with."""
    python = folder / "bin" / "python"
    try:
        configuration = (folder / "pyvenv.cfg").read_text(encoding="utf-8")
    except OSError:
        return False
    return python.exists() and interpreter.version in configuration
