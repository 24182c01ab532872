"""The plan of an SDK's packages, from its files, what their headers say, and its manifest."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from axletree.binary.elf.facts import ElfFacts
from axletree.core.errors import IntegrityError, Problem
from axletree.core.grouping import grouped
from axletree.package.sdk.closure import Folder, FolderClosure, close
from axletree.package.sdk.describe import environment, first_place, list_commands, list_libraries, preload_order
from axletree.package.sdk.devel import list_devel, place_changes
from axletree.package.sdk.devices import Split, folder_of, split_devices
from axletree.package.sdk.entries import GENERIC, SdkEntry
from axletree.package.sdk.links import SdkTree, folders_of
from axletree.package.sdk.payload import LibraryPlaces, Payload, lay_out_payloads
from axletree.package.sdk.plan import DevelItem, PackagePlan, PlatformFile, SdkPlan
from axletree.package.sdk.shipped import PackageFile, SdkFile, SdkPackage
from axletree.package.sdk.targets import Selection

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from axletree.package.sdk.manifest import Manifest, Package


class Known(msgspec.Struct, frozen=True, kw_only=True):
    """What was read of an SDK."""

    entries: tuple[SdkEntry, ...]
    owned: dict[str, tuple[SdkEntry, ...]]
    """Package -> what it owns."""
    facts: dict[str, ElfFacts]
    """Where its content lies -> facts of each ELF file, without its GPU code."""
    code: dict[str, tuple[str, ...]] = {}
    """Where its content lies -> architectures of the GPU code in a file, where there is any."""
    selection: Selection
    """Which packages for GPUs there are."""
    promised: frozenset[str] = frozenset()
    """SONAMEs that every host of the platform has."""


def plan_sdk(manifest: Manifest, known: Known, *, version: str) -> SdkPlan:
    """Plan all packages but the selector.

    Raises:
        IntegrityError: links that lead nowhere, libraries that nobody brings, two files for one place, in all packages.
    """
    return _Planner(manifest, known, version).plan()


class _Planner:
    def __init__(self, manifest: Manifest, known: Known, version: str) -> None:
        self.manifest = manifest
        self.known = known
        self.version = version
        self.by_target = _grouped(known.entries)
        self.owned_by_target = {name: _grouped(entries) for name, entries in known.owned.items()}
        self.generic = self.by_target.get(GENERIC, ())
        self.tree = SdkTree(self.generic)
        opened = (soname for sonames in manifest.libraries.opens.values() for soname in sonames)
        self.asked = {soname for facts in known.facts.values() for soname in facts.needed}.union(opened)
        self.libraries = LibraryPlaces(self.tree, known.facts, self.asked)
        self.packages = {package.name: package for package in manifest.package}
        # one manifest serves many inputs: a package of which this one has nothing is not made
        self.runtime = [
            package for package in manifest.package if package.kind != "devel" and known.owned[package.name]
        ]
        self.folders = {package.name: folder_of(package.dist) for package in manifest.package}
        self.problems: list[Problem] = []
        self.commands: set[str] = set()

    def plan(self) -> SdkPlan:
        payloads = lay_out_payloads(
            {package.name: self.owned(package.name, GENERIC) for package in self.runtime},
            self.folders,
            self.tree,
            self.known.facts,
            self.libraries,
        )
        targeted = self.targeted()
        splits = {
            package.name: self.split(package, payloads[package.name], targeted[package.name])
            for package in self.runtime
        }
        folders = [folder for package in self.runtime for folder in self.elf_folders(package, splits[package.name])]
        closures = {folder.name: self.close(folder, folders) for folder in folders}
        packages = [
            plan for package in self.runtime for plan in self.plans(package, splits[package.name], folders, closures)
        ]
        devel, about = self.devel(payloads, splits)
        if self.problems:
            raise IntegrityError(*self.problems)
        noted = (*(payload.notes for payload in payloads.values()), *(split.notes for split in splits.values()))
        notes = tuple(note for each in noted for note in each)
        return SdkPlan(
            packages=tuple(packages),
            devel=devel,
            devel_package=about,
            devel_requires=tuple(
                each
                for package in self.packages.values()
                if package.kind == "devel"
                for each in self.requirements(package)
            ),
            notes=notes,
        )

    def owned(self, package: str, target: str) -> tuple[SdkEntry, ...]:
        return self.owned_by_target[package].get(target, ())

    def targeted(self) -> dict[str, tuple[PlatformFile, ...]]:
        """Package -> what artifacts for single targets or families bring; their paths may be the same."""
        found: dict[str, tuple[PlatformFile, ...]] = {package.name: () for package in self.runtime}
        for target in sorted(self.by_target.keys() - {GENERIC}):
            owned = {package.name: self.owned(package.name, target) for package in self.runtime}
            tree = SdkTree([*self.generic, *self.by_target[target]])
            libraries = LibraryPlaces(tree, self.known.facts, self.asked)
            for name, payload in lay_out_payloads(owned, self.folders, tree, self.known.facts, libraries).items():
                found[name] += payload.items
        return found

    def split(self, package: Package, payload: Payload, targeted: Sequence[PlatformFile]) -> Split:
        if package.kind == "libraries":
            items = (*payload.items, *targeted)
            return split_devices(package, items, self.known.code, self.known.selection, asked=self.asked)
        if targeted:
            message = f"the file is for {targeted[0].entry.target} only, but package {package.name} is for all GPUs"
            hint = f"claim the file in a package of kind libraries, or change the kind of {package.name}"
            self.problems.append(Problem(file=targeted[0].entry.path, message=message, hint=hint))
        return Split(neutral=payload.items, devices=())

    def elf_folders(self, package: Package, split: Split) -> Iterator[Folder]:
        yield Folder(package=package.name, name=self.folders[package.name], files=self.elf_files(split.neutral))
        for device in split.devices:
            yield Folder(package=package.name, name=device.folder, files=self.elf_files(device.items), device=True)

    def elf_files(self, items: Sequence[PlatformFile]) -> dict[str, ElfFacts]:
        return {
            item.path: self.known.facts[item.entry.source]
            for item in items
            if item.role == "file" and item.entry.source in self.known.facts
        }

    def close(self, folder: Folder, folders: Sequence[Folder]) -> FolderClosure:
        wanted = {folder.package, *self.required(folder.package)}
        beside = [
            each
            for each in folders
            if each.name != folder.name
            and each.package in wanted
            # of the packages for GPUs one is loaded, so none may rely on another
            and not (folder.device and each.device and each.package == folder.package)
        ]
        others = [each for each in folders if each not in beside and each.name != folder.name]
        closure = close(folder, beside, others, self.manifest, promised=self.known.promised)
        self.problems += closure.problems
        return closure

    def required(self, name: str) -> list[str]:
        """All packages that one requires, near ones first; each once."""
        found: list[str] = []
        waiting = [*self.packages[name].requires]
        while waiting:
            each = waiting.pop(0)
            if each not in found:
                found.append(each)
                waiting += self.packages[each].requires
        return found

    def requirements(self, package: Package) -> Iterator[str]:
        """Distributions that a package requires, of those that are made."""
        made = {each.name for each in self.runtime}
        return (self.packages[name].dist for name in package.requires if name in made)

    def plans(
        self, package: Package, split: Split, folders: Sequence[Folder], closures: Mapping[str, FolderClosure]
    ) -> Iterator[PackagePlan]:
        requires = tuple(self.requirements(package))
        files = {folder.name: folder.files for folder in folders}
        name = self.folders[package.name]
        commands = list_commands(
            [item.path for item in split.neutral if item.role == "launcher" or item.entry.executable],
            self.manifest,
            taken=self.commands,
        )
        self.commands |= {command.name for command in commands}
        about = PackageFile(
            sdk=self.manifest.sdk.name,
            package=package.name,
            kind=package.kind,
            dist=package.dist,
            version=self.version,
            folder=name,
            libraries=list_libraries(files[name], closures[name].needs, self.manifest),
            commands=commands,
            system=closures[name].system,
        )
        yield PackagePlan(
            shipped=about,
            items=_changed(split.neutral, closures[name]),
            requires=requires,
            extra=package.extra,
            summary=package.summary,
        )
        for device in split.devices:
            closure = closures[device.folder]
            shipped = msgspec.structs.replace(
                about,
                kind="device",
                dist=device.dist,
                folder=device.folder,
                targets=device.targets,
                libraries=list_libraries(files[device.folder], closure.needs, self.manifest),
                commands=(),
                system=closure.system,
            )
            yield PackagePlan(
                shipped=shipped,
                items=_changed(device.items, closure),
                requires=(package.dist, *requires),
                extra=device.extra,
                summary=f"{package.summary} for {', '.join(device.targets)}".strip(),
            )

    def devel(
        self, payloads: Mapping[str, Payload], splits: Mapping[str, Split]
    ) -> tuple[tuple[DevelItem, ...], PackageFile | None]:
        package = next((each for each in self.manifest.package if each.kind == "devel"), None)
        if package is None:
            return (), None
        # with what artifacts bring for GPUs without a package, which is for all
        payloads = {
            name: msgspec.structs.replace(payload, items=tuple(dict.fromkeys((*payload.items, *splits[name].neutral))))
            for name, payload in payloads.items()
        }
        mirrored = {
            self.folders[each.name]: (_first_of_each_path(self.known.owned[each.name]), payloads[each.name])
            for each in self.runtime
            if each.kind != "tests"
        }
        devices = {item.path for split in splits.values() for device in split.devices for item in device.items}
        root = self.folders[package.name]
        added = _first_of_each_path(self.known.owned.get(package.name, ()))
        tree = SdkTree(_first_of_each_path(self.known.entries))
        libraries = LibraryPlaces(tree, self.known.facts, self.asked)
        items = list_devel(added, mirrored, devices, tree, libraries, root=root)
        files = {
            item.path: self.known.facts[item.entry.source]
            for item in items
            if item.entry is not None and item.entry.source in self.known.facts
        }
        mirror = {
            path: facts
            for payload in payloads.values()
            for path, facts in self.elf_files(payload.items).items()
            if path not in files
        }
        folder = Folder(package=package.name, name=root, files=files)
        closure = close(
            folder,
            [msgspec.structs.replace(folder, files=mirror)],
            (),
            self.manifest,
            promised=self.known.promised,
        )
        self.problems += closure.problems
        about = PackageFile(
            sdk=self.manifest.sdk.name,
            package=package.name,
            kind="devel",
            dist=package.dist,
            version=self.version,
            folder=root,
            libraries=list_libraries(files, closure.needs, self.manifest),
            commands=list_commands(
                [item.path for item in items if item.executable], self.manifest, taken=self.commands
            ),
            system=closure.system,
            links=self.manifest.devel.links,
        )
        return place_changes(items, closure.changes), about


def describe_sdk(manifest: Manifest, known: Known, plan: SdkPlan, *, version: str) -> SdkFile:
    """What the selector says of the SDK."""
    packages = [
        SdkPackage(
            package=each.shipped.package,
            kind=each.shipped.kind,
            dist=each.shipped.dist,
            folder=each.shipped.folder,
            extra=each.extra,
            targets=each.shipped.targets,
            shortnames=tuple(library.shortname for library in each.shipped.libraries),
        )
        for each in plan.packages
    ]
    if plan.devel_package is not None:
        shipped = plan.devel_package
        packages.append(
            SdkPackage(
                package=shipped.package,
                kind="devel",
                dist=shipped.dist,
                folder=shipped.folder,
                extra=next(package.extra for package in manifest.package if package.kind == "devel"),
                shortnames=tuple(library.shortname for library in shipped.libraries),
            )
        )
    about = manifest.sdk
    present = _present(known.entries)
    libraries = {library.soname: library for each in plan.packages for library in each.shipped.libraries}
    return SdkFile(
        sdk=about.name,
        dist=about.name,
        module=about.module,
        command=about.command,
        prefix=about.prefix,
        version=version,
        packages=tuple(packages),
        maker=manifest.targets.maker,
        default_family=known.selection.default,
        families=known.selection.choices,
        hierarchy=known.selection.hierarchy,
        preload_order=preload_order(libraries.values()),
        environment=environment(manifest, present),
        bin=first_place(about.bin, present) or "bin",
        cmake=first_place(about.cmake, present) or "lib/cmake",
        root_package=about.root_package,
        cmake_package=about.cmake_package,
        cmake_targets=about.cmake_targets,
        cmake_program=about.cmake_program,
        cmake_compiler=first_place(about.cmake_compiler, present) or "",
    )


def _grouped(entries: Iterable[SdkEntry]) -> dict[str, tuple[SdkEntry, ...]]:
    """Target -> what is for it."""
    found = grouped((entry.target, entry) for entry in entries)
    return {target: tuple(group) for target, group in found.items()}


def _first_of_each_path(entries: Sequence[SdkEntry]) -> tuple[SdkEntry, ...]:
    """What artifacts of several targets bring under one path, such as headers, is in the devel package once."""
    found: dict[str, SdkEntry] = {}
    for entry in sorted(entries, key=lambda entry: (entry.target != GENERIC, entry.target)):
        found.setdefault(entry.path, entry)
    return tuple(found[path] for path in sorted(found))


def _changed(items: Sequence[PlatformFile], closure: FolderClosure) -> tuple[PlatformFile, ...]:
    return tuple(
        msgspec.structs.replace(item, change=closure.changes[item.path])
        if item.role == "file" and item.path in closure.changes
        else item
        for item in items
    )


def _present(entries: Sequence[SdkEntry]) -> Collection[str]:
    paths = {entry.path for entry in entries}
    return paths | folders_of(paths)
