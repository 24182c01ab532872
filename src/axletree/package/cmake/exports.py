"""Files that ``install(EXPORT)`` wrote, made to fit a tree whose files have moved and that brings its own libraries.

CMake's form of them (cmExportFileGenerator.cxx): ``_IMPORT_PREFIX`` is computed from the file's own place; targets are
``add_library(NAME KIND IMPORTED)``; all else is properties, whose values are lists. Paths in them begin with
``${_IMPORT_PREFIX}/``; what begins with ``/`` belongs to the machine that built it.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Collection, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

import msgspec

from axletree.core.errors import IntegrityError, Problem
from axletree.package.cmake.syntax import CMakeCommand, Replacement, parse_cmake, replaced, split_list

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from axletree.package.cmake.syntax import Argument

_PREFIX = "${_IMPORT_PREFIX}"
_VARIABLE = "_IMPORT_PREFIX"
_LINKED = re.compile(r"(?:INTERFACE|IMPORTED)_LINK_(?:\w+_)?LIBRARIES(?:_\w+)?")
_INCLUDED = re.compile(r"INTERFACE_(?:SYSTEM_)?INCLUDE_DIRECTORIES")
_SONAME = re.compile(r"IMPORTED_SONAME(?:_\w+)?")
_PROPERTIES = frozenset({"set_target_properties", "set_property"})
_CHANGED = _PROPERTIES | {"list", "target_sources"}
"""Commands whose arguments hold paths of the package."""
_LIBRARY_FILE = re.compile(r"(?:.*/)?lib([^/]+?)\.(?:so[.\d]*|a)")
_ONLY = re.compile(r"\\?\$<LINK_ONLY:(.*)>")
_TARGET = re.compile(r"[A-Za-z0-9_.+-]+(::[A-Za-z0-9_.+-]+)+")
_FINDERS = frozenset({"find_package", "find_dependency"})
_SHOWN = 20


class CMakeTree(msgspec.Struct, frozen=True, kw_only=True):
    """What became of the tree that the files describe. Paths are relative to it."""

    moved: Mapping[str, str]
    """Path of a file before, also of a name that is gone for another -> path now."""
    folders: Mapping[str, str]
    """The same for folders."""
    spread: Mapping[str, Sequence[str]] = {}
    """Folder before -> folders now, where several together have what it had: what includes it includes all of them."""
    dropped: Collection[str] = ()
    """Paths of files that were left out."""
    names: Mapping[str, str] = {}
    """File name or SONAME of a library before -> its name now."""
    inside: Collection[str] = ()
    """Libraries, by what stands between ``lib`` and ``.so``, that shared libraries of the tree bring along or that each
    system has: who links to the former need not name them."""
    private: Sequence[str] = ()
    """Patterns of link libraries and folders that users of the targets do not need."""


class CMakeChanges(msgspec.Struct, frozen=True, kw_only=True):
    """What becomes of CMake files."""

    texts: dict[str, str]
    """Path before -> text now, of files that change."""
    left_out: tuple[str, ...]
    """Items of link libraries and folders that were taken out, sorted."""
    exports: tuple[str, ...]
    """Paths before of files with exported targets."""


def adapt_exports(files: Mapping[str, str], tree: CMakeTree, *, beside: Iterable[str] = ()) -> CMakeChanges:
    """Adapt the exported targets among a tree's CMake files.

    Args:
        files: path before -> text, of all CMake files of the tree.
        tree: what became of it.
        beside: texts of CMake files of other trees that it is installed beside.

    Raises:
        IntegrityError: a target names a path of the build machine, one that is not in the tree, or a target that
            nobody defines. Names all, with their lines.
    """
    parsed = {path: parse_cmake(text, file=path) for path, text in sorted(files.items())}
    others = [parse_cmake(text, file="CMake file in a sibling tree") for text in beside]
    known = _Known(parsed, others)
    texts: dict[str, str] = {}
    problems: list[Problem] = []
    left_out: set[str] = set()
    for path in known.exports:
        adapter = _Adapter(path, files[path], parsed, tree, known)
        new = replaced(files[path], adapter.replacements())
        problems += adapter.problems
        left_out |= adapter.left_out
        if new != files[path]:
            texts[path] = new
    if problems:
        raise IntegrityError(*problems[:_SHOWN])
    return CMakeChanges(texts=texts, left_out=tuple(sorted(left_out)), exports=known.exports)


def _exports(commands: Iterable[CMakeCommand]) -> bool:
    """Whether a file is one with exported targets, or with their locations for one configuration."""
    words = [(command.name, command.words()) for command in commands]
    generated = any(each == ("set", ("CMAKE_IMPORT_FILE_VERSION", "1")) for each in words)
    return (generated or any(_VARIABLE in word for _, texts in words for word in texts)) and any(
        (name == "add_library" and "IMPORTED" in texts)
        or (name in _PROPERTIES and any(word.startswith("IMPORTED_LOCATION") for word in texts))
        for name, texts in words
    )


class _Known:
    """What the CMake files of all trees define and look for."""

    def __init__(self, files: Mapping[str, Sequence[CMakeCommand]], beside: Iterable[Sequence[CMakeCommand]]) -> None:
        self.exports = tuple(path for path, commands in files.items() if _exports(commands))
        self.targets: dict[str, str] = {}  # name of an exported target -> its kind
        self.mentioned: set[str] = set()
        self.packages: set[str] = set()
        for commands in (*files.values(), *beside):
            exports = _exports(commands)
            for command in commands:
                words = command.words()
                if exports and command.name == "add_library" and words:
                    self.targets[words[0]] = words[1] if len(words) > 1 else ""
                elif command.name in _FINDERS and words:
                    self.packages.add(words[0].lower())
                if not exports:
                    self.mentioned.update(words)

    def defines(self, name: str) -> bool:
        """Whether a target is defined here, or may be by a package that is looked for."""
        return name in self.targets or name in self.mentioned or name.partition("::")[0].lower() in self.packages


class _Adapter:
    """One file with exported targets."""

    def __init__(
        self, path: str, text: str, parsed: Mapping[str, Sequence[CMakeCommand]], tree: CMakeTree, known: _Known
    ) -> None:
        self.path = path
        self.text = text
        self.commands = parsed[path]
        self.tree = tree
        self.known = known
        self.problems: list[Problem] = []
        self.left_out: set[str] = set()
        main = _main_file(path, parsed)
        self.depth, self.absolute = _import_prefix(parsed[main])
        if self.absolute:
            family = [command for other in parsed if _main_file(other, parsed) == main for command in parsed[other]]
            self.depth = _depth_that_fits(main, family, tree, prefixes=(_PREFIX, self.absolute))
        self.before = _above(posixpath.dirname(path), self.depth)
        self.now = _above(posixpath.dirname(tree.moved[path]), self.depth)

    def replacements(self) -> Iterator[Replacement]:
        """All edits of the file."""
        if self.path not in self.tree.moved:
            return
        for command in self.commands:
            if command.name in _CHANGED:
                yield from self.changed_values(command)
            elif (
                command.name == "set" and self.absolute and command.words()[:1] == (_VARIABLE,) and command.words()[1:]
            ):
                text = _computed_prefix(self.depth)
                yield Replacement(start=command.start, end=command.end, text=text)
        # What the file insists on finding, once it is known what is left out.
        for command in self.commands:
            if command.name == "foreach" and command.words()[:1] == ("_target",):
                for argument in command.arguments[1:]:
                    if argument.text in self.left_out:
                        yield Replacement(start=argument.start - 1, end=argument.end + 1, text="")

    def changed_values(self, command: CMakeCommand) -> Iterator[Replacement]:
        target = command.arguments[0].text if command.arguments else ""
        if command.name == "set_property" and len(command.arguments) > 1:
            target = command.arguments[1].text
        key = ""
        for argument in command.arguments:
            if argument.kind == "plain" and re.fullmatch(r"[A-Z][A-Z0-9_]*", argument.text):
                key = argument.text
                continue
            items = split_list(argument.text)
            kept = [new for item in items for new in self.items(item, key, target, argument)]
            text = ";".join(kept)
            if text != argument.text:
                yield Replacement(start=argument.start, end=argument.end, text=text)

    def items(self, item: str, key: str, target: str, argument: Argument) -> Iterator[str]:
        """What becomes of an item of a list; several folders where what it had is now in several."""
        path = self.package_path(item) if _INCLUDED.fullmatch(key) else None
        if path is not None and path in self.tree.spread:
            yield from map(self.relative, self.tree.spread[path])
        elif (new := self.item(item, key, target, argument)) is not None:
            yield new

    def item(self, item: str, key: str, target: str, argument: Argument) -> str | None:
        """What becomes of an item of a list; ``None``: it is left out."""
        if _SONAME.fullmatch(key):
            return self.tree.names.get(item, item)
        path = self.package_path(item)
        if path is not None:
            return self.moved_path(path, item, argument)
        inner = _ONLY.fullmatch(item)
        name = inner[1] if inner else item
        linked = _LINKED.fullmatch(key) is not None
        if (linked and self.is_inside(name, target)) or any(fnmatchcase(name, each) for each in self.tree.private):
            self.left_out.add(name)
            return None
        if name.startswith(("/", "-L/", "-I/")):
            hint = f'if users do not need "{name}", add it to `private`'
            self.fault(argument, f"{target}: {key or 'a list'} refers to {name} on the build machine", hint)
        elif linked and _TARGET.fullmatch(name) and not self.known.defines(name):
            hint = f'if users do not need "{name}", add it to `private`'
            self.fault(
                argument, f"{target} links to {name}, which no CMake file in the tree defines or looks for", hint
            )
        return item

    def package_path(self, item: str) -> str | None:
        """The path in the tree, as it was, that an item names; ``None`` for what is none."""
        for prefix in (_PREFIX, self.absolute):
            if prefix and (item == prefix or item.startswith(f"{prefix}/")):
                rest = item[len(prefix) :].strip("/")
                return posixpath.normpath(posixpath.join(self.before, rest)) if rest else self.before or "."
        return None

    def moved_path(self, path: str, item: str, argument: Argument) -> str:
        new = self.tree.moved.get(path, self.tree.folders.get(path))
        if new is None:
            gone = path in self.tree.dropped
            what = (
                f"the file refers to {path}, which `drop` removes"
                if gone
                else f"the file refers to {path}, which is not in the tree"
            )
            self.fault(
                argument, what, "also drop the file that refers to this path, or keep the path" if gone else None
            )
            return item
        return self.relative(new)

    def relative(self, new: str) -> str:
        """A path of the new tree, as the file names it."""
        relative = posixpath.relpath(f"/{new}", f"/{self.now}")
        return _PREFIX if relative == "." else f"{_PREFIX}/{relative}"

    def is_inside(self, name: str, target: str) -> bool:
        """Whether a link library comes along with a shared library that links to it."""
        if self.known.targets.get(target) == "STATIC" or name in self.known.targets:
            return False
        if file := _LIBRARY_FILE.fullmatch(name):
            stem = file[1]
        elif name.startswith("-l"):
            stem = name[2:]
        elif name.startswith(("-", "/", "$", "\\")):
            return False
        else:
            stem = name.rpartition("::")[2].removeprefix("lib")
        return stem.lower() in {each.lower() for each in self.tree.inside}

    def fault(self, argument: Argument, message: str, hint: str | None) -> None:
        line = self.text.count("\n", 0, argument.start) + 1
        self.problems.append(Problem(file=self.path, line=line, message=message, hint=hint))


def _main_file(path: str, parsed: Mapping[str, Sequence[CMakeCommand]]) -> str:
    """The file that computes the prefix: ``XTargets.cmake`` for ``XTargets-release.cmake``."""
    folder, name = posixpath.split(path)
    if any(_import_prefix(parsed[path])):
        return path
    stems = [
        other
        for other in parsed
        if posixpath.dirname(other) == folder
        and name.startswith(posixpath.basename(other).removesuffix(".cmake") + "-")
        and any(_import_prefix(parsed[other]))
    ]
    return max(stems, key=len, default=path)


def _import_prefix(commands: Iterable[CMakeCommand]) -> tuple[int, str]:
    """(folders from the file's own up to the prefix, "") or (0, the absolute prefix that it is set to)."""
    ups = 0
    absolute = ""
    for command in commands:
        words = command.words()
        if (
            command.name == "get_filename_component"
            and words[:1] == (_VARIABLE,)
            and words[2:3] in {("PATH",), ("DIRECTORY",)}
        ):
            ups += 1
        elif command.name == "set" and words[:1] == (_VARIABLE,) and len(words) > 1 and words[1].startswith("/"):
            absolute = words[1].rstrip("/")
    if ups:
        return ups - 1, absolute
    return 0, absolute


def _above(folder: str, depth: int) -> str:
    for _ in range(depth):
        folder = posixpath.dirname(folder)
    return folder


def _depth_that_fits(path: str, commands: Iterable[CMakeCommand], tree: CMakeTree, *, prefixes: Iterable[str]) -> int:
    """How far above a file the prefix lies for which the tree has most of what is named below it."""
    words = {item for command in commands for argument in command.arguments for item in split_list(argument.text)}
    rests = {word[len(prefix) + 1 :] for prefix in prefixes for word in words if word.startswith(f"{prefix}/")}
    folder = posixpath.dirname(path)
    depths = range(folder.count("/") + 2 if folder else 1)

    def found(depth: int) -> int:
        places = (posixpath.join(_above(folder, depth), rest) for rest in rests)
        return sum(place in tree.moved or place in tree.folders for place in places)

    return max(depths, key=found)


def _computed_prefix(depth: int) -> str:
    first = f'get_filename_component({_VARIABLE} "${{CMAKE_CURRENT_LIST_FILE}}" PATH)'
    return "\n".join([first, *[f'get_filename_component({_VARIABLE} "{_PREFIX}" PATH)'] * depth])
