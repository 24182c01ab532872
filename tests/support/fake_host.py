"""A host made of a folder of files, variables, and a table of what programs answer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from axletree.host.facts.access import Access, Answer

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

GONE = Answer(code=None, why="No such file or directory")


class FakeHost:
    """Files below ``root``; ``programs`` maps command lines, or their beginnings, to answers: the longest counts."""

    def __init__(self, root: Path) -> None:
        """An empty host."""
        self.root = root
        self.environ: dict[str, str] = {"PATH": "/usr/bin", "HOME": "/home/someone"}
        self.programs: dict[str, Answer] = {}
        self.asked: list[str] = []
        for folder in ("home/someone", "tmp", "usr/bin", "project"):
            (root / folder).mkdir(parents=True)

    def write(self, name: str, text: str = "") -> Path:
        """A file of the host."""
        path = self.root / name.lstrip("/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def link(self, name: str, target: str) -> None:
        """A relative link of the host."""
        path = self.root / name.lstrip("/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.symlink_to(target)

    def program(self, path: str, answers: Mapping[str, str | Answer] | None = None) -> None:
        """A program, with what it answers to arguments: text for its output, or an answer."""
        self.write(path, "\x7fELF").chmod(0o755)
        for arguments, answer in (answers or {}).items():
            told = answer if isinstance(answer, Answer) else Answer(code=0, out=answer)
            self.programs[f"{path} {arguments}".strip()] = told

    def run(
        self,
        command: Sequence[str],
        *,
        environ: Mapping[str, str],
        text: str = "",
        cwd: Path | None = None,
        seconds: float = 0,
    ) -> Answer:
        """What the table holds for a command."""
        del environ, text, cwd, seconds
        line = " ".join(command)
        self.asked.append(line)
        fitting = [known for known in self.programs if line == known or line.startswith(f"{known} ")]
        return self.programs[max(fitting, key=len)] if fitting else GONE

    @property
    def access(self) -> Access:
        """The way to it."""
        return Access(
            environ=self.environ,
            run=self.run,
            home="/home/someone",
            cwd="/project",
            tmp="/tmp",
            store="/home/someone/.cache/store",
            root=self.root,
        )
