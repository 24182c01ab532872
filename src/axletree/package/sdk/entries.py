"""The files of an SDK's install tree as they come in, whatever they came from."""

from __future__ import annotations

from typing import Literal

import msgspec

Component = Literal["lib", "run", "dbg", "dev", "doc", "test"]
"""What a file is for, in TheRock's words. Each claims only what those before it left."""

GENERIC = "generic"
"""The target of what holds no code of one GPU."""


class SdkEntry(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A file, symbolic link or folder of the tree."""

    path: str
    """Below the prefix of the SDK: ``lib/libamdhip64.so.5``."""
    kind: Literal["file", "link", "folder"] = "file"
    """A folder only where it must exist though nothing is in it."""
    artifact: str
    """The part of the SDK that brought it: ``core-hip``."""
    component: Component
    target: str = GENERIC
    """GPU target or family that its artifact was made for."""
    source: str = ""
    """Where its content lies on this machine; files only."""
    size: int = 0
    """Bytes; files only."""
    executable: bool = False
    link: str = ""
    """What a link says."""
