"""What the ELF files of a tree need, who brings it, and what changes in them: names, search paths, libraries taken in.

A needed library is, in this order: of the tree itself, of a sibling tree, promised by the platform, a driver's or the
interpreter's, listed to be grafted, or of a distribution that is known to bring it. What is none of these is an error;
where a package is bundled, it is taken in, and so is what a distribution brings that the package does not require.
"""

from __future__ import annotations

import posixpath
import re
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Literal

import msgspec
from msgspec.structs import replace

from axletree.binary.elf.edit import ElfChange
from axletree.core.errors import IntegrityError, Problem
from axletree.package.libraries.graft import OPENMP, Graft, framework_of, hashed_name, owner_of
from axletree.package.libraries.linkage import is_loader, library_paths, search_path
from axletree.package.libraries.providers import Provider, find_providers
from axletree.package.libraries.relocate import opened_names, plan_search_paths
from axletree.package.relocation.layout import unversioned

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from axletree.binary.elf.facts import ElfFacts
    from axletree.package.libraries.graft import Find, GraftCandidate
    from axletree.package.relocation.layout import RelocatedTree
    from axletree.recipe.relocation import Relocate

_HASHED = re.compile(r"(.+)-[0-9a-f]{8}(\.so.*)")

OutsideKind = Literal["system", "driver", "host", "distribution", "python"]


class Outside(msgspec.Struct, frozen=True, kw_only=True):
    """A needed library that stays outside of all trees."""

    soname: str
    owner: str
    """``platform``, ``Python``, a driver, a distribution."""
    kind: OutsideKind
    files: tuple[str, ...]
    """The files that need it, sorted."""


class LinkChanges(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that changes in the ELF files of a tree."""

    changes: dict[str, ElfChange]
    """Path now, also of grafts -> what changes in it."""
    grafts: tuple[Graft, ...]
    outside: tuple[Outside, ...]
    opens: dict[str, tuple[str, ...]]
    """Path now -> libraries of the trees that the file opens by name."""
    inside: tuple[str, ...]
    """SONAMEs, as they were, of libraries that the trees bring under another name, sorted."""
    cut: tuple[str, ...]
    """Absolute and working-directory entries of search paths that go, sorted."""


def without(facts: ElfFacts, sonames: Collection[str]) -> ElfFacts:
    """The facts of a file that does not need some libraries."""
    return replace(facts, needed=tuple(soname for soname in facts.needed if soname not in sonames))


def without_needs(links: LinkChanges, dropped: Mapping[str, tuple[str, ...]]) -> LinkChanges:
    """The changes again, with libraries that files need no longer; they were planned without these.

    Args:
        links: the changes.
        dropped: path now -> SONAMEs.
    """
    removed = {path: replace(links.changes.get(path, ElfChange()), remove_needed=dropped[path]) for path in dropped}
    return replace(links, changes={**links.changes, **removed})


def plan_links(
    elfs: Mapping[str, ElfFacts],
    layout: RelocatedTree,
    rules: Relocate,
    *,
    siblings: Mapping[str, ElfFacts],
    system: Collection[str],
    providers: Sequence[Provider],
    find: Find,
    searched: Sequence[str],
    required: frozenset[str] | None = None,
) -> LinkChanges:
    """Plan the changes of a tree's ELF files.

    Args:
        elfs: path now -> facts as they are before.
        layout: where files went and which names changed.
        rules: what may be grafted, and what files open at run time.
        siblings: path -> facts, of the trees that it is installed beside.
        system: SONAMEs that the platform promises.
        providers: who brings which libraries.
        find: looks for a library on this machine.
        searched: where it looks, for messages.
        required: for a package that is bundled, what it requires, as ``required_names`` gives it. Everything is then
            taken in that nobody brings, listed or not, and what files search inside of the tree stays.

    Raises:
        IntegrityError: a library that is needed and can't be had, a name that can't be kept. Names all, each with who
            needs it and where it was looked for.
    """
    return _Linker(elfs, layout, rules, siblings, system, providers, find, searched, required).plan()


class _Linker:
    def __init__(
        self,
        elfs: Mapping[str, ElfFacts],
        layout: RelocatedTree,
        rules: Relocate,
        siblings: Mapping[str, ElfFacts],
        system: Collection[str],
        providers: Sequence[Provider],
        find: Find,
        searched: Sequence[str],
        required: frozenset[str] | None,
    ) -> None:
        self.elfs = {path: facts for path, facts in sorted(elfs.items()) if facts.architecture and facts.dynamic}
        self.layout = layout
        self.rules = rules
        self.siblings = siblings
        self.providers = providers
        self.find = find
        self.searched = searched
        self.required = required
        self.framework = framework_of(self.elfs, providers)
        renamed = {path: replace(facts, soname=layout.sonames.get(path)) for path, facts in self.elfs.items()}
        self.own = {**library_paths(renamed), **{posixpath.basename(path): path for path in layout.sonames}}
        self.own = {name: path for name, path in self.own.items() if name not in layout.names}
        self.beside = library_paths(siblings)
        self.held = {
            f"{found[1]}{found[2]}": posixpath.basename(path)
            for path, facts in siblings.items()
            if (found := _HASHED.fullmatch(posixpath.basename(path))) and facts.soname == posixpath.basename(path)
        }
        self.before: dict[str, list[str]] = {}  # path now -> names before
        for old, new in layout.moved.items():
            self.before.setdefault(new, []).append(old)
        self.system = frozenset(system) - self.own.keys()
        self.taken: dict[str, GraftCandidate] = {}
        self.outside: dict[str, tuple[str, OutsideKind]] = {}
        self.users: dict[str, set[str]] = {}
        self.unlisted: dict[str, str] = {}  # SONAME -> the first file that needs it
        self.problems: list[Problem] = []

    def plan(self) -> LinkChanges:
        waiting = list(self.elfs.items())
        renames: dict[str, dict[str, str]] = {}
        while waiting:
            path, facts = waiting.pop(0)
            renames[path] = {}
            for soname in dict.fromkeys(facts.needed):
                before = len(self.taken)
                name = self.resolve(soname, path, facts)
                if name != soname:
                    renames[path][soname] = name
                if len(self.taken) > before:
                    waiting.append((self.graft_path(soname), self.taken[soname].facts))
        self.problems += [*self.refused(), *self.unopenable()]
        if self.problems:
            raise IntegrityError(*self.problems)
        grafts = {
            soname: Graft(library=library, path=self.graft_path(soname))
            for soname, library in sorted(self.taken.items())
        }
        opens = self.opens([*self.elfs, *(graft.path for graft in grafts.values())])
        return LinkChanges(
            changes=dict(self.changes(renames, grafts, opens)),
            grafts=tuple(grafts.values()),
            outside=tuple(
                Outside(soname=soname, owner=owner, kind=kind, files=tuple(sorted(self.users[soname])))
                for soname, (owner, kind) in sorted(self.outside.items())
            ),
            opens=opens,
            inside=tuple(sorted({*self.taken, *self.held})),
            cut=tuple(sorted({entry for facts in self.elfs.values() for entry in _strange_entries(facts)})),
        )

    def resolve(self, soname: str, path: str, facts: ElfFacts) -> str:
        """The name that a needed library has from now on; who brings it is noted."""
        if is_loader(soname):
            return soname
        # A library without a SONAME is needed by the path that the linker was given.
        base = posixpath.basename(soname)
        name = self.layout.names.get(base, base)
        if name in self.own or name in self.beside:
            return name
        plain = unversioned(soname) if self.rules.single else None
        if plain is not None and plain in self.beside and self.siblings[self.beside[plain]].soname == plain:
            return plain
        if soname in self.held:
            return self.held[soname]
        self.users.setdefault(soname, set()).add(path)
        if soname in self.taken:
            return posixpath.basename(self.graft_path(soname))
        if soname in self.outside or self.stays_outside(soname):
            return soname
        return self.taken_in(soname, path, facts)

    def stays_outside(self, soname: str) -> bool:
        found = find_providers(self.providers, soname)
        if self.folder_elsewhere(soname) is not None:
            self.outside[soname] = ("another package", "distribution")
        elif soname in self.system:
            self.outside[soname] = ("platform", "system")
        elif re.match(r"libpython\d", soname):
            self.outside[soname] = ("Python", "python")
        elif self.required is not None:
            if owner := owner_of(soname, self.providers, self.required, self.framework):
                kind: OutsideKind = next((each.kind for each in found if each.name == owner[0]), "host")
                self.outside[soname] = (owner[0], kind)
        elif fixed := next((each for each in found if self.fixed(each, soname)), None):
            self.outside[soname] = (fixed.name, "driver" if fixed.kind == "driver" else "host")
        elif found and not self.listed(soname):
            self.outside[soname] = (found[0].name, "distribution")
        return soname in self.outside

    def fixed(self, provider: Provider, soname: str) -> bool:
        """Whether a library is left to a provider, listed or not: that of a desktop can be taken in."""
        if provider.kind == "host" and not provider.exclusive:
            return not self.listed(soname)
        return provider.kind != "distribution"

    def folder_elsewhere(self, soname: str) -> str | None:
        """The folder that another package puts a library into, by the rules."""
        listed = self.rules.elsewhere.items()
        return next((f for f, patterns in listed if any(fnmatchcase(soname, pattern) for pattern in patterns)), None)

    def taken_in(self, soname: str, path: str, facts: ElfFacts) -> str:
        library = self.find(soname, facts)
        if library is None:
            entries = [each.text for each in search_path(path, facts)]
            beside = " nor in sibling trees" if self.siblings else ""
            message = f"this library is needed, but it is neither in the tree{beside} nor on this machine"
            way = (
                "add the library's folder to `graft-from`"
                if self.required is None
                else "install the library, or name its provider"
            )
            hint = f"searched {', '.join([*entries, *self.searched])}; {way}"
            self.problems.append(Problem(file=path, key=soname, message=message, hint=hint))
            self.outside[soname] = ("nobody", "host")  # said once is enough
            return soname
        if self.required is None and not self.listed(soname):
            self.unlisted[soname] = path
        self.taken[soname] = library
        return posixpath.basename(self.graft_path(soname))

    def refused(self) -> Iterator[Problem]:
        """Libraries that would have to be taken in, and are not listed: all of them, with what they need in turn."""
        bases = sorted({unversioned(soname) or soname for soname in self.unlisted})
        listed = ", ".join(f'"{each}"' for each in (*self.rules.graft, *(f"{base}*" for base in bases)))
        for number, (soname, path) in enumerate(self.unlisted.items(), start=1):
            library = self.taken[soname]
            whose = f"{library.package} {library.version}, {library.origin}" if library.package else library.origin
            hint = (
                f"to copy these libraries into the tree, set graft = [{listed}]; if other packages provide them, "
                "use `elsewhere`"
                if number == len(self.unlisted)
                else None
            )
            message = f"this library is needed, but found only on this machine: {whose}"
            user = path if path in self.elfs else next(name for name in self.taken if self.graft_path(name) == path)
            yield Problem(file=user, key=soname, message=message, hint=hint)

    def listed(self, soname: str) -> bool:
        return any(fnmatchcase(soname, pattern) for pattern in self.rules.graft)

    def graft_path(self, soname: str) -> str:
        """OpenMP runtimes keep their names: whoever else needs one then finds that it is loaded."""
        name = soname if OPENMP.fullmatch(soname) else hashed_name(soname, self.taken[soname].sha256)
        return posixpath.join(self.rules.graft_to or "", name)

    def unopenable(self) -> Iterator[Problem]:
        """Libraries that are opened by a name that is given up: code can't be edited as a table of names can."""
        for path, facts in self.elfs.items():
            for name in self.opened(path, facts):
                kept = self.layout.names.get(name)
                if kept is not None:
                    message = f"the file opens {name} by name, but only {kept} is kept"
                    yield Problem(file=path, message=message, hint="remove the library from `single`")

    def opened(self, path: str, facts: ElfFacts) -> Iterator[str]:
        """What a file opens, by what is declared for its path before or now, its SONAME before or now, its name."""
        before = self.before.get(path, ())
        named = [key for key in (*before, *map(posixpath.basename, before)) if key in self.rules.opens]
        found = [name for key in named for name in self.rules.opens[key]]
        yield from dict.fromkeys([*found, *opened_names(path, facts, self.rules.opens)])

    def opens(self, present: Iterable[str]) -> dict[str, tuple[str, ...]]:
        """What files open, of what is there: one list may serve the trees of several variants."""
        names = {*self.own, *self.beside, *map(posixpath.basename, present)}
        found = {path: [*self.opened(path, facts)] for path, facts in self.elfs.items()}
        return {
            path: kept for path, listed in found.items() if (kept := tuple(name for name in listed if name in names))
        }

    def others(self) -> tuple[Provider, ...]:
        """Libraries that other packages bring, each with its folder."""
        found = {soname: self.folder_elsewhere(soname) for soname in self.outside}
        return tuple(
            Provider(name=soname, sonames=(soname,), folders=(posixpath.normpath(folder),))
            for soname, folder in found.items()
            if folder is not None
        )

    def changes(
        self,
        renames: Mapping[str, Mapping[str, str]],
        grafts: Mapping[str, Graft],
        opens: Mapping[str, tuple[str, ...]],
    ) -> Iterator[tuple[str, ElfChange]]:
        real = {**self.elfs, **{graft.path: graft.library.facts for graft in grafts.values()}}
        new = {
            path: replace(
                facts,
                needed=tuple(renames[path].get(soname, soname) for soname in facts.needed),
                rpath=self.kept_entries(path, facts),
                runpath=(),
                soname=self.layout.sonames.get(path, facts.soname),
            )
            for path, facts in real.items()
        }
        relocation = plan_search_paths(
            new,
            unread=self.siblings,
            providers=(*self.others(), *self.providers),
            present={posixpath.join(provider.folders[0], provider.name) for provider in self.others()},
            dlopens=opens,
            system={soname for soname, (_, kind) in self.outside.items() if kind != "distribution"},
        )
        paths = {plan.path: plan.entries for plan in relocation.plans}
        by_path = {graft.path: graft for graft in grafts.values()}
        for path, facts in real.items():
            soname = by_path[path].name if path in by_path else self.layout.sonames.get(path)
            change = ElfChange(
                rpath=paths[path] if paths[path] != facts.rpath or facts.runpath else None,
                soname=soname if soname != facts.soname else None,
                replace_needed=dict(renames[path]),
            )
            if change != ElfChange():
                yield path, change

    def kept_entries(self, path: str, facts: ElfFacts) -> tuple[str, ...]:
        """What a file goes on to search: bundling knows nothing of what it opens at run time."""
        if self.required is None or path not in self.elfs:
            return ()
        return tuple(entry.text for entry in search_path(path, facts) if entry.kind == "origin")


def _strange_entries(facts: ElfFacts) -> Iterable[str]:
    """Entries of a search path that mean something on the build machine only."""
    return (entry.text for entry in search_path("", facts) if entry.kind != "origin")
