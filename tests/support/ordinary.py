"""Commands run by an ordinary user, also where Python or this clone lies in a folder that only root may enter."""

from __future__ import annotations

import os
import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

NOBODY = 65534
_SCRIPT = """
set -e
closed=$1; shift
mount -t tmpfs tmpfs /mnt
number=0
for place in $PLACES; do
  mkdir /mnt/$number; mount --rbind "$place" /mnt/$number; number=$((number + 1))
done
for folder in $closed; do mount -t tmpfs -o mode=755 tmpfs "$folder"; done
number=0
for place in $PLACES; do
  mkdir -p "$place"; mount --rbind /mnt/$number "$place"; number=$((number + 1))
done
umount --lazy /mnt
unset PLACES
exec setpriv --reuid=65534 --regid=65534 --clear-groups "$@"
"""


def ordinary_user(places: Iterable[Path]) -> tuple[str, ...]:
    """The start of a command line that runs the rest as an ordinary user, who may enter ``places``.

    Folders that nobody else may enter hold nothing but these for the command.
    """
    wanted = sorted({each.resolve() for each in places if _closed(each.resolve())})
    closed = sorted({str(_closed(each)) for each in wanted})
    names = " ".join(map(str, wanted))
    prefix = ("env", f"PLACES={names}", "unshare", "--mount", "sh", "-c", _SCRIPT, "sh", " ".join(closed))
    if os.geteuid() != 0 or shutil.which("unshare") is None or shutil.which("setpriv") is None:
        pytest.skip("needs root, unshare and setpriv, to be somebody else")
    tried = subprocess.run([*prefix, "true"], capture_output=True, text=True, check=False)
    if tried.returncode != 0:
        pytest.skip(f"nobody else can be had here: {tried.stderr.strip()}")
    return prefix


def _closed(path: Path) -> Path | None:
    """The first folder on the way to a path that only its owner may enter."""
    return next((each for each in [*reversed(path.parents), path] if not each.stat().st_mode & 0o001), None)
