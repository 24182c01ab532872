"""Makes a portable CPython, which runs in systems with an older glibc: :mod:`axletree.package.python.portable`.

It is made beside its final name and renamed once it is complete and has proved to load: the interpreter imports all of
its extension modules through its own loader, and takes no library from this machine.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from axletree.core.errors import HostError, IntegrityError, Problem
from axletree.disk import part_folder, sync_files, sync_path
from axletree.host.edit import edit_elf
from axletree.host.files import file_errors, read_json
from axletree.host.run import Finished, finish
from axletree.package.python.build_variables import moved_folders, moved_json, moved_makefile, moved_module
from axletree.package.python.portable import LIBC, LIBS, Piece, Portable, change_of, library_folder
from axletree.package.python.system_glibc import NAME, system_glibc_module

if TYPE_CHECKING:
    from collections.abc import Mapping

RECORD = "portable.json"
_TIME = 315532800
"""1980, the first year that archives can tell: the files are as old wherever they were made."""
_SECONDS = 300
_PROOF = """
import json, os, sys
failed = {}
for name in json.loads(sys.argv[1]):
    try:
        __import__(name)
    except ImportError as error:
        failed[name] = str(error)
with open("/proc/self/maps") as maps:
    mapped = {line.split(None, 5)[5].strip() for line in maps if ".so" in line}
home = os.path.realpath(sys.argv[2])
print(json.dumps({"failed": failed, "foreign": sorted(path for path in mapped if not path.startswith(home + "/"))}))
"""


class PortablePython(msgspec.Struct, frozen=True, kw_only=True):
    """A portable Python on disk."""

    id: str
    """What its content depends on, see :attr:`axletree.package.python.portable.Portable.id`."""
    home: str
    """The path at which programs see it."""
    version: str
    program: str
    """Path of the interpreter in the folder."""
    glibc: str
    left_out: dict[str, str]
    """Extension module that it lacks -> why."""


class _Proof(msgspec.Struct, frozen=True):
    failed: dict[str, str]
    foreign: tuple[str, ...]


def make_portable(portable: Portable, folder: Path, *, home: str | None = None) -> PortablePython:
    """Make the folder of a portable Python, unless it is there.

    Args:
        portable: what it is made of, from :func:`axletree.host.portable_survey.survey`.
        folder: where it lies on this machine. It is there complete, or not at all.
        home: the path at which programs will see it, which its files contain; that of the folder by default.

    Raises:
        HostError: a file can't be read or written, the copy does not work, or something else lies there.
    """
    home = home or str(folder.absolute())
    made = PortablePython(
        id=portable.id,
        home=home,
        version=portable.install.version,
        program=portable.program,
        glibc=portable.glibc,
        left_out=portable.left_out,
    )
    with file_errors(folder, "the file cannot be written", precise=True):
        if folder.exists():
            return _check(made, folder)
        folder.parent.mkdir(parents=True, exist_ok=True)
        with part_folder(folder) as part:
            _fill(portable, part, home)
            _prove(portable, part)
            _compile(portable, part, home)
            (part / RECORD).write_bytes(msgspec.json.format(msgspec.json.encode(made)) + b"\n")
            _settle(part)
            try:
                part.rename(folder)
            except OSError:
                if not (folder / RECORD).exists():
                    raise
                return _check(made, folder)  # another process was faster
        sync_path(folder.parent)
    return made


def _check(made: PortablePython, folder: Path) -> PortablePython:
    """What is there already, if it is what was asked for.

    Raises:
        HostError: it is something else.
    """
    found = read_json(folder / RECORD, PortablePython)
    if found is None or (found.id, found.home) != (made.id, made.home):
        what = (
            "the folder is not a portable Python"
            if found is None
            else f"the folder is a different Python, for {found.home}"
        )
        raise HostError(Problem(file=str(folder), message=what, hint="remove the folder"))
    return found


def _fill(portable: Portable, part: Path, home: str) -> None:
    install = portable.install
    config = next((piece.place.rpartition("/")[0] for piece in portable.pieces if piece.kind == "makefile"), "")
    folders = moved_folders(
        home,
        library=library_folder(install),
        include=f"include/{Path(install.include).name}",
        config=config,
    )
    for piece in portable.pieces:
        target = part / piece.place
        target.parent.mkdir(parents=True, exist_ok=True)
        text = _text(portable, piece, folders)
        if text is None:
            shutil.copyfile(piece.source, target)
            target.chmod(0o755 if piece.kind in {"program", "loader", "elf", "glibc"} else 0o644)
        else:
            target.write_text(text, encoding="utf-8", newline="\n")
        change = change_of(portable, piece, home)
        if change is not None:
            try:
                edit_elf(target, change)
            except IntegrityError as error:
                problems = (msgspec.structs.replace(problem, file=piece.source) for problem in error.problems)
                raise HostError(*problems) from error
    library = part / library_folder(install)
    (library / "lib-dynload").mkdir(exist_ok=True)  # by it the interpreter finds its place
    (library / NAME).write_text(system_glibc_module(), encoding="utf-8")
    for name in ("python3", "python"):
        (part / "bin" / name).symlink_to(install.name)


def _text(portable: Portable, piece: Piece, folders: Mapping[str, str]) -> str | None:
    """The new text of a file with build variables; ``None`` for other files."""
    if piece.kind not in {"module", "json", "makefile"}:
        return None
    text, prefix = Path(piece.source).read_text(encoding="utf-8"), portable.install.prefix
    if piece.kind == "makefile":
        return moved_makefile(text, folders, prefix=prefix)
    moved = moved_module if piece.kind == "module" else moved_json
    return moved(text, folders, prefix=prefix, name=piece.source)


def _prove(portable: Portable, part: Path) -> None:
    """Import all extension modules through the copied loader, and see what that loads.

    Raises:
        HostError: one can't be imported, or takes a library of this machine.
    """
    names = sorted(
        {
            piece.place.rpartition("/")[2].partition(".")[0]
            for piece in portable.pieces
            if piece.kind == "elf" and "/lib-dynload/" in piece.place
        }
    )
    done = _run(portable, part, "-c", _PROOF, msgspec.json.encode(names).decode(), str(part))
    try:
        proof = msgspec.json.decode(done.out, type=_Proof)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        message = f"a copy of this Python does not run: {done.ending()}"
        raise HostError(Problem(file=portable.install.executable, message=message)) from error
    file = portable.install.executable
    problems = [
        Problem(file=file, message=f"a copy of this Python cannot import {name}: {reason}")
        for name, reason in proof.failed.items()
    ]
    problems += [
        Problem(file=file, message=f"a copy of this Python still loads {path}, which is outside the copy")
        for path in proof.foreign
    ]
    if problems:
        raise HostError(*problems)


def _compile(portable: Portable, part: Path, home: str) -> None:
    """Compile the standard library: nobody can write into the folder later. No time or path of this machine gets in."""
    library = part / library_folder(portable.install)
    options = ["-q", "-d", f"{home}/{library_folder(portable.install)}", "--invalidation-mode", "unchecked-hash"]
    done = _run(portable, part, "-m", "compileall", *options, str(library))
    if done.code:
        message = f"the standard library of this Python cannot be compiled: {done.ending()}"
        raise HostError(Problem(file=portable.install.executable, message=message))


def _run(portable: Portable, part: Path, *words: str) -> Finished:
    """Run the copy where it does not lie in its final place yet."""
    loader: list[str | Path] = [
        part / portable.loader,
        "--inhibit-cache",
        "--library-path",
        f"{part / LIBC}:{part / LIBS}",
    ]
    environ = {"PYTHONHOME": str(part), "PATH": os.defpath, "LC_ALL": "C.UTF-8"}
    return finish([*loader, part / portable.program, "-s", "-S", "-B", *words], environ=environ, seconds=_SECONDS)


def _settle(part: Path) -> None:
    """Give all files one time, and bring them to the disk."""
    paths = list(part.rglob("*"))
    sync_files(str(part), (str(path) for path in paths if path.is_file() and not path.is_symlink()))
    for path in (*paths, part):
        os.utime(path, (_TIME, _TIME), follow_symlinks=False)
