"""The folder ``.axletree`` of an editable tree: what was built with what, and a lock."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import msgspec

from axletree.buildsystem.code import is_code
from axletree.buildsystem.editable import PROJECT_FILES, Way
from axletree.buildsystem.pytorch.forwarding import Era
from axletree.core.errors import HostError, Problem
from axletree.core.formats import format_problem
from axletree.core.records import StageRequest
from axletree.core.values import Digest, digest_of
from axletree.disk import lock_now
from axletree.host.files import file_errors, read_json, replace_file
from axletree.host.worktree import open_worktree

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

FOLDER = ".axletree"
_STATE, _FILES, _LOCK = "dev.json", "files.json", "lock"
_PASSED_OVER = frozenset({"build", "dist", "node_modules", "__pycache__"})

Stamp = tuple[int, int]
"""Time of the last change in nanoseconds, and size."""


class DevState(msgspec.Struct, frozen=True, kw_only=True):
    """What `axletree dev` noted of a tree."""

    tree: str
    """Where the tree was: build folders do not survive a move."""
    recipe: str
    """Absolute path."""
    sets: tuple[str, ...] = ()
    """What ``--set`` changed in it."""
    variant: str
    stage: str
    """Name of the stage, without axis values."""
    venv: str | None
    build_prefix: str | None = None
    """Conda prefix with the compilers, where ``venv`` is another one that is linked against."""
    environments: tuple[Digest, ...] = ()
    """Trees of the environments that were installed."""
    inputs: dict[str, Digest] = {}
    """Stage -> its tree, as it was laid out for this one."""
    way: Way
    pytorch: bool = False
    rules: Era | None = None
    """How PyTorch's own tree makes CMake variables of the environment."""
    build: str
    """Folder that is built in, relative to the tree."""
    request: StageRequest
    """The stage as it was planned; its variables are those of a build."""
    settings: dict[str, str]
    """What the folder was built with."""
    read: dict[str, str]
    """Absolute path of a file that the plan was read from -> its digest."""
    passed: dict[str, str | None] = {}
    """Variable of the user's shell that the stage gets -> its value."""
    programs: dict[str, Stamp] = {}
    """Path of a tool -> its stamp."""
    project: dict[str, str] = {}
    """Project file -> its digest when it was installed; empty until it was."""
    prepared: tuple[str, ...] = ()
    """Commands of the recipe that ran in the tree."""
    distribution: str | None = None
    modules: tuple[str, ...] = ()
    """What can be imported."""
    steps: int = 0
    """Steps of the whole build, where they are counted."""
    hipify: dict[str, str] | None = None
    """Variables of the stage that hipifies the source; ``None`` for variants without one."""
    hipified: bool = False
    """Whether hipify ran in the tree."""
    schema: Literal[1] = 1


class _Envelope(msgspec.Struct):
    schema: int = 1


def read_state(tree: Path) -> DevState | None:
    """What was noted of a tree; ``None`` where nothing was.

    Raises:
        HostError: it can't be read.
    """
    path = tree / FOLDER / _STATE
    hint = f"remove {path} and run `axletree dev RECIPE` again"
    try:
        data = path.read_bytes()
        problem = format_problem(msgspec.json.decode(data, type=_Envelope).schema, 1, file=str(path), remake=hint)
        if problem is None:
            return msgspec.json.decode(data, type=DevState)
        raise HostError(problem)
    except FileNotFoundError:
        return None
    except (OSError, msgspec.MsgspecError) as error:
        raise HostError(Problem(file=str(path), message=f"the file cannot be read: {error}", hint=hint)) from error


def write_state(tree: Path, state: DevState) -> None:
    """Note the state of a tree."""
    replace_file(tree / FOLDER / _STATE, msgspec.json.format(msgspec.json.encode(state), indent=1))


@contextlib.contextmanager
def tree_lock(tree: Path) -> Iterator[Path]:
    """Keep others out of a tree's folder, and give it.

    Raises:
        HostError: another `axletree dev` is at work in the tree, or the folder can't be made.
    """
    folder = tree / FOLDER
    with file_errors(folder, "the folder cannot be written"):
        folder.mkdir(exist_ok=True)
        descriptor = os.open(folder / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        if not lock_now(descriptor):
            raise HostError(Problem(file=str(tree), message="another `axletree dev` is already running in this tree"))
        yield folder
    finally:
        os.close(descriptor)


def read_files(tree: Path) -> dict[str, Stamp]:
    """The listing of the last build; empty where there is none."""
    return read_json(tree / FOLDER / _FILES, dict[str, Stamp]) or {}


def write_files(tree: Path, files: Mapping[str, Stamp]) -> None:
    """Note a listing."""
    replace_file(tree / FOLDER / _FILES, msgspec.json.encode(files))


def list_code(source: Path, *, skip: Iterable[Path] = ()) -> dict[str, Stamp]:
    """The code in a tree: path -> stamp. Hidden folders, virtual environments and folders of builds are left out."""
    skipped = {os.path.realpath(path) for path in skip}
    found: dict[str, Stamp] = {}
    for place, folders, names in os.walk(source):
        folders[:] = [
            name
            for name in folders
            if not name.startswith(".")
            and name not in _PASSED_OVER
            and not name.endswith(".egg-info")
            and os.path.join(place, name) not in skipped  # noqa: PTH118 (a hundred thousand times)
        ]
        if "pyvenv.cfg" in names:
            folders.clear()
            continue
        for name in filter(is_code, names):
            path = os.path.join(place, name)  # noqa: PTH118
            with contextlib.suppress(OSError):  # a link to nothing
                status = os.stat(path)  # noqa: PTH116
                shown = os.fsencode(os.path.relpath(path, source)).decode("utf-8", "backslashreplace")  # for JSON
                found[shown] = (status.st_mtime_ns, status.st_size)
    return found


def project_files(source: Path) -> dict[str, str]:
    """Digests of the files that say what is installed."""
    return digests(source / name for name in PROJECT_FILES)


def digests(paths: Iterable[Path]) -> dict[str, str]:
    """Path -> digest of a file; those that are not there are left out."""
    found: dict[str, str] = {}
    for path in paths:
        with contextlib.suppress(FileNotFoundError):
            found[str(path)] = digest_of(path.read_bytes())
    return found


def stamps(paths: Iterable[str]) -> dict[str, Stamp]:
    """Path -> stamp of what it leads to; those that are not there are left out."""
    found: dict[str, Stamp] = {}
    for path in paths:
        with contextlib.suppress(OSError):
            status = Path(path).stat()
            found[path] = (status.st_mtime_ns, status.st_size)
    return found


def hide_from_git(tree: Path, environ: Mapping[str, str]) -> None:
    """Name the folder in the repository's own exclude file, so that git does not show it.

    Not in a ``.gitignore``: what that names is a build product to many tools, and cleaned away.

    Raises:
        HostError: git is missing or fails.
    """
    if not any((folder / ".git").exists() for folder in (tree, *tree.parents)):
        return
    git = open_worktree(tree, url=tree.as_uri(), environ=environ)
    asked = git.attempt("rev-parse", "--show-prefix", "--git-path", "info/exclude")
    if asked.code != 0:
        return
    prefix, path = asked.text.split("\n")[:2]
    exclude = tree / path
    line = f"/{prefix}{FOLDER}/"
    text = exclude.read_text(encoding="utf-8", errors="surrogateescape") if exclude.exists() else ""
    if line not in text.splitlines():
        text += "" if not text or text.endswith("\n") else "\n"
        replace_file(exclude, f"{text}{line}\n".encode("utf-8", "surrogateescape"))
