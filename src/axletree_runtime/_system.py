"""Which libraries that the host must bring it does not have."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

from ._host import Host

if TYPE_CHECKING:
    from collections.abc import Sequence

_CODE = """
import ctypes, json, sys
missing = []
for name in sys.argv[1:]:
    try:
        ctypes.CDLL(name)
    except OSError:
        missing.append(name)
print("\\n" + json.dumps(missing), flush=True)
import os
os._exit(0)
"""


def missing_system_libraries(sonames: Sequence[str], host: Host | None = None) -> set[str]:
    """Those that the loader does not find, asked in a process of their own."""
    if not sonames:
        return set()
    said, _ = (host or Host()).ask([sys.executable, "-I", "-S", "-c", _CODE, *sonames])
    try:
        return set(json.loads(said.strip().splitlines()[-1]))
    except (ValueError, IndexError, TypeError):
        return set()
