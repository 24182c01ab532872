"""What a portable CPython is made of, found on this machine: files of the installation, libraries, the loader."""

from __future__ import annotations

import os
import posixpath
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from axletree.binary.elf.facts import ElfFacts, is_elf, read_elf
from axletree.core.errors import HostError, IntegrityError, Problem
from axletree.disk import each_entry
from axletree.host.archive import digest_file, map_file
from axletree.host.files import file_errors
from axletree.host.libraries import find_library, search_folders
from axletree.host.run import finish
from axletree.package.libraries.linkage import is_loader, search_path
from axletree.package.python import portable as rules
from axletree.package.python.portable import Install, Piece, Portable

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from axletree.core.records import Interpreter

_SECONDS = 60
_SHOWN = 200
_QUESTION = """
import json, os, sys, sysconfig
get = sysconfig.get_config_var
config = sysconfig.get_makefile_filename()
print(json.dumps({
    "executable": os.path.realpath(getattr(sys, "_base_executable", None) or sys.executable),
    "implementation": sys.implementation.name,
    "version": "%d.%d.%d" % sys.version_info[:3],
    "prefix": os.path.realpath(sys.base_prefix),
    "stdlib": os.path.realpath(os.path.dirname(os.__file__)),
    "include": os.path.realpath(sysconfig.get_path("include")),
    "config": os.path.dirname(os.path.realpath(config)) if os.path.exists(config) else "",
    "multiarch": get("MULTIARCH") or "",
    "wheels": get("WHEEL_PKG_DIR") or "",
}))
"""


class _File(NamedTuple):
    """An ELF file of the installation, or a library that one needs."""

    path: Path
    facts: ElfFacts


class _Loaded(NamedTuple):
    """What one file brings along when it is loaded."""

    libraries: dict[str, _File]
    """SONAME as asked for -> the library."""
    missing: dict[str, str]
    """SONAME -> the file that needs it."""


def survey(interpreter: Interpreter, *, environ: Mapping[str, str], for_builds: bool = True) -> Portable:
    """Look at an installed CPython: all files of a portable copy with their digests.

    Args:
        interpreter: the Python, from :mod:`axletree.host.interpreters`.
        environ: variables with which it runs.
        for_builds: whether extension modules are built for it, so that it must have headers.

    Raises:
        HostError: it can't be copied, with all reasons; or its files can't be read.
    """
    install = _ask(Path(interpreter.path), environ)
    program = _File(Path(install.executable), _read(Path(install.executable)))
    headers = Path(install.include, "Python.h").is_file()
    problems = list(rules.obstacles(install, program.facts, headers=headers or not for_builds))
    if problems:
        raise HostError(*problems)
    with file_errors(install.prefix, precise=True):
        return _survey(install, program, interpreter.libc)


def _ask(path: Path, environ: Mapping[str, str]) -> Install:
    done = finish([path, "-I", "-S", "-c", _QUESTION], environ=environ, seconds=_SECONDS)
    try:
        return msgspec.json.decode(done.out, type=Install)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        message = f"the file is not a working Python: {done.ending(1)[:_SHOWN]}"
        raise HostError(Problem(message=message, file=str(path))) from error


def _read(path: Path) -> ElfFacts:
    try:
        return read_elf(map_file(path), name=str(path))
    except IntegrityError as error:
        raise HostError(*error.problems) from error


def _survey(install: Install, program: _File, libc: str) -> Portable:
    loader = Path(program.facts.interpreter or "")
    brought = _load(program, program)
    if brought.missing:
        raise HostError(*_unfound(brought.missing))
    unwanted = rules.why_left_out(brought.libraries, {})
    if unwanted is not None:
        raise HostError(
            Problem(file=install.executable, message=f"this Python cannot be copied into an image: it {unwanted}")
        )
    texts, modules = _stdlib(install)
    dynload = Path(install.stdlib, "lib-dynload")
    libraries = dict(brought.libraries)
    left_out = {name: why for name, why in rules.BY_DESIGN.items() if any(dynload.glob(f"{name}.*"))}
    kept: dict[str, _File] = {}
    for place, module in sorted(modules.items()):
        loaded = _load(module, program)
        reason = rules.why_left_out({*loaded.libraries, *loaded.missing}, loaded.missing)
        if reason is None:
            kept[place] = module
            libraries |= loaded.libraries
        else:
            left_out[posixpath.basename(place).partition(".")[0]] = reason
    own = {soname: file for soname, file in libraries.items() if not rules.is_glibc(soname)}
    digests = {soname: digest_file(file.path) for soname, file in own.items()}
    renamed = {
        soname: rules.copied_name(soname, digest)
        for soname, digest in digests.items()
        if not soname.startswith("libpython")
    }
    pieces = [
        _elf_piece(f"bin/{install.name}", program, "program"),
        *(_elf_piece(place, file, "elf") for place, file in kept.items()),
        *(_elf_piece(f"{rules.LIBS}/{renamed.get(name, name)}", file, "elf") for name, file in own.items()),
        *_glibc(loader, libraries["libc.so.6"].path),
        *texts,
        *(_headers(install) if Path(install.include).is_dir() else ()),
        *_wheels(install),
    ]
    return Portable(
        install=install,
        pieces=tuple(sorted(pieces, key=lambda piece: piece.place)),
        renamed=renamed,
        left_out=left_out,
        glibc=libc.removeprefix("glibc "),
    )


def _unfound(missing: Mapping[str, str]) -> Iterator[Problem]:
    for soname, file in sorted(missing.items()):
        yield Problem(
            file=file, message=f"the file needs {soname}, which is not on this machine", hint="reinstall this Python"
        )


def _load(file: _File, program: _File) -> _Loaded:
    """All that loading a file brings along, each library where the loader of this machine would take it."""
    found = _Loaded({}, {})
    queue = [file]
    while queue:
        asker = queue.pop(0)
        for soname in asker.facts.needed:
            if soname in found.libraries or soname in found.missing or is_loader(soname):
                continue
            folders = search_folders([*_entries(asker), *([] if asker.facts.runpath else _entries(program))])
            library = find_library(soname, folders, like=program.facts)
            if library is None:
                found.missing[soname] = str(asker.path)
            else:
                found.libraries[soname] = _File(library.path.resolve(), library.facts)
                queue.append(found.libraries[soname])
    return found


def _entries(file: _File) -> list[Path]:
    """Folders of a file's own search path."""
    found = search_path(str(file.path), file.facts)
    return [Path(entry.folder or entry.text) for entry in found if entry.kind != "relative"]


def _stdlib(install: Install) -> tuple[list[Piece], dict[str, _File]]:
    """The files of the standard library: those that are no ELF files, and extension modules by their place."""
    texts: list[Piece] = []
    modules: dict[str, _File] = {}
    for path in sorted(_wanted(install)):
        place = f"{rules.library_folder(install)}/{path}"
        source = Path(install.stdlib, path).resolve()
        with source.open("rb") as stream:
            elf = is_elf(stream.read(4))
        if elf:
            modules[place] = _File(source, _read(source))
        else:
            texts.append(_piece(place, source, rules.kind_of(path)))
    return texts, modules


def _wanted(install: Install) -> Iterator[str]:
    """Files of the standard library that are copied. Folders that are left out, such as site-packages, are not read."""
    for folder, names, files in os.walk(install.stdlib):
        below = "" if folder == install.stdlib else f"{os.path.relpath(folder, install.stdlib)}/"
        names[:] = [name for name in names if rules.is_wanted(f"{below}{name}/")]
        for name in files:
            if rules.is_wanted(f"{below}{name}") and Path(folder, name).is_file():
                yield f"{below}{name}"


def _piece(place: str, source: Path, kind: rules.Kind = "file") -> Piece:
    return Piece(place=place, source=str(source), digest=digest_file(source), kind=kind)


def _elf_piece(place: str, file: _File, kind: rules.Kind) -> Piece:
    piece = _piece(place, file.path, kind)
    return msgspec.structs.replace(piece, needed=file.facts.needed, soname=file.facts.soname)


def _glibc(loader: Path, libc: Path) -> Iterator[Piece]:
    """The loader, and the parts of glibc that lie beside the C library: all of one release."""
    yield _piece(f"{rules.LIBC}/{loader.name}", loader.resolve(), "loader")
    for soname in rules.GLIBC:
        if (libc.parent / soname).is_file():
            yield _piece(f"{rules.LIBC}/{soname}", (libc.parent / soname).resolve(), "glibc")


def _headers(install: Install) -> Iterator[Piece]:
    folder = f"include/{posixpath.basename(install.include)}"
    for path, entry in each_entry(install.include):
        yield _piece(f"{folder}/{path}", Path(os.path.realpath(entry.path)))
    # Debian's pyconfig.h includes <x86_64-linux-gnu/python3.11/pyconfig.h>.
    below = f"{install.multiarch}/{posixpath.basename(install.include)}/pyconfig.h"
    split = Path(install.include).parent / below
    if install.multiarch and split.is_file():
        yield _piece(f"{folder}/{below}", split)


def _wheels(install: Install) -> Iterator[Piece]:
    if install.wheels and Path(install.wheels).is_dir():
        for path in sorted(Path(install.wheels).glob("*.whl")):
            yield _piece(f"{rules.WHEELS}/{path.name}", path.resolve())
