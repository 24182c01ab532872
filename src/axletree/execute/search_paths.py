"""Take what leads into the build out of the search paths of files that are packed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from axletree.binary.elf.edit import ElfChange
from axletree.core.trees import make_tree
from axletree.core.units import some_of
from axletree.execute.packing import elf_facts
from axletree.host.edit import edit_elf
from axletree.package.libraries.build_paths import build_paths

if TYPE_CHECKING:
    from collections.abc import Callable

    from axletree.core.trees import Entry
    from axletree.execute.context import ActionContext
    from axletree.execute.packing import PackageContent
    from axletree.plan.actions.pack import WheelParameters


def without_build_paths(
    context: ActionContext[WheelParameters],
    content: PackageContent,
    moved: Callable[[str, str], str | None] = lambda _path, _entry: None,
) -> PackageContent:
    """A package's part of a tree whose files search neither the interpreter of the build nor the store.

    Other absolute entries stay, for the audit to report. ``moved`` says what an entry of a file becomes, if there is
    the same folder where the package is installed.
    """
    cut: dict[str, tuple[str, ...]] = {}
    changes: dict[str, ElfChange] = {}
    for path, facts in elf_facts(context.store, content.entries, {path: path for path in content.paths}).items():
        entries = facts.runpath or facts.rpath  # the loader ignores DT_RPATH where there is a DT_RUNPATH
        if found := build_paths(entries, context.parameters.interpreters):
            cut[path] = found
            now = [moved(path, entry) if entry in found else entry for entry in entries]
            kept = tuple(dict.fromkeys(entry for entry in now if entry is not None))
            changes[path] = ElfChange(rpath=kept, kind="runpath" if facts.runpath else "rpath")
    if not changes:
        return content
    folders = list(dict.fromkeys(entry for found in cut.values() for entry in found))
    context.log.say(f"search paths of the build removed from {some_of(list(cut))}: {', '.join(folders)}")
    return msgspec.structs.replace(content, entries={**content.entries, **_edited(context, content, changes)})


def _edited(
    context: ActionContext[WheelParameters], content: PackageContent, changes: dict[str, ElfChange]
) -> dict[str, Entry]:
    folder = context.work / "edited"
    context.store.materialise(context.store.put_tree(make_tree(content.entries[path] for path in changes)), folder)
    edited: dict[str, Entry] = {}
    for path, change in changes.items():
        edit_elf(folder / path, change)
        blob, size = context.store.put_file(folder / path, adopt=True)
        edited[path] = msgspec.structs.replace(content.entries[path], blob=blob, size=size)
    return edited
