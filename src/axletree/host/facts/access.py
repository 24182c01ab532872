"""What probes reach a host through: a root folder, an environment, a function that runs programs; tests have fakes.

A probe asks for ``/proc/meminfo`` and gets it below the root; programs are looked for on the PATH of the environment,
below the root as well, and are run by the function. So a folder of files and a table of answers stand for a machine.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import msgspec

from axletree.check.host.part import FactGroup, HostTool
from axletree.disk import part_folder

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

T = TypeVar("T")
SECONDS = 10.0
"""How long a program may take to tell what it is."""
_MOST = 1 << 22
"""Bytes of an answer, or of a file, that are looked at."""
_PIECE = 1 << 16


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """What a program said."""

    code: int | None
    """Exit code; ``None`` where it did not start or took too long."""
    out: str = ""
    err: str = ""
    why: str = ""
    """Why there is no exit code."""

    @property
    def trouble(self) -> str:
        """One line on what went wrong: for the source of a fact that is not known."""
        if self.code is None:
            return self.why
        said = (self.err.strip() or self.out.strip()).splitlines()
        return f"exit code {self.code}" + (f": {said[-1].strip()[:200]}" if said else "")


class RunProgram(Protocol):
    """Runs a program and waits for it."""

    def __call__(
        self,
        command: Sequence[str],
        *,
        environ: Mapping[str, str],
        text: str = "",
        cwd: Path | None = None,
        seconds: float = SECONDS,
    ) -> Answer:
        """Run ``command`` with ``text`` as its input, for at most some seconds. Never raises."""


class Access(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """A way to a host."""

    environ: Mapping[str, str]
    run: RunProgram
    home: str
    cwd: str
    tmp: str
    store: str
    root: Path = Path("/")
    """In whose place ``/`` is looked at."""

    def path(self, name: str) -> Path:
        """A path of the host as one of ours."""
        return self.root / name.lstrip("/") if self.root != Path("/") else Path(name)

    def logical(self, path: Path) -> str:
        """A path of ours as one of the host."""
        if self.root != Path("/") and path.is_relative_to(self.root):
            return "/" + str(path.relative_to(self.root)).removeprefix(".")
        return str(path)

    def real(self, name: str) -> str:
        """A path with links followed."""
        try:
            return self.logical(self.path(name).resolve())
        except (OSError, ValueError):  # a loop, a name that is too long or holds a NUL
            return name

    def read(self, name: str) -> str:
        """The text of a small file.

        Raises:
            OSError: as the system says.
        """
        pieces: list[bytes] = []
        with self.path(name).open("rb", buffering=0) as stream:
            # Some files of /proc refuse to be read with a large buffer.
            while len(pieces) < _MOST // _PIECE and (piece := stream.read(_PIECE)):
                pieces.append(piece)
        return b"".join(pieces).decode(errors="replace")

    def peek(self, name: str) -> str | None:
        """The text of a small file, stripped; ``None`` where it can't be read."""
        try:
            return self.read(name).strip()
        except (OSError, ValueError):
            return None

    def exists(self, name: str) -> bool:
        """Whether a path leads to something."""
        with suppress(OSError):
            return self.path(name).exists()
        return False

    def is_file(self, name: str) -> bool:
        """Whether a path leads to a file."""
        with suppress(OSError):
            return self.path(name).is_file()
        return False

    def names(self, folder: str) -> tuple[str, ...]:
        """Names in a folder, sorted; none where it can't be read."""
        with suppress(OSError, ValueError):
            return tuple(sorted(entry.name for entry in os.scandir(self.path(folder))))
        return ()

    def glob(self, folder: str, pattern: str) -> tuple[str, ...]:
        """Paths below a folder that a pattern fits, sorted."""
        with suppress(OSError, ValueError):
            return tuple(sorted(self.logical(path) for path in self.path(folder).glob(pattern)))
        return ()

    @cached_property
    def search(self) -> tuple[str, ...]:
        """Folders of PATH, each once, in order."""
        return tuple(dict.fromkeys(part for part in self.environ.get("PATH", os.defpath).split(":") if part))

    def which(self, name: str) -> str | None:
        """The first program of that name on PATH; a name with a slash is taken as it is."""
        return next(self.which_all(name), None)

    def which_all(self, name: str) -> Iterator[str]:
        """All programs of that name on PATH."""
        candidates = [name] if "/" in name else [f"{folder.rstrip('/')}/{name}" for folder in self.search]
        for candidate in candidates:
            path = self.path(candidate)
            if self.is_file(candidate) and os.access(path, os.X_OK):
                yield candidate

    def ask(self, *command: str, text: str = "", seconds: float = SECONDS, cwd: Path | None = None) -> Answer:
        """Run a program with its messages untranslated."""
        return self.run(command, environ=self.plain, text=text, seconds=seconds, cwd=cwd)

    @cached_property
    def plain(self) -> dict[str, str]:
        """The environment with messages untranslated, but the character set left as it is."""
        kept = {name: value for name, value in self.environ.items() if name not in {"LC_ALL", "LANGUAGE"}}
        return {**kept, "LC_MESSAGES": "C", "LC_CTYPE": self.environ.get("LC_ALL") or kept.get("LC_CTYPE", "C.UTF-8")}


class Seen:
    """Collects the fields of one part, each with where it came from."""

    def __init__(self) -> None:
        """Nothing is known yet."""
        self.values: dict[str, Any] = {}
        self.sources: dict[str, str] = {}

    def put(self, field: str, source: str, value: T | None) -> T | None:
        """Keep a value; ``None`` says that it isn't known, and then the source says why."""
        self.sources[field] = source
        if value is not None:
            self.values[field] = value
        return value

    def rest(self, kind: type[FactGroup], why: str) -> None:
        """Say of every field that nothing was said of why it isn't known."""
        for field in kind.__struct_fields__:
            if field != "sources":
                self.sources.setdefault(field, why)

    def attempt(self, field: str, source: str, find: Callable[[], T | None]) -> T | None:
        """Find a value out; what goes wrong becomes part of the source."""
        try:
            value = find()
        except OSError as error:
            return self.put(field, f"{source}: {error.strerror or error}", None)
        except (ValueError, IndexError, KeyError) as error:
            return self.put(field, f"{source}: unexpected content: {error}"[:300], None)
        return self.put(field, source if value is not None else f"{source}: not found", value)


def run_program(
    command: Sequence[str],
    *,
    environ: Mapping[str, str],
    text: str = "",
    cwd: Path | None = None,
    seconds: float = SECONDS,
) -> Answer:
    """Run a program in a process group of its own, which is killed when the time is up."""
    try:
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE if text else subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                cwd=cwd,
                env=dict(environ),
                start_new_session=True,
            )
            try:
                process.communicate(text.encode() if text else None, timeout=seconds)
                why = ""
            except subprocess.TimeoutExpired:
                why = f"no response within {seconds:g} s"
            finally:
                with suppress(ProcessLookupError, PermissionError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()
            return Answer(code=None if why else process.returncode, out=_head(out), err=_head(err), why=why)
    except OSError as error:
        return Answer(code=None, why=error.strerror or str(error))


def _head(stream: Any) -> str:
    stream.seek(0)
    return str(stream.read(_MOST).decode(errors="replace"))


def this_host(environ: Mapping[str, str], *, cwd: Path, store: Path) -> Access:
    """The machine that this process runs on."""
    return Access(
        environ=environ,
        run=run_program,
        home=environ.get("HOME") or str(Path.home()),
        cwd=str(cwd),
        tmp=environ.get("TMPDIR") or tempfile.gettempdir(),
        store=str(store),
    )


_NUMBERS = re.compile(r"\d+(?:\.\d+)+")


def find_tool(access: Access, name: str, *options: str) -> HostTool | None:
    """A program on PATH and its version; ``None`` where it is not there.

    Args:
        access: the host.
        name: of the program, or its path.
        options: what makes it tell its version; ``--version`` where none are given.
    """
    path = access.which(name)
    if path is None:
        return None
    answer = access.ask(path, *(options or ("--version",)))
    line, version = read_version(f"{answer.out}\n{answer.err}") if answer.code == 0 else (None, None)
    said = " ".join([path.rpartition("/")[2], *(options or ("--version",))])
    source = said if version else f"{said}: {answer.trouble if answer.code != 0 else 'did not print a version'}"
    sources = {"name": "the name searched for", "path": "PATH" if "/" not in name else "the place where it was found"}
    sources |= {"version": source, "release": source}
    return HostTool(name=name.rpartition("/")[2], path=path, version=version, release=line, sources=sources)


def read_version(text: str) -> tuple[str | None, str | None]:
    """The line that tells a program's version, and the version; nvcc's banner has years before it."""
    lines = [line.strip() for line in text.splitlines() if _NUMBERS.search(line)]
    line = next((line for line in lines if "release" in line.lower()), lines[0] if lines else None)
    found = _NUMBERS.search(line) if line else None
    return line, found[0] if found else None


def existing(path: Path) -> Path:
    """The path itself, or the nearest folder above it that is there."""
    return next(folder for folder in (path, *path.parents) if folder.exists())


def each_once(access: Access, places: Iterable[tuple[str, str]]) -> Iterator[tuple[str, str, tuple[str, ...]]]:
    """Those of some folders that there are, each once: as it was found first, without links, and by what it was found.

    Args:
        access: the host.
        places: folders, with what leads to them.
    """
    found: dict[str, tuple[str, list[str]]] = {}
    for folder, by in places:
        if access.exists(folder):
            found.setdefault(access.real(folder), (folder, []))[1].append(by)
    yield from ((folder, real, tuple(dict.fromkeys(by))) for real, (folder, by) in found.items())


def own_folder(parent: Path) -> AbstractContextManager[Path]:
    """A folder to try things in, removed afterwards; those that killed processes left go first.

    Raises:
        OSError: none can be made there.
    """
    return part_folder(parent / "axletree-probe")
