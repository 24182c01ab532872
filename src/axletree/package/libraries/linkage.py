"""Who brings the shared libraries that a wheel's files need, and where the loader will look for them.

Search paths are those of ``ld.so``: DT_RUNPATH, else DT_RPATH, with ``$ORIGIN`` for the folder of the file itself.
"""

from __future__ import annotations

import posixpath
import re
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Literal, NamedTuple

import msgspec
from packaging.utils import canonicalize_name

from axletree.package.libraries.providers import Provider, find_providers

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from axletree.binary.elf.facts import ElfFacts

Owner = Literal[
    "wheel", "system", "host", "driver", "distribution", "sibling", "optional", "undeclared", "python", "nobody"
]
"""Who brings a library.

``wheel``: it is in the wheel. ``system``: the platform tag promises it. ``host``: the machine's own, which no tag
promises. ``driver``: comes with the GPU's driver. ``distribution``: a known one, and it is required. ``sibling``: a
required one must, as the search path leads into a folder that others fill. ``optional``: nobody for sure, but only
some users load what needs it. ``undeclared``: a known distribution, which is not required. ``python``: the
interpreter's own library. ``nobody``: nobody known.
"""

_LOADERS = re.compile(r"ld-linux[a-z0-9_-]*\.so\.\d+|ld64\.so\.\d+|ld\.so\.1")
_MUSL = re.compile(r"libc\.musl-\w+\.so\.1|ld-musl-\w+\.so\.1|libc\.so")
_TOOLCHAIN = re.compile(r"lib(gomp|quadmath|gfortran|stdc\+\+|gcc_s|atomic|omp|iomp5|c\+\+|c\+\+abi|unwind)\.so[.\d]*")
"""Libraries of compilers: no distribution has them by chance."""
_LIBPYTHON = re.compile(r"libpython\d+(\.\d+\w*)?\.so(\.\d[\d.]*)?")


class Need(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A library that files of a wheel need, and its provider."""

    soname: str
    owner: Owner
    by: str = ""
    """The provider or distribution, or the path in the wheel."""
    via: str = ""
    """The required distribution that loads it, if that is not the provider: torch loads CUDA's libraries."""
    why: str = ""
    """Why it may be missing: ``alternative``, ``extra``, ``plug-in``, ``binding``; see ``package.demand``."""
    files: tuple[str, ...] = ()
    """The files that need it, sorted."""


class SearchEntry(msgspec.Struct, frozen=True, kw_only=True):
    """An entry of a file's RPATH or RUNPATH."""

    text: str
    """As in the file."""
    kind: Literal["absolute", "relative", "origin"]
    """``relative``: to the working directory of whoever loads it, so a danger; an empty entry is one as well."""
    folder: str | None = None
    """For ``origin``: the folder from the root of the installation, ``..`` in front where it leaves it."""


class LinkContext(msgspec.Struct, frozen=True, kw_only=True):
    """What will be there where a wheel is installed."""

    own: str = ""
    """Normalised name of the wheel's own distribution."""
    system: frozenset[str] = frozenset()
    """SONAMEs that every system of the wheel's platform has."""
    musl: bool = False
    """Whether it is for systems with musl instead of glibc."""
    providers: tuple[Provider, ...] = ()
    """Known owners of libraries."""
    required: frozenset[str] = frozenset()
    """What the wheel requires, as :func:`~axletree.package.libraries.providers.required_names` says it."""
    extras: frozenset[str] = frozenset()
    """The same with all that only extras of the wheel require."""
    provided_by: dict[str, tuple[str, ...]] = {}
    """Distribution -> patterns of SONAMEs that it brings, as the user says."""


def find_owners(elfs: Mapping[str, ElfFacts], around: LinkContext, *, members: Iterable[str] = ()) -> tuple[Need, ...]:
    """Each needed library, sorted by name; more than once where its users get it from different owners.

    Args:
        elfs: path in the wheel -> facts.
        around: what the wheel will meet.
        members: paths of all its files.
    """
    inside = library_paths(elfs)
    files = {path.rpartition("/")[2]: path for path, facts in sorted(elfs.items()) if facts.kind == "shared"}
    users: dict[Need, list[str]] = {}
    required = tuple(provider for provider in around.providers if provider.declared_by(around.required))
    by_name = {
        soname: _promised(soname, files, around) or _provided(soname, required, around)
        for soname in {soname for facts in elfs.values() for soname in facts.needed}
    }
    known = all(by_name.values())
    places = set() if known else {place for path in members if (place := installed_path(path)) is not None}
    layout = _Layout(places, {folder for place in places for folder in _folders_above(place)}, around)
    for path, facts in elfs.items():
        for soname in dict.fromkeys(facts.needed):
            need = (
                by_name[soname]
                or _sibling(soname, path, facts, layout)
                or _last_resort(soname, _folders(path, facts), inside, around)
            )
            users.setdefault(need, []).append(path)
    found = [msgspec.structs.replace(need, files=tuple(sorted(paths))) for need, paths in users.items()]
    return tuple(sorted(found, key=lambda need: (need.soname, need.files)))


def _promised(soname: str, files: Mapping[str, str], around: LinkContext) -> Need | None:
    """What the wheel, its platform or its interpreter brings: these come before all else."""
    if soname in files:
        return Need(soname=soname, owner="wheel", by=files[soname])
    if soname in around.system or is_loader(soname) or (around.musl and _MUSL.fullmatch(soname)):
        return Need(soname=soname, owner="system")
    if _LIBPYTHON.fullmatch(soname):
        return Need(soname=soname, owner="python")
    return None


def _provided(soname: str, required: Sequence[Provider], around: LinkContext) -> Need | None:
    """What the user names, what is required, what a required framework has loaded, what a machine has."""
    for name, patterns in sorted(around.provided_by.items()):
        if any(fnmatchcase(soname, pattern) for pattern in patterns):
            known = canonicalize_name(name) in {*around.required, around.own}
            return Need(soname=soname, owner="distribution" if known else "undeclared", by=name)
    matching = find_providers(around.providers, soname)
    for provider in matching:
        if provider in required:
            return Need(soname=soname, owner="distribution", by=provider.name)
    for framework in required:
        if framework.carries(soname):
            return Need(soname=soname, owner="distribution", by=framework.name)
        brought = next((provider for provider in matching if provider.name in framework.loads), None)
        if brought is not None:
            return Need(soname=soname, owner="distribution", by=brought.name, via=framework.name)
    for provider in matching:
        if provider.kind != "distribution":
            return Need(soname=soname, owner=provider.kind, by=provider.name)
    return None


def _sibling(soname: str, path: str, facts: ElfFacts, layout: _Layout) -> Need | None:
    """A required distribution, unknown what it brings, into whose folder the file's search path leads."""
    if _TOOLCHAIN.fullmatch(soname) or find_providers(layout.around.providers, soname):
        return None
    for folder in _folders(path, facts):
        if owners := layout.fillers(folder):
            return Need(soname=soname, owner="sibling", by=", ".join(owners))
    return None


def _folders(path: str, facts: ElfFacts) -> tuple[str, ...]:
    return tuple(entry.folder for entry in search_path(path, facts) if entry.folder is not None)


def _last_resort(soname: str, folders: Sequence[str], inside: Mapping[str, str], around: LinkContext) -> Need:
    """A library of the wheel under its SONAME, though its file has another name; a known owner; nobody."""
    if soname in inside:
        return Need(soname=soname, owner="wheel", by=inside[soname])
    matching = find_providers(around.providers, soname)
    if any(provider.declared_by({around.own}) for provider in matching):
        # The wheel itself is who brings such libraries, but this one it does not have: one of its kin does.
        matching = tuple(provider for provider in matching if not provider.declared_by({around.own}))
    if matching:
        near = next((p for p in matching if any(p.lies_in(folder) for folder in folders)), matching[0])
        return Need(soname=soname, owner="undeclared", by=near.name)
    return Need(soname=soname, owner="nobody")


class _Layout(NamedTuple):
    """What the wheel puts below site-packages, and what it requires."""

    places: set[str]
    folders: set[str]
    around: LinkContext

    def fillers(self, folder: str) -> tuple[str, ...]:
        """Required distributions that may fill a folder: those that share the first word of its top folder's name.

        A folder that the wheel owns is its own business: one with files of the wheel, below a package of the wheel, or
        below ``NAME.libs``. Of one that known distributions fill it is known what is in it.
        """
        top = folder.partition("/")[0]
        if (
            top in {"..", "."}
            or top.endswith(".libs")
            or (f"{top}/__init__.py" in self.places and folder in self.folders)
        ):
            return ()
        if any(provider.lies_in(folder) for provider in self.around.providers):
            return ()
        word = _first_word(top)
        return tuple(sorted(name for name in self.around.required if "[" not in name and _first_word(name) == word))


def _folders_above(path: str) -> Iterator[str]:
    while path := path.rpartition("/")[0]:
        yield path


def _first_word(name: str) -> str:
    return re.split(r"[-_.]", name, maxsplit=1)[0].lower()


def is_loader(soname: str) -> bool:
    """Whether a needed library is the dynamic loader itself, which is there by definition."""
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
    if ".data/" not in path:
        return path
    top, _, rest = path.partition("/")
    if not top.endswith(".data"):
        return path
    scheme, _, inner = rest.partition("/")
    return inner if scheme in {"purelib", "platlib"} else None


def origin_entry(path: str, folder: str) -> str:
    """The entry by which a file's search path leads to a folder: ``$ORIGIN/../lib``. Both lie below site-packages."""
    relative = posixpath.relpath(f"/{folder}", f"/{posixpath.dirname(path)}")
    return "$ORIGIN" if relative == "." else f"$ORIGIN/{relative}"


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
