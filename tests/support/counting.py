"""Compilers that count what they compile: what a kill costs is what they are called for once more."""

from __future__ import annotations

import re
import shutil
from collections import Counter
from pathlib import Path

_COMPILER = """\
#!/bin/sh
case " $* " in *" -E "*) ;; *" -c "*) echo "$*" >> {count};; esac
exec {real} "$@"
"""


class Counting:
    """Compilers in a folder for PATH. The compiler cache lies before them: what comes from there is not counted."""

    def __init__(self, folder: Path) -> None:
        self.bin = folder / "counting"
        self.bin.mkdir()
        self._count = folder / "count"
        self._count.touch()
        for name in ("cc", "c++", "gcc", "g++"):
            real = shutil.which(name)
            if real is not None:
                (self.bin / name).write_text(_COMPILER.format(count=self._count, real=Path(real).resolve()))
                (self.bin / name).chmod(0o755)

    def since(self) -> Counter[str]:
        """Sources that were compiled since the last call, without their folders and endings."""
        text = self._count.read_text()
        self._count.write_text("")
        return Counter(re.findall(r"(?:^|[\s/])(\w+)\.(?:c|cc|cpp)(?=\s|$)", text, re.MULTILINE))
