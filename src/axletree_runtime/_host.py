"""What is asked of the host: files of the kernel, variables, and small programs. Tests put another one in its place."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_SECONDS = 10.0


@dataclass(frozen=True)
class Host:
    """The host that code runs on."""

    root: Path = Path("/")
    """What paths are below."""
    environ: Mapping[str, str] = field(default_factory=lambda: os.environ)
    windows: bool = os.name == "nt"

    def read(self, path: str) -> str:
        """Text of a file; empty where it can't be read."""
        try:
            return self._place(path).read_text(encoding="utf-8", errors="replace")
        except OSError:
            return ""

    def names(self, path: str) -> list[str]:
        """What a folder holds; nothing where it can't be read."""
        try:
            return sorted(os.listdir(self._place(path)))  # noqa: PTH208  # names are wanted, not paths
        except OSError:
            return []

    def exists(self, path: str) -> bool:
        """Whether there is such a file or folder."""
        return self._place(path).exists()

    def may_use(self, path: str) -> bool:
        """Whether this process may read and write a device."""
        return os.access(self._place(path), os.R_OK | os.W_OK)

    def group_of(self, path: str) -> str:
        """Name of the group that a file belongs to; empty where that can't be told."""
        try:
            return self._place(path).group()
        except (OSError, KeyError, NotImplementedError):
            return ""

    def program(self, name: str) -> Path | None:
        """A program on ``PATH`` that is a binary: a script may be anything, another package's launcher for one."""
        for folder in self.environ.get("PATH", "").split(os.pathsep):
            path = Path(folder, name)
            if folder and is_binary(path):
                return path
        return None

    def ask(self, command: Sequence[str | Path]) -> tuple[str, str]:
        """What a program prints, and why it could not answer (empty if it did)."""
        import subprocess  # hardly ever needed, and what a process waits for while it starts counts

        try:
            done = subprocess.run(
                command,
                capture_output=True,
                text=True,
                errors="replace",
                check=False,
                timeout=_SECONDS,
                env=self.environ,
            )
        except (OSError, subprocess.SubprocessError) as error:
            return "", str(error)
        return done.stdout, f"exit code {done.returncode}" if done.returncode else ""

    def _place(self, path: str) -> Path:
        return self.root / path.lstrip("/")


def is_binary(path: Path) -> bool:
    """Whether a file is a program, and one of the processor's own code."""
    try:
        with path.open("rb") as file:
            return os.access(path, os.X_OK) and file.read(4) == b"\x7fELF"
    except OSError:
        return False
