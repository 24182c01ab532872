"""Who brings the shared libraries that a wheel's files need, and where the loader will look for them.

Search paths are those of ``ld.so``: DT_RUNPATH, else DT_RPATH, with ``$ORIGIN`` for the folder of the file itself.
"""

from __future__ import annotations

import posixpath
import re
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Literal

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from axletree.binary.elf import ElfFacts

Owner = Literal["wheel", "system", "driver", "distribution", "python", "nobody"]

_LOADERS = re.compile(r"ld-linux[a-z0-9_-]*\.so\.\d+|ld64\.so\.\d+|ld\.so\.1")
_MUSL = re.compile(r"libc\.musl-\w+\.so\.1|ld-musl-\w+\.so\.1|libc\.so")
_LIBPYTHON = re.compile(r"libpython\d+(\.\d+\w*)?\.so(\.\d[\d.]*)?")


class Need(msgspec.Struct, frozen=True, kw_only=True):
    """A library that some files of a wheel need, and who brings it."""

    soname: str
    owner: Owner
    by: str = ""
    """The distribution, or the path inside the wheel."""
    files: tuple[str, ...] = ()
    """Who needs it, sorted."""


class SearchEntry(msgspec.Struct, frozen=True, kw_only=True):
    """An entry of a file's RPATH or RUNPATH."""

    text: str
    """As in the file."""
    kind: Literal["absolute", "relative", "origin"]
    """``relative``: to the working directory of whoever loads it, so a danger; an empty entry is one as well."""
    folder: str | None = None
    """For ``origin``: the folder from the root of the installation, ``..`` in front where it leaves it."""


def find_owners(
    elfs: Mapping[str, ElfFacts],
    *,
    system: Iterable[str],
    driver: Iterable[str] = (),
    provided_by: Mapping[str, tuple[str, ...]] | None = None,
    musl: bool = False,
) -> tuple[Need, ...]:
    """Each needed library once, sorted by name.

    Args:
        elfs: path in the wheel -> facts.
        system: SONAMEs that every system of the wheel's platform has.
        driver: patterns of SONAMEs that a GPU driver brings.
        provided_by: distribution -> patterns of SONAMEs that it brings.
        musl: whether the wheel is for a system with musl instead of glibc.
    """
    inside = library_paths(elfs)
    allowed = frozenset(system)
    users: dict[str, set[str]] = {}
    for path, facts in elfs.items():
        for soname in facts.needed:
            users.setdefault(soname, set()).add(path)

    def owner(soname: str) -> tuple[Owner, str]:
        if soname in inside:
            return "wheel", inside[soname]
        if soname in allowed or is_loader(soname) or (musl and _MUSL.fullmatch(soname)):
            return "system", ""
        for distribution, patterns in sorted((provided_by or {}).items()):
            if any(fnmatchcase(soname, pattern) for pattern in patterns):
                return "distribution", distribution
        if any(fnmatchcase(soname, pattern) for pattern in driver):
            return "driver", ""
        return ("python" if _LIBPYTHON.fullmatch(soname) else "nobody"), ""

    return tuple(
        Need(soname=soname, owner=kind, by=by, files=tuple(sorted(files)))
        for soname, files in sorted(users.items())
        for kind, by in (owner(soname),)
    )


def is_loader(soname: str) -> bool:
    """Whether a SONAME is that of glibc's loader, which every process has."""
    return _LOADERS.fullmatch(soname) is not None


def library_paths(elfs: Mapping[str, ElfFacts]) -> dict[str, str]:
    """SONAME or file name -> path of a library inside the wheel."""
    found: dict[str, str] = {}
    for path, facts in sorted(elfs.items(), reverse=True):
        if facts.kind == "shared":
            found[path.rpartition("/")[2]] = path
    for path, facts in sorted(elfs.items(), reverse=True):
        if facts.kind == "shared" and facts.soname:
            found[facts.soname] = path
    return found


def installed_path(path: str) -> str | None:
    """Where a member lies below site-packages; ``None`` for what goes elsewhere (scripts, headers, data)."""
    top, _, rest = path.partition("/")
    if not top.endswith(".data"):
        return path
    scheme, _, inner = rest.partition("/")
    return inner if scheme in {"purelib", "platlib"} else None


def search_path(path: str, facts: ElfFacts) -> Iterator[SearchEntry]:
    """The entries that the loader uses for a file, in their order."""
    place = installed_path(path)
    folder = posixpath.dirname(place) if place is not None else None
    for text in facts.runpath or facts.rpath:
        origin = re.match(r"\$ORIGIN(?=/|$)|\$\{ORIGIN\}", text)
        if origin is None:
            yield SearchEntry(text=text, kind="absolute" if text.startswith("/") else "relative")
        elif folder is None:
            yield SearchEntry(text=text, kind="origin")
        else:
            target = posixpath.normpath(posixpath.join(folder, text[origin.end() :].lstrip("/")))
            yield SearchEntry(text=text, kind="origin", folder=target)
