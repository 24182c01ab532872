"""A clean host: this machine, with some of its files and folders out of sight.

A program that still works there uses only what is left in sight. Folders are hidden by empty ones. A file is hidden by
one without any content: a loader that comes upon it fails, where on a really clean host it would search on and fail.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from functools import cache
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

_HIDE = """\
set -eu
mount --make-rprivate /
empty=$1; shift
while [ "$1" != -- ]; do
  if [ -d "$1" ]; then mount --bind "$empty" "$1"; else mount --bind /dev/null "$1"; fi
  shift
done
shift
exec "$@"
"""


def run_clean(
    *command: str | Path,
    hide: Iterable[Path],
    cwd: Path | None = None,
    environ: dict[str, str] | None = None,
    fails: bool = False,
) -> str:
    """What a command prints on a host without some folders and files; it must end well, or badly if it ``fails``.

    Of the environment only PATH and what is given is passed on. Skips the test where the system grants no mounts.
    """
    with tempfile.TemporaryDirectory() as empty:
        hidden = [str(path.resolve()) for path in hide if path.exists()]
        variables = {"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8", **(environ or {})}
        done = subprocess.run(
            [*_unshare(), "sh", "-c", _HIDE, "sh", empty, *hidden, "--", *command],
            cwd=cwd,
            env=variables,
            capture_output=True,
            text=True,
            check=False,
        )
    assert (done.returncode != 0) is fails, f"{command}: {done.returncode}\n{done.stdout}{done.stderr}"
    return done.stdout + (done.stderr if fails else "")


@cache
def _unshare() -> tuple[str, ...]:
    """The start of a command line that runs the rest where it may mount."""
    if shutil.which("unshare") is not None:
        for options in (("--mount",), ("--user", "--map-root-user", "--mount")):
            probe = ["unshare", *options, "mount", "--bind", "/dev/null", "/etc/hostname"]
            if subprocess.run(probe, capture_output=True, check=False).returncode == 0:
                return ("unshare", *options)
    pytest.skip("needs a mount namespace: no unshare, or it may do nothing")
