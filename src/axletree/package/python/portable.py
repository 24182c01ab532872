"""A CPython of this machine as a folder that runs in a system with an older glibc: what goes into it, and how.

The folder has its own loader and C library (``libc``) and its own copies of what the modules need (``libs``). The
interpreter asks for that loader (PT_INTERP), and its DT_RPATH leads to both folders. So nothing has to be set in the
environment, and programs that Python starts get the system's own libraries.

All parts of glibc must be of one release, so the interpreter needs each of them from the start: an extension module of
the system that asks for ``libm.so.6`` gets the one that is loaded, whatever its own search path says. Other libraries
get names of their own, as grafts in a wheel do, so they never stand in for those that an extension module was linked
to. The C++ runtime is never copied: whatever needs it takes the system's.
"""

from __future__ import annotations

import posixpath
import re
from typing import TYPE_CHECKING, Literal

import msgspec

from axletree.binary.elf.edit import ElfChange
from axletree.core.errors import Problem
from axletree.core.values import Digest, Key, key_of
from axletree.package.libraries.graft import hashed_name
from axletree.package.libraries.linkage import is_loader
from axletree.package.libraries.platforms import libc_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from axletree.binary.elf.facts import ElfFacts

REVISION = 1
"""Rises with whatever makes another folder of the same files."""
LIBC = "libc"
LIBS = "libs"
WHEELS = "share/python-wheels"
LOADED_FIRST = (
    "libc.so.6",
    "libm.so.6",
    "libmvec.so.1",
    "libpthread.so.0",
    "libdl.so.2",
    "librt.so.1",
    "libutil.so.1",
    "libresolv.so.2",
    "libanl.so.1",
    "libnsl.so.1",
)
"""Parts of glibc that programs are linked to."""
GLIBC = (*LOADED_FIRST, "libBrokenLocale.so.1", "libnss_files.so.2", "libnss_dns.so.2", "libnss_compat.so.2")
"""Parts of glibc that a process may load."""
_CXX = re.compile(r"lib(stdc\+\+|gcc_s|c\+\+|c\+\+abi)\.so\.\d+")
_LEFT_OUT_MODULES = re.compile(r"_test|_ctypes_test|_xx|xx|(_tkinter|nis)\.")
BY_DESIGN = {
    "_tkinter": "builds need no windows, and it needs many libraries",
    "nis": "it reads the services that the system is configured with",
}
"""Extension modules that are never copied, and why."""
_LEFT_OUT = frozenset({"__pycache__", "site-packages", "dist-packages", "test", "tests", "idle_test"})
_LEFT_OUT_TOP = frozenset(
    {"idlelib", "tkinter", "turtledemo", "sitecustomize.py", "usercustomize.py", "build-details.json"}
)
_SOURCES = re.compile(r"_sysconfigdata.*\.py|_sysconfig_vars.*\.json")


class Install(msgspec.Struct, frozen=True, kw_only=True):
    """Where the parts of an installed CPython lie, as it says itself."""

    executable: str
    implementation: str
    version: str
    prefix: str
    stdlib: str
    include: str
    config: str
    """Folder of the Makefile; empty where it has none."""
    multiarch: str
    """Debian's name of the machine, ``x86_64-linux-gnu``; empty elsewhere."""
    wheels: str
    """Folder with the wheels that ``ensurepip`` installs, if that is not in the standard library."""

    @property
    def name(self) -> str:
        """``python3.11``, ``python3.13t``: what its program and its folders are called."""
        return posixpath.basename(self.stdlib)


Kind = Literal["file", "program", "elf", "module", "json", "makefile", "loader", "glibc"]


class Piece(msgspec.Struct, frozen=True, kw_only=True):
    """A file of the folder."""

    place: str
    """Path in the folder."""
    source: str
    """Path on this machine."""
    digest: Digest
    """Of the source."""
    kind: Kind = "file"
    needed: tuple[str, ...] = ()
    """Libraries that it needs, for ``program`` and ``elf``."""
    soname: str | None = None


class Portable(msgspec.Struct, frozen=True, kw_only=True):
    """All that a portable CPython is made of."""

    install: Install
    pieces: tuple[Piece, ...]
    renamed: dict[str, str]
    """SONAME -> the name of its copy."""
    left_out: dict[str, str]
    """Extension module of the interpreter -> why the folder has none."""
    glibc: str
    """Its own, such as ``2.36``."""

    @property
    def id(self) -> Key:
        """Digest of everything that the folder's content depends on but its place; fit for the key of a stage."""
        pieces = {piece.place: (piece.kind, piece.digest) for piece in self.pieces}
        return key_of({"revision": REVISION, "version": self.install.version, "pieces": pieces})

    @property
    def program(self) -> str:
        """Path of the interpreter in the folder."""
        return f"bin/{self.install.name}"

    @property
    def loader(self) -> str:
        """Path of the loader in the folder."""
        return next(piece.place for piece in self.pieces if piece.kind == "loader")


def obstacles(install: Install, program: ElfFacts, *, headers: bool) -> Iterator[Problem]:
    """Why no portable Python can be made of an installed one; each with what to do."""
    file = install.executable
    use = "use a CPython that pyenv, uv or the distribution installed"
    if install.implementation != "cpython":
        yield Problem(
            file=file,
            message=f"this Python is {install.implementation}, but only CPython can be copied into an image",
            hint=use,
        )
    if libc_of(program) == "musl":
        yield Problem(
            file=file,
            message="this Python is linked to musl, but only a CPython for glibc can be copied into an image",
            hint=use,
        )
    elif program.interpreter is None:
        yield Problem(
            file=file, message="this Python is statically linked, so it cannot load extension modules", hint=use
        )
    if not install.stdlib.startswith(f"{install.prefix.rstrip('/')}/"):
        message = f"the standard library of this Python, {install.stdlib}, is outside its prefix, {install.prefix}"
        yield Problem(file=file, message=message, hint=f"{use}, not one from a build folder")
    if not headers:
        package = f"{install.name.removesuffix('t')}-dev"
        yield Problem(
            file=file,
            message=f"this Python has no headers for extension modules: {install.include}/Python.h does not exist",
            hint=f"install the headers (Debian, Ubuntu: apt-get install {package}), or use a CPython from pyenv or uv",
        )


def is_wanted(path: str) -> bool:
    """Whether a file of the standard library belongs into the folder.

    Args:
        path: below the standard library; that of a folder, for all that is in there, ends with a slash.
    """
    *folders, name = path.split("/")
    first = folders[0] if folders else name
    if _LEFT_OUT & {*folders} or first in _LEFT_OUT_TOP or name.endswith((".a", ".o", ".pyc", ".pth")):
        return False
    if first.startswith("config-") and name:
        return name == "Makefile"
    return not (first == "lib-dynload" and _LEFT_OUT_MODULES.match(name))


def library_folder(install: Install) -> str:
    """Where the standard library lies in the folder, as it does below the prefix: the interpreter looks there."""
    return posixpath.relpath(install.stdlib, install.prefix)


def kind_of(path: str) -> Kind:
    """What is to be done to a file of the standard library that is not ELF."""
    name = posixpath.basename(path)
    if _SOURCES.fullmatch(name):
        return "json" if name.endswith(".json") else "module"
    return "makefile" if name == "Makefile" and path.startswith("config-") else "file"


def why_left_out(needed: Iterable[str], missing: Mapping[str, str]) -> str | None:
    """Why an extension module of the interpreter is not copied; ``None``: it is.

    Args:
        needed: all libraries that loading it brings along.
        missing: those that this machine lacks -> the file that needs it.
    """
    for soname in sorted(needed):
        if _CXX.fullmatch(soname):
            return f"needs {soname}, which every system provides itself"
        if soname in missing:
            return f"needs {soname}, which this machine lacks"
    return None


def is_glibc(soname: str) -> bool:
    """Whether a library is a part of glibc, of which all are copied."""
    return soname in GLIBC or is_loader(soname)


def copied_name(soname: str, digest: str) -> str:
    """The name of a copy: ``libz.so.1`` -> ``libz-0a1b2c3d.so.1``."""
    return hashed_name(soname, digest)


def change_of(portable: Portable, piece: Piece, home: str) -> ElfChange | None:
    """How an ELF file changes for a folder at ``home``; ``None``: not at all."""
    if piece.kind not in {"program", "elf"}:
        return None
    names = {soname: portable.renamed[soname] for soname in piece.needed if soname in portable.renamed}
    path = (f"{home}/{LIBC}", f"{home}/{LIBS}") if piece.needed or piece.kind == "program" else ()
    if piece.kind == "elf":
        new = portable.renamed.get(piece.soname or "")
        return ElfChange(rpath=path, replace_needed=names, soname=new)
    parts = {posixpath.basename(each.place) for each in portable.pieces if each.kind == "glibc"}
    first = tuple(soname for soname in LOADED_FIRST if soname in parts)
    return ElfChange(rpath=path, replace_needed=names, add_needed=first, interpreter=f"{home}/{portable.loader}")
