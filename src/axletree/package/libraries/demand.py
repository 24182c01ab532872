"""Which files of a wheel are loaded first, what they then miss, and which are there for some machines only.

A wheel may hold files that only some users load: builds of one library for several CUDA releases, plug-ins, bindings to
libraries that are not everybody's. What such a file lacks breaks no one else. Nothing in a wheel says so outright; what
is taken as a sign is listed at :func:`find_optional`.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from axletree.core.grouping import grouped
from axletree.package.libraries.linkage import Need, installed_path, library_paths
from axletree.package.libraries.loading import follow_loading
from axletree.package.libraries.providers import find_providers

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from axletree.binary.elf.facts import ElfFacts
    from axletree.package.libraries.linkage import LinkContext

_PLUGIN_FOLDERS = frozenset({"plugin", "plugins", "extensions"})
_SHORTEST = 3
"""Letters from which on a name in another name is more than chance."""
_MOST_STEPS = 10_000_000
"""Steps of a search from all roots, beyond which it is not begun: several times what the largest wheels need."""
_ALIKE = 4
"""Letters that names alike begin or end with, at least."""


class NotFound(NamedTuple):
    """A library that the wheel has, and that the loader does not find."""

    root: str
    """The file that is loaded first."""
    user: str
    """The file that needs the library: the root, or what it leads to."""
    soname: str
    path: str
    """Where the library lies in the wheel."""


def find_roots(elfs: Mapping[str, ElfFacts]) -> tuple[str, ...]:
    """Files that nothing else in the wheel needs: what Python imports, code opens by name, or users start."""
    names = library_paths(elfs)
    needed = {names[soname] for facts in elfs.values() for soname in facts.needed if soname in names}
    # Copies of a library under its other names (wheels can't hold links) are no roots of their own.
    sonames = {elfs[path].soname for path in needed} - {None}
    return tuple(path for path, facts in elfs.items() if path not in needed and facts.soname not in sonames)


def find_misses(elfs: Mapping[str, ElfFacts]) -> tuple[NotFound, ...]:
    """Libraries of the wheel that something needs and that its search path does not lead to.

    A program must find all by itself. Of an extension module or a library that code opens only what no other file of
    the wheel loads either counts: its package may have loaded it before. Nor does what a plug-in needs of the library
    that it is named after, since that one opens it. Files outside of site-packages are left out: where they will lie is
    not known.
    """
    files = {place: facts for path, facts in elfs.items() if (place := installed_path(path)) is not None}
    paths = {place: path for path in elfs if (place := installed_path(path)) is not None}
    names = {place.rpartition("/")[2]: place for place in sorted(files, reverse=True) if files[place].kind == "shared"}
    roots = find_roots(files)
    loadings = {root: follow_loading(files, root) for root in roots if is_bearable(files, roots)}
    loaded = {reach.path for loading in loadings.values() for reach in loading.found}
    loaded |= {place for place, facts in files.items() if facts.python_modules}
    return tuple(
        NotFound(paths[root], paths[user], soname, paths[names[soname]])
        for root, loading in loadings.items()
        for soname, user in loading.missing
        if soname in names
        and (files[root].interpreter is not None or not (names[soname] in loaded or _extends(root, names[soname])))
    )


def find_optional(needs: Iterable[Need], elfs: Mapping[str, ElfFacts], around: LinkContext) -> tuple[Need, ...]:
    """The needs again, those that nothing resolves split into what all users meet and what only some do.

    A file may lack a library where nothing else in the wheel needs the file and

    - it is one of several in a folder that are named alike and lack different libraries (``tbbpool``, ``omppool``), or
      of a row of libraries named alike of which others lack nothing: an ``alternative``; or something in the wheel
      works without the library, and
    - only an ``extra`` of the wheel requires what brings it; or
    - the file is a ``plug-in``: in a folder of them, called one, or named after a library of the wheel; or
    - it is a ``binding``: named after the library that it lacks.

    Then ``why`` says so. The owner becomes ``optional``, except for plug-ins and bindings to what nobody brings: the
    wheel may have forgotten a file.
    """
    needs = tuple(needs)
    lacks: dict[str, set[str]] = {}
    for need in needs:
        if need.owner in {"undeclared", "nobody"}:
            for path in need.files:
                lacks.setdefault(path, set()).add(need.soname)
    roots = find_roots(elfs)
    if not lacks or not is_bearable(elfs, roots):
        return needs
    names = library_paths(elfs)
    reached = {root: wheel_closure(root, elfs, names) for root in roots}
    signs = _Signs(elfs, reached, lacks, around)
    return tuple(part for need in needs for part in _split(need, signs))


def is_bearable(elfs: Mapping[str, ElfFacts], roots: Sequence[str]) -> bool:
    """Whether following what all roots need ends soon: a hostile wheel may hold files without number."""
    steps = sum(1 + len(facts.needed) for facts in elfs.values())
    return max(len(roots) * steps, len(elfs) ** 2) <= _MOST_STEPS


class _Signs(NamedTuple):
    """What tells whether a file is for some users only."""

    elfs: Mapping[str, ElfFacts]
    roots: Mapping[str, set[str]]
    """Root -> all files that it leads to, itself included."""
    lacks: Mapping[str, set[str]]
    around: LinkContext

    def find(self, path: str, need: Need) -> str:
        """Why a file may lack a library; empty where there is no sign of it."""
        if path not in self.roots or self.elfs[path].interpreter is not None:
            return ""
        if self.is_alternative(path):
            return "alternative"
        if not self.spared(need.soname):
            return ""
        owners = find_providers(self.around.providers, need.soname)
        if any(owner.declared_by(self.around.extras) for owner in owners):
            return "extra"
        if self.is_plugin(path):
            return "plug-in"
        return "binding" if _named_after(path, need.soname) else ""

    def spared(self, soname: str) -> bool:
        """Whether something that users load works without a library."""
        return any(not any(soname in self.lacks.get(path, ()) for path in reached) for reached in self.roots.values())

    def is_alternative(self, path: str) -> bool:
        folder = path.rpartition("/")[0]
        kin = [
            other
            for other in self.roots
            if other != path and other.rpartition("/")[0] == folder and self.elfs[other].kind == "shared"
        ]
        alike = [other for other in kin if _alike(path, other)]
        if any(self.lacks[path].isdisjoint(self.lacks[other]) for other in alike if other in self.lacks):
            return True
        if self.elfs[path].python_modules:
            return False
        row = [other for other in alike if _common(path, other)[0] >= _ALIKE and not self.elfs[other].python_modules]
        return len(row) > 1 and any(other not in self.lacks for other in row)

    def is_plugin(self, path: str) -> bool:
        if self.elfs[path].python_modules:
            return False
        if _PLUGIN_FOLDERS.intersection(path.split("/")[:-1]) or "plugin" in _stem(path).lower():
            return True
        return any(_extends(path, other) for other, facts in self.elfs.items() if facts.kind == "shared")


def _split(need: Need, signs: _Signs) -> Iterator[Need]:
    if need.owner not in {"undeclared", "nobody"}:
        yield need
        return
    reasons = grouped((signs.find(path, need), path) for path in need.files)
    for why, files in sorted(reasons.items()):
        forgotten = need.owner == "nobody" and why in {"plug-in", "binding"}
        owner = need.owner if forgotten or not why else "optional"
        yield msgspec.structs.replace(need, owner=owner, why=why, files=tuple(files))


def wheel_closure(root: str, elfs: Mapping[str, ElfFacts], names: Mapping[str, str]) -> set[str]:
    """All files of the wheel that a file leads to by the names that they need, itself included.

    Args:
        root: path of the file.
        elfs: path -> facts.
        names: SONAME -> path, as :func:`~axletree.package.libraries.linkage.library_paths` gives it.
    """
    seen = {root}
    waiting = [root]
    while waiting:
        reached = {names[soname] for soname in elfs[waiting.pop()].needed if soname in names} - seen
        seen |= reached
        waiting.extend(reached)
    return seen


def _extends(path: str, host: str) -> bool:
    """Whether a file is named after another: ``libcufile_rdma.so`` after ``libcufile.so``."""
    stem = _stem(host)
    return len(stem) >= _SHORTEST and _stem(path).startswith((f"{stem}_", f"{stem}-"))


def _alike(one: str, other: str) -> bool:
    shortest = min(len(_stem(one)), len(_stem(other)))
    return any(length >= _ALIKE and 2 * length >= shortest for length in _common(one, other))


def _common(one: str, other: str) -> tuple[int, int]:
    """Length of what two files' names begin and end with."""
    first, second = _stem(one), _stem(other)
    return _prefix(first, second), _prefix(first[::-1], second[::-1])


def _prefix(first: str, second: str) -> int:
    pairs = zip(first, second, strict=False)
    return next((index for index, (a, b) in enumerate(pairs) if a != b), min(len(first), len(second)))


def _named_after(path: str, soname: str) -> bool:
    stem, library = (re.sub(r"[^a-z]", "", _stem(name).lower()) for name in (path, soname))
    return min(len(stem), len(library)) >= _SHORTEST and (stem in library or library in stem)


@lru_cache(maxsize=4096)
def _stem(path: str) -> str:
    """``a/libfoo_bar.so.3`` -> ``foo_bar``; ``a/_foo.cpython-311-x86_64-linux-gnu.so`` -> ``foo``."""
    name = re.split(r"\.cpython-|\.abi3\.|\.so\b", path.rpartition("/")[2], maxsplit=1)[0]
    return name.removeprefix("lib").strip("_")
