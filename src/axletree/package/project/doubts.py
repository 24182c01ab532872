"""What a build does in silence that its author knows and whoever packages it would not want."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from axletree.core.units import some_of
from axletree.package.project.code import called, variable_asked, variables_read
from axletree.package.project.model import Found
from axletree.package.project.setup_script import SCRIPT
from axletree.package.project.tree import is_aside, line_at

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from axletree.package.project.cmake import CMakeUse
    from axletree.package.project.setup_script import SetupScript
    from axletree.package.project.tree import SourceTree

_NATIVE = re.compile(r"-m(?:arch|cpu)=native\b")


def doubts_of(tree: SourceTree, script: SetupScript, cmake: CMakeUse, downloads: Sequence[Found]) -> Iterator[str]:
    """Sentences about what to check before the wheel is given to others.

    Args:
        tree: The project.
        script: Its setup.py.
        cmake: What its CMake files do.
        downloads: What they may download.
    """
    if (native := cmake.native or _native(tree)) is not None:
        switch = _switch(script, tree.text(native.file))
        yield f"{native.place} has {native.value}: a wheel built with it may crash on other CPUs{switch}"
    if (gate := _gate(script)) is not None:
        variable, line, value = gate
        yield (
            f"nothing is compiled unless {variable} is set ({SCRIPT}:{line}): "
            f'to compile the extension modules, add env = {{ {variable} = "{value}" }} to stages.build'
        )
    if downloads:
        places = some_of([f"{each.value} ({each.place})" for each in downloads], 3)
        yield f"the build downloads {places} unless this host has them, but stages have no network"


def _native(tree: SourceTree) -> Found | None:
    for path, text in tree.texts.items():
        read = path.rpartition("/")[2] == "meson.build" or ("/" not in path and path.endswith(".py"))
        if read and not is_aside(path) and (match := _NATIVE.search(text)) is not None:
            return Found(value=match[0], file=path, line=line_at(text, match.start()))
    return None


def _switch(script: SetupScript, text: str) -> str:
    """A variable of setup.py that by its name turns such a flag off."""
    names = [name for name, _ in variables_read(script.module) if "NATIVE" in name.upper() and name in text]
    return f'; env = {{ {names[0]} = "1" }} of stages.build may turn it off' if names else ""


def _gate(script: SetupScript) -> tuple[str, int, str] | None:
    """The environment variable that must be set for any extension module to be made: name, line, value."""
    calls = [
        node
        for node in ast.walk(script.module)
        if isinstance(node, ast.Call) and called(node.func).endswith("Extension")
    ]
    if not calls:
        return None
    for node in ast.walk(script.module):
        if isinstance(node, ast.If) and (asked := variable_asked(node.test, script.known)) is not None:
            inside = {id(each) for statement in node.body for each in ast.walk(statement)}
            if all(id(call) in inside for call in calls):
                return asked
    return None
