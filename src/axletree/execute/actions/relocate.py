"""Turn a tree of the build machine into one that loads on a clean host, beside the trees that it is installed with.

What must change is decided in :mod:`axletree.package.relocation`. Content that stays is not copied: the new tree names
the blobs of the old one.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from axletree.binary.elf.facts import is_elf, read_elf
from axletree.core.errors import IntegrityError, Problem
from axletree.core.trees import Entry, make_tree
from axletree.core.units import format_bytes, some_of
from axletree.execute.bundling import divided, required_by, stated_providers
from axletree.execute.context import Outcome
from axletree.execute.dropping import dropped_needs
from axletree.host.archive import map_file
from axletree.host.edit import edit_elf
from axletree.host.grafts import graft_folders, library_finder, licence_of
from axletree.host.shipped_data import read_shipped
from axletree.package.cmake.exports import CMakeChanges, CMakeTree, adapt_exports
from axletree.package.libraries.graft import graft_components, grafted_library
from axletree.package.libraries.policy import MANYLINUX_POLICIES, promised_libraries
from axletree.package.libraries.providers import LIBRARY_PROVIDERS
from axletree.package.relocation.drops import idle_drops
from axletree.package.relocation.layout import RelocatedTree, lay_out
from axletree.package.relocation.linked import folder_links
from axletree.package.relocation.links import LinkChanges, plan_links, without, without_needs
from axletree.package.relocation.proof import build_path_problems, loading_problems
from axletree.package.relocation.taken import idle_patterns, taken_in, taken_text
from axletree.package.relocation.texts import edit_texts
from axletree.package.sbom.read import read_bundled
from axletree.package.sbom.write import TREE_SBOM_NAME, Component, render_sbom
from axletree.package.wheel.tags import single_machine
from axletree.plan.actions.relocate import RelocateFacts, RelocateParameters

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from axletree.binary.elf.facts import ElfFacts
    from axletree.core.trees import Tree
    from axletree.execute.context import ActionContext
    from axletree.package.libraries.graft import Find, Graft, GraftCandidate
    from axletree.package.libraries.providers import Provider
    from axletree.recipe.relocation import Relocate
    from axletree.store.store import Store

_SMALLEST_ELF = 52
_TEXTS = (".cmake", ".pc", ".py")
_SHOWN = 40
_SYSTEM = re.compile(r"/(usr|lib\w*|opt|etc)(/|$)")


class _Trees(NamedTuple):
    """The tree that is relocated, and those beside it."""

    own: Tree
    elfs: dict[str, ElfFacts]
    beside: dict[str, Entry]
    beside_elfs: dict[str, ElfFacts]


def run(context: ActionContext[RelocateParameters]) -> Outcome:
    """Relocate the tree of the first input.

    Raises:
        IntegrityError: a library that is needed can't be had, an edit does not fit, something of the build machine is
            left, or a file would not load. Names all that the same step found.
    """
    rules, bundled = context.parameters.relocate, context.parameters.bundled
    trees = _read_trees(context)
    layout = lay_out(trees.own, rules, trees.elfs, beside=trees.beside)
    now = {path: trees.elfs[entry.path] for path, entry in layout.entries.items() if entry.path in trees.elfs}
    folders = graft_folders(rules.graft_from)
    providers = (*stated_providers(bundled), *read_shipped(LIBRARY_PROVIDERS))
    dropped = _dropped(context, trees, layout, now, folders, providers)
    links = plan_links(
        {path: without(facts, dropped.get(path, ())) for path, facts in now.items()},
        layout,
        rules,
        siblings=trees.beside_elfs,
        system=promised_libraries(now, read_shipped(MANYLINUX_POLICIES), single_machine(now)),
        providers=providers,
        required=None if bundled is None else required_by(context, bundled, trees.own, folders),
        find=_pinned(library_finder(folders), context.parameters.libraries, rules.graft),
        searched=[str(folder) for folder in folders],
    )
    links = without_needs(links, dropped)
    cmake, texts = _texts(context, trees, layout, links, rules)
    entries = {path: msgspec.structs.replace(entry, path=path) for path, entry in layout.entries.items()}
    entries |= {path: Entry(path=path, kind="link", target=target) for path, target in layout.links.items()}
    entries |= {entry.path: entry for entry in _write_texts(context, texts, layout)}
    entries |= {entry.path: entry for entry in _write_elfs(context, links, entries)}
    entries |= {entry.path: entry for entry in _write_papers(context, layout, links.grafts, rules)}
    linked = folder_links(context.parameters.link, (*entries, *trees.beside))
    entries |= {path: Entry(path=path, kind="link", target=target) for path, target in linked.items()}
    leaks = _prove(context, entries, trees, links)
    _say(context, layout, links)
    tree = context.store.put_tree(make_tree(entries.values()))
    findings = (
        *taken_in(links.grafts, rules),
        *idle_patterns(links, rules, now.values()),
        *idle_drops(
            dropped, context.parameters.drop_needed, {path: entry.path for path, entry in layout.entries.items()}
        ),
    )
    return Outcome(tree=tree, facts=_facts(layout, links, cmake, texts, leaks), findings=findings)


def _dropped(
    context: ActionContext[RelocateParameters],
    trees: _Trees,
    layout: RelocatedTree,
    now: Mapping[str, ElfFacts],
    folders: Sequence[Path],
    providers: Sequence[Provider],
) -> dict[str, tuple[str, ...]]:
    """Path now -> libraries that a file needs no longer."""
    return dropped_needs(
        context.store,
        now,
        {**trees.beside, **layout.entries},
        context.parameters.drop_needed,
        beside=trees.beside_elfs,
        folders=folders,
        providers=providers,
    )


def _read_trees(context: ActionContext[RelocateParameters]) -> _Trees:
    own = context.tree(context.parameters.tree)
    if context.parameters.bundled is not None:
        own, rest = divided(context, context.parameters.bundled)
        return _Trees(own, _read_elfs(context.store, own.entries), rest, _read_elfs(context.store, rest.values()))
    others = [name for name in context.request.inputs if name != context.parameters.tree]
    beside = {entry.path: entry for name in others for entry in context.tree(name).entries}
    return _Trees(own, _read_elfs(context.store, own.entries), beside, _read_elfs(context.store, beside.values()))


def _read_elfs(store: Store, entries: Iterable[Entry]) -> dict[str, ElfFacts]:
    found: dict[str, ElfFacts] = {}
    for entry in entries:
        if entry.blob is None or entry.size < _SMALLEST_ELF:
            continue
        path = store.blob_path(entry.blob)
        with path.open("rb") as stream:
            head = stream.read(4)
        if is_elf(head):
            with map_file(path) as view:
                found[entry.path] = read_elf(view, name=entry.path)
    return found


def _pinned(find: Find, known: Mapping[str, str], patterns: Iterable[str]) -> Find:
    """Refuse a library that may be taken in and is not the one whose digest went into the stage's key."""

    def pinned(soname: str, like: ElfFacts) -> GraftCandidate | None:
        library = find(soname, like)
        listed = any(fnmatchcase(soname, pattern) for pattern in patterns)
        if library is not None and listed and known.get(soname) != library.sha256:
            problem = Problem(file=library.origin, message="the file has changed since the build was planned")
            raise IntegrityError(problem, hint="run `axletree build` again")
        return library

    return pinned


def _texts(
    context: ActionContext[RelocateParameters],
    trees: _Trees,
    layout: RelocatedTree,
    links: LinkChanges,
    rules: Relocate,
) -> tuple[CMakeChanges | None, dict[str, str]]:
    """Path before -> new text, of all texts that change."""
    edited = {edit.file for edit in rules.edits}
    wanted = {
        entry.path: entry
        for entry in layout.entries.values()
        if entry.path in edited or (rules.cmake and entry.path.endswith(".cmake"))
    }
    before = {path: _text(context.store, entry) for path, entry in wanted.items()}
    texts = edit_texts(before, rules.edits)
    if not rules.cmake:
        return None, texts
    known = {*links.inside, *(outside.soname for outside in links.outside if outside.kind == "system")}
    stems = {found[1] for name in known if (found := re.match(r"lib(.+?)\.so", name))}
    cmake = adapt_exports(
        {path: texts.get(path, text) for path, text in before.items() if path.endswith(".cmake")},
        CMakeTree(
            moved=layout.moved,
            folders=layout.folders,
            spread=layout.spread,
            dropped=layout.dropped,
            names=layout.names,
            inside=stems,
            private=rules.private,
        ),
        beside=(_text(context.store, entry) for path, entry in trees.beside.items() if path.endswith(".cmake")),
    )
    return cmake, texts | cmake.texts


def _text(store: Store, entry: Entry) -> str:
    assert entry.blob is not None  # noqa: S101 (only files are read)
    try:
        return store.read_blob(entry.blob).decode()
    except UnicodeDecodeError as error:
        raise IntegrityError(Problem(file=entry.path, message=f"the file is not UTF-8 text: {error.reason}")) from error


def _write_texts(
    context: ActionContext[RelocateParameters], texts: Mapping[str, str], layout: RelocatedTree
) -> Iterator[Entry]:
    entries = {entry.path: (path, entry) for path, entry in layout.entries.items()}
    for before, text in texts.items():
        path, entry = entries[before]
        data = text.encode()
        blob = context.store.put_bytes(data)
        yield Entry(path=path, blob=blob, size=len(data), executable=entry.executable)


def _write_elfs(
    context: ActionContext[RelocateParameters], links: LinkChanges, entries: Mapping[str, Entry]
) -> Iterator[Entry]:
    """Edit the ELF files that change, in copies of them, and the libraries that are taken in."""
    grafts = {graft.path: graft for graft in links.grafts}
    changing = [entries[path] for path in links.changes if path not in grafts]
    folder = context.work / "changed"
    context.store.materialise(context.store.put_tree(make_tree(changing)), folder)
    for number, path in enumerate((*(entry.path for entry in changing), *grafts), start=1):
        context.progress("editing libraries", done=number, total=len(changing) + len(grafts))
        target = folder / path
        if path in grafts:
            _copy_graft(grafts[path], target)
        if path in links.changes:
            edit_elf(target, links.changes[path])
        blob, size = context.store.put_file(target, adopt=True)
        executable = path in grafts or entries[path].executable
        yield Entry(path=path, blob=blob, size=size, executable=executable)


def _copy_graft(graft: Graft, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(graft.library.origin, target)
    with target.open("rb") as stream:
        if hashlib.file_digest(stream, "sha256").hexdigest() != graft.library.sha256:
            problem = Problem(file=graft.library.origin, message="the file changed while it was being read")
            raise IntegrityError(problem, hint="run `axletree build` again")


def _write_papers(
    context: ActionContext[RelocateParameters], layout: RelocatedTree, grafts: tuple[Graft, ...], rules: Relocate
) -> Iterator[Entry]:
    """Bills of the libraries that were taken in, now and when the tree was relocated before, and their licences."""
    bills = {
        path: _bill_before(context.store, entry, layout)
        for path, entry in layout.entries.items()
        if entry.kind == "file" and path.rpartition("/")[2] == TREE_SBOM_NAME
    }
    papers: dict[str, bytes] = {}
    if grafts and rules.graft_to is not None:
        path = f"{rules.graft_to}/{TREE_SBOM_NAME}"
        bills[path] = (*bills.get(path, ()), *graft_components(grafts))
        for package in sorted({graft.library.package for graft in grafts} - {""}):
            licence = licence_of(package)
            if licence is not None:
                papers[f"{rules.graft_to}/licenses/{package}/copyright"] = licence
    for path, parts in bills.items():
        if parts:  # else it is somebody else's file of that name
            subject = Component(name=path.partition("/")[0], origin="bundled")
            papers[path] = render_sbom(subject, parts, epoch=context.ingredients.epoch or 0)
    for path, data in papers.items():
        yield Entry(path=path, blob=context.store.put_bytes(data), size=len(data))


def _bill_before(store: Store, entry: Entry, layout: RelocatedTree) -> tuple[Component, ...]:
    """What the bill of an earlier relocation names, where it lies now; what was dropped is not in it any more."""
    assert entry.blob is not None  # noqa: S101 (only files are read)
    parts = read_bundled(store.read_blob(entry.blob), file=entry.path)
    placed = ((part, tuple(layout.moved[path] for path in part.paths if path in layout.moved)) for part in parts)
    return tuple(msgspec.structs.replace(part, paths=paths) for part, paths in placed if paths)


def _prove(
    context: ActionContext[RelocateParameters], entries: Mapping[str, Entry], trees: _Trees, links: LinkChanges
) -> tuple[str, ...]:
    """See that the new tree loads and names nothing of the build; returns libraries whose data names its folders.

    What stands in the data of a library (assertions, a configuration that it prints) can't be edited, and harms nobody.
    """
    context.progress("checking that everything loads")
    elfs = _read_elfs(context.store, entries.values())
    problems = [
        *loading_problems(elfs, trees.beside_elfs, outside={each.soname for each in links.outside}, opens=links.opens)
    ]
    roots = [
        str(context.store.root),
        *(entry for entry in links.cut if entry.startswith("/") and not _SYSTEM.match(entry)),
    ]
    named = () if context.parameters.bundled is not None else _TEXTS  # bundling leaves texts to the wheel's audit
    texts = (
        (path, context.store.read_blob(entry.blob).decode(errors="replace"))
        for path, entry in sorted(entries.items())
        if entry.blob is not None and path.endswith(named)
    )
    problems += build_path_problems(texts, roots)
    if problems:
        raise IntegrityError(*problems[:_SHOWN])
    pattern = re.compile(b"|".join(re.escape(os.fsencode(root)) for root in roots))
    return tuple(path for path in sorted(elfs) if _names(context.store, entries[path], pattern))


def _names(store: Store, entry: Entry, pattern: re.Pattern[bytes]) -> bool:
    assert entry.blob is not None  # noqa: S101 (ELF files are files)
    with map_file(store.blob_path(entry.blob)) as view:
        return pattern.search(view) is not None


def _say(context: ActionContext[RelocateParameters], layout: RelocatedTree, links: LinkChanges) -> None:
    for path, change in sorted(links.changes.items()):
        new = [f"SONAME {change.soname}"] if change.soname else []
        new += [f"{old} -> {name}" for old, name in change.replace_needed.items()]
        new += [f"no longer needs {name}" for name in change.remove_needed]
        new += [f"search path {':'.join(change.rpath) or 'removed'}"] if change.rpath is not None else []
        context.log.say(f"{path}: {', '.join(new)}")
    if links.grafts:
        context.log.say(taken_text(links.grafts))
        context.progress(taken_text(links.grafts))
    for graft in links.grafts:
        package = f" of {graft.library.package} {graft.library.version}" if graft.library.package else ""
        context.log.say(f"{graft.path}: copied from {graft.library.origin}{package}")
    for each in links.outside:
        context.log.say(f"{each.soname}: provided by {each.owner}, needed by {some_of(each.files, 1)}")
    if layout.shared:
        context.log.say(f"{len(layout.shared):,} files are shared with sibling trees")
    if layout.saved:
        context.log.say(f"removed copies of libraries under different names, saving {format_bytes(layout.saved)}")


def _facts(
    layout: RelocatedTree,
    links: LinkChanges,
    cmake: CMakeChanges | None,
    texts: Mapping[str, str],
    leaks: tuple[str, ...],
) -> RelocateFacts:
    return RelocateFacts(
        grafts=tuple(map(grafted_library, links.grafts)),
        outside=tuple((each.soname, each.owner) for each in links.outside),
        renamed=dict(sorted(layout.names.items())),
        saved=layout.saved,
        shared=len(layout.shared),
        search_paths={path: tuple(change.rpath) for path, change in links.changes.items() if change.rpath is not None},
        cut=tuple(links.cut),
        dropped={path: change.remove_needed for path, change in links.changes.items() if change.remove_needed},
        edited=tuple(sorted(texts)),
        cmake_left_out=tuple(cmake.left_out) if cmake is not None else (),
        build_paths=leaks,
    )
