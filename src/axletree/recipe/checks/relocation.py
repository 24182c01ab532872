"""The table ``relocate``, and the stage that it stands in."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from axletree.core.globs import glob_fault
from axletree.core.trees import is_safe_path
from axletree.recipe.checks.axes import twice
from axletree.recipe.faults import Fault, glob_faults

if TYPE_CHECKING:
    from collections.abc import Iterator

    from axletree.recipe.faults import Path
    from axletree.recipe.model import Recipe, Stage
    from axletree.recipe.relocation import RelocateTable

_UNUSED = ("commands", "config", "env", "environment", "pass_env", "source_from", "tools", "workspace")
"""Keys of a stage that say how programs run: a relocation runs none."""
_LIBRARY = re.compile(r"lib[A-Za-z0-9_+]\S*")
_FOLDER = 'use relative paths without leading or trailing slashes: "torch/lib" = "libtorch/lib"'


def relocation_faults(recipe: Recipe) -> Iterator[Fault]:
    """All faults of relocations."""
    for name, stage in recipe.stages.items():
        path: Path = ("stages", name)
        needs: tuple[Path, ...] = ((*path, "action"),)
        if stage.action != "relocate":
            if stage.relocate is not None:
                message = f"relocate is only for relocate stages; the action of this stage is {stage.action!r}"
                yield Fault(path=(*path, "relocate"), message=message, needs=needs)
            continue
        yield from _stage_faults(stage, path, needs)
        if stage.relocate is not None:
            yield from _table_faults(stage.relocate, (*path, "relocate"))


def _stage_faults(stage: Stage, path: Path, needs: tuple[Path, ...]) -> Iterator[Fault]:
    if not stage.inputs:
        hint = "the first input is the tree to relocate; the others are trees installed next to it"
        yield Fault(path=(*path, "inputs"), message="a relocate stage needs inputs", hint=hint, needs=needs)
    if stage.relocate is None:
        message = f"a relocate stage needs its table, [{'.'.join(map(str, path))}.relocate]"
        yield Fault(path=(*path, "relocate"), message=message, needs=needs)
    for key in _UNUSED:
        if getattr(stage, key):
            shown = key.replace("_", "-")
            yield Fault(
                path=(*path, shown),
                message=f"a relocate stage does not run programs, so it cannot set {shown}",
                needs=needs,
            )


def _table_faults(table: RelocateTable, path: Path) -> Iterator[Fault]:
    for folder in table.place:
        if folder != "." and not is_safe_path(folder):
            yield Fault(path=(*path, "place", folder), message="the folder is not a relative path", hint=_FOLDER)
    for folder in table.link:
        if not is_safe_path(folder):
            yield Fault(path=(*path, "link", folder), message="the folder is not a relative path", hint=_FOLDER)
    for key in ("drop", "single"):
        patterns: tuple[str, ...] = getattr(table, key)
        yield from twice(patterns, (*path, key), "pattern")
        yield from glob_faults(patterns, (*path, key))
    if table.names != "plain" and not table.single:
        yield Fault(path=(*path, "names"), message="`names` has no effect without `single`")
    if table.private and not table.cmake:
        yield Fault(
            path=(*path, "private"),
            message="`private` needs cmake = true",
            hint="set cmake = true, or remove `private`",
        )
    yield from _graft_faults(table, path)
    for pattern, libraries in table.drop_needed.items():
        fault = glob_fault(pattern)
        if fault is not None:
            yield Fault(path=(*path, "drop-needed", pattern), message=f"{pattern!r} {fault}")
        yield from twice(libraries, (*path, "drop-needed", pattern), "pattern")
        yield from _broad_faults(libraries, (*path, "drop-needed", pattern))
    yield from _elsewhere_faults(table, path)
    yield from _opens_faults(table, path)
    for number, edit in enumerate(table.edits):
        at = (*path, "edits", number)
        if not is_safe_path(edit.file):
            yield Fault(path=(*at, "file"), message=f"{edit.file!r} is not a relative path")
        if not edit.find:
            yield Fault(path=(*at, "find"), message="the text to find is empty")
        elif edit.find == edit.replace:
            yield Fault(path=(*at, "replace"), message="the replacement is the same as `find`")


def _graft_faults(table: RelocateTable, path: Path) -> Iterator[Fault]:
    yield from twice(table.graft, (*path, "graft"), "pattern")
    yield from _broad_faults(table.graft, (*path, "graft"))
    if table.graft and table.graft_to is None:
        yield Fault(path=(*path, "graft-to"), message="`graft` needs `graft-to`, the folder to copy libraries into")
    for key in ("graft_to", "graft_from"):
        if getattr(table, key) and not (table.graft or (key == "graft_from" and table.drop_needed)):
            shown = key.replace("_", "-")
            yield Fault(path=(*path, shown), message=f"`{shown}` has no effect without `graft`")


def _elsewhere_faults(table: RelocateTable, path: Path) -> Iterator[Fault]:
    for folder, patterns in table.elsewhere.items():
        at: Path = (*path, "elsewhere", folder)
        if folder != "." and not is_safe_path(folder):
            hint = "use a path relative to the root of the new tree, such as lib"
            yield Fault(path=at, message="the folder is not a relative path", hint=hint)
        yield from twice(patterns, at, "pattern")
        yield from _broad_faults(patterns, at)


def _broad_faults(patterns: tuple[str, ...], path: Path) -> Iterator[Fault]:
    for number, pattern in enumerate(patterns):
        if not _LIBRARY.fullmatch(pattern):
            message = f"{pattern!r} must start with 'lib' and the first letter of the library name"
            yield Fault(path=(*path, number), message=message, hint="use a pattern such as 'libfmt.so*'")


def _opens_faults(table: RelocateTable, path: Path) -> Iterator[Fault]:
    for user, names in table.opens.items():
        if not is_safe_path(user):
            yield Fault(path=(*path, "opens", user), message="the key is neither a file name nor a relative path")
        for number, name in enumerate(names):
            if not name or "/" in name:
                hint = "write the name passed to dlopen; a library opened by path needs no search path"
                yield Fault(
                    path=(*path, "opens", user, number),
                    message=f"{name!r} is not a library name (expected one such as libfoo.so.1)",
                    hint=hint,
                )


def absolute_message(text: str) -> str | None:
    """What is wrong with an absolute folder."""
    if text.startswith("/") and is_safe_path(text[1:]):
        return None
    return f"{text!r} must be an absolute path, such as '/opt/magma/lib'"
