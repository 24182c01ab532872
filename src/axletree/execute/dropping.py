"""What dropping needed libraries reads: the symbols of files and of the libraries, wherever these are."""

from __future__ import annotations

from typing import TYPE_CHECKING

from axletree.binary.elf.symbols import Symbols, read_symbols
from axletree.binary.source import BufferSource
from axletree.host.archive import map_file
from axletree.host.libraries import find_library
from axletree.package.libraries.demand import wheel_closure
from axletree.package.libraries.linkage import library_paths
from axletree.package.libraries.unused import driver_exports
from axletree.package.relocation.drops import plan_drops

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from axletree.binary.elf.facts import ElfFacts
    from axletree.core.trees import Entry
    from axletree.package.libraries.providers import Provider
    from axletree.store.store import Store


def dropped_needs(
    store: Store,
    elfs: Mapping[str, ElfFacts],
    entries: Mapping[str, Entry],
    wanted: Mapping[str, Sequence[str]],
    *,
    beside: Mapping[str, ElfFacts],
    folders: Sequence[Path],
    providers: Sequence[Provider],
) -> dict[str, tuple[str, ...]]:
    """Path -> the libraries that a file of a tree needs no longer.

    What a library exports is read in the tree, in those beside it, or on this machine; of drivers it is known.

    Args:
        store: has the content.
        elfs: path -> facts of the tree.
        entries: path -> entry, of the tree (as it was before) and of those beside it.
        wanted: pattern of files as they were before -> patterns of SONAMEs.
        beside: path -> facts of the trees that it is installed beside.
        folders: where libraries of this machine are.
        providers: who brings which libraries.

    Raises:
        IntegrityError: a file uses a symbol of a library that is to go, or that is not known.
    """
    if not wanted:
        return {}
    loaded = {path: facts for path, facts in elfs.items() if facts.dynamic and facts.architecture is not None}
    everything = {**beside, **loaded}
    names = library_paths(everything)
    known: dict[str, Symbols] = {}

    def read(path: str) -> Symbols:
        if path not in known:
            blob = entries[path].blob
            assert blob is not None  # noqa: S101 (ELF files are files)
            with map_file(store.blob_path(blob)) as view:
                known[path] = read_symbols(BufferSource(view), name=path)
        return known[path]

    def exports(path: str, soname: str) -> Callable[[bytes], object] | None:
        if soname in names:
            others = [names[name] for name in loaded[path].needed if name in names and name != soname]
            reached = {path}.union(*(wheel_closure(each, everything, names) for each in others))
            behind = wheel_closure(names[soname], everything, names) - reached
            return frozenset[bytes]().union(*(read(each).exported for each in behind)).__contains__
        pattern = driver_exports(soname, providers)
        if pattern is not None:
            return lambda name: pattern.match(name.decode("utf-8", "backslashreplace"))
        found = find_library(soname, folders, like=loaded[path])
        if found is None:
            return None
        return read_symbols(BufferSource(map_file(found.path)), name=str(found.path)).exported.__contains__

    before = {path: entries[path].path for path in loaded}
    return plan_drops(loaded, wanted, before=before, read=read, exports=exports)
