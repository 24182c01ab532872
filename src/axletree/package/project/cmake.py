"""What a project's CMake files do as they stand: which folders they leave out, and what they download.

Conditions are evaluated as far as options, and what pyproject.toml defines, decide them; anything else may be true or
not. Nothing is run.
"""

from __future__ import annotations

import itertools
import posixpath
import re
from typing import TYPE_CHECKING

import msgspec

from axletree.core.errors import IntegrityError
from axletree.package.cmake.syntax import CMakeCommand, parse_cmake
from axletree.package.project.model import Found
from axletree.package.project.tree import is_aside, line_at

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from axletree.package.project.model import Backend
    from axletree.package.project.pyproject import PyProject
    from axletree.package.project.tree import SourceTree

_FILE = "CMakeLists.txt"
_TRUE, _FALSE = frozenset({"1", "ON", "YES", "TRUE", "Y"}), frozenset({"0", "OFF", "NO", "FALSE", "N", "IGNORE", ""})
_OPENING, _CLOSING = frozenset({"function", "macro", "foreach", "while"}), ("endfunction", "endmacro", "endforeach")
_VARIABLE = re.compile(r"\$\{(\w+)\}")
_HERE = re.compile(r"\$\{(?:CMAKE_CURRENT|PROJECT)_SOURCE_DIR\}")
_NATIVE = re.compile(r"-m(?:arch|cpu)=native\b")
_DEFINES = (("tool", "scikit-build", "cmake", "define"),)
_HATCH_HOOKS = ("tool", "hatch", "build", "targets", "wheel", "hooks"), ("tool", "hatch", "build", "hooks")


class CMakeUse(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of a project's CMake files."""

    off: frozenset[str] = frozenset()
    """Folders that are added only where an option asks for it that is off."""
    downloads: tuple[Found, ...] = ()
    """What is downloaded while it is configured, by its name in CMake."""
    possible: tuple[Found, ...] = ()
    """What is downloaded under conditions that only a build can decide."""
    minimum: Found | None = None
    """The oldest CMake that it takes."""
    native: Found | None = None
    """Where it may compile for the processor of this host."""


class _Call(msgspec.Struct, frozen=True):
    """A command, where it stands, and whether it is run; ``None`` where that is not known."""

    folder: str
    command: CMakeCommand
    runs: bool | None
    line: int


def uses_scikit_build(project: PyProject, backend: Backend) -> bool:
    """Whether scikit-build-core runs CMake: as the backend, or as a build hook of hatchling."""
    hooks = [project.table(*place) for place in _HATCH_HOOKS] if backend == "hatchling" else []
    return backend == "scikit-build-core" or any("scikit-build" in hook for hook in hooks)


def read_cmake(tree: SourceTree, project: PyProject, backend: Backend) -> CMakeUse:
    """What the CMake files of a project do, if scikit-build-core or its setup.py runs them."""
    if not uses_scikit_build(project, backend) and not (backend == "setuptools" and _FILE in tree.sizes):
        return CMakeUse()
    parsed = dict(_parsed(tree))
    switches = _switches(parsed, project)
    calls = [*_calls(tree, parsed, switches)]
    added = _added(calls)
    off = frozenset(folder for folder, runs in added.items() if all(each is False for each in runs))
    top = str(project.get("tool", "scikit-build", "cmake", "source-dir") or ".").strip("/") or "."
    reached = {posixpath.normpath(top), *(folder for folder, runs in added.items() if True in runs)}
    found = [*_downloads(calls, off, reached, _texts(calls))]
    given = {name.removeprefix("FETCHCONTENT_SOURCE_DIR_") for name in _defined(project)}
    found = [each for each in found if each[0].value.upper() not in given]
    return CMakeUse(
        off=off,
        downloads=tuple({each.value: each for each, certain in found if certain}.values()),
        possible=tuple({each.value: each for each, certain in found if not certain}.values()),
        minimum=_minimum(calls, posixpath.normpath(top)),
        native=next(_native(calls, reached | added.keys() - off), None),
    )


def _parsed(tree: SourceTree) -> Iterator[tuple[str, tuple[CMakeCommand, ...]]]:
    for path, text in tree.texts.items():
        if path.rpartition("/")[2] == _FILE and not is_aside(path):
            try:
                yield path, parse_cmake(text, file=path)
            except IntegrityError:
                continue


def _defined(project: PyProject) -> dict[str, object]:
    """What pyproject.toml defines for CMake; of a variable that decides, its default."""
    values = {name: value for place in _DEFINES for name, value in project.table(*place).items()}
    return {name: value.get("default") if isinstance(value, dict) else value for name, value in values.items()}


def _switches(parsed: Mapping[str, Sequence[CMakeCommand]], project: PyProject) -> dict[str, bool | None]:
    """Options and their defaults; ``None`` for one that is assigned otherwise, too."""
    found: dict[str, bool | None] = {}
    for command in (command for commands in parsed.values() for command in commands):
        words = command.words()
        if command.name == "option" and len(words) > 1:
            value = _constant(words[2] if len(words) > 2 else "OFF")
            found[words[0]] = value if found.get(words[0], value) == value else None
        elif command.name == "set" and words and ("CACHE" not in words or "BOOL" not in words):
            found[words[0]] = None
        elif command.name == "set" and len(words) > 1:
            found.setdefault(words[0], _constant(words[1]))
    for name, said in _defined(project).items():
        found[name] = None if said is None else _constant(str(said))
    return found


def _constant(text: str) -> bool | None:
    return True if text.upper() in _TRUE else False if text.upper() in _FALSE else None


def _added(calls: Sequence[_Call]) -> dict[str, list[bool | None]]:
    """Folders that are added, and whether each place that does so runs."""
    added: dict[str, list[bool | None]] = {}
    for call in calls:
        if call.command.name == "add_subdirectory" and (words := call.command.words()):
            below = _HERE.sub(".", words[0])
            if "${" not in below:
                added.setdefault(posixpath.normpath(posixpath.join(call.folder, below)), []).append(call.runs)
    return added


def _texts(calls: Sequence[_Call]) -> dict[str, str]:
    """Variables that are set to an address."""
    sets = (call.command.words() for call in calls if call.command.name == "set")
    return {words[0]: words[1] for words in sets if len(words) > 1 and "://" in words[1]}


def _calls(
    tree: SourceTree, parsed: Mapping[str, Sequence[CMakeCommand]], switches: Mapping[str, bool | None]
) -> Iterator[_Call]:
    """All commands with whether they run, as far as the conditions around them tell."""
    for path, commands in parsed.items():
        blocks: list[tuple[bool | None, bool | None]] = []
        """For each block around: whether it runs, and whether an earlier branch of it did."""
        for command in commands:
            match command.name:
                case "if":
                    value = _condition(command.words(), switches)
                    blocks.append((value, value))
                case "elseif" | "else" if blocks:
                    earlier = blocks[-1][1]
                    value = True if command.name == "else" else _condition(command.words(), switches)
                    blocks[-1] = (_and(_not(earlier), value), _or(earlier, value))
                case name if name in _OPENING:
                    blocks.append((None, None))
                case name if (name in _CLOSING or name in {"endif", "endwhile"}) and blocks:
                    blocks.pop()
                case _:
                    runs: bool | None = True
                    for block, _ in blocks:
                        runs = _and(runs, block)
                    yield _Call(path.rpartition("/")[0] or ".", command, runs, line_at(tree.texts[path], command.start))


def _condition(words: Sequence[str], switches: Mapping[str, bool | None]) -> bool | None:
    """A condition of ``NOT``, ``AND`` and ``OR`` over switches; ``None`` where something else is asked."""
    if "OR" in words and "(" not in words:
        at = len(words) - 1 - words[::-1].index("OR")
        return _or(_condition(words[:at], switches), _condition(words[at + 1 :], switches))
    if "AND" in words and "(" not in words:
        at = words.index("AND")
        return _and(_condition(words[:at], switches), _condition(words[at + 1 :], switches))
    if len(words) > 1 and words[0] == "NOT":
        return _not(_condition(words[1:], switches))
    if len(words) != 1:
        return None
    name = found[1] if (found := _VARIABLE.fullmatch(words[0])) else words[0]
    return switches[name] if name in switches else _constant(name) if name else None


def _not(value: bool | None) -> bool | None:  # noqa: FBT001
    return None if value is None else not value


def _and(one: bool | None, other: bool | None) -> bool | None:  # noqa: FBT001
    if one is False or other is False:
        return False
    return True if one and other else None


def _or(one: bool | None, other: bool | None) -> bool | None:  # noqa: FBT001
    return _not(_and(_not(one), _not(other)))


def _downloads(
    calls: Sequence[_Call], off: frozenset[str], reached: set[str], texts: Mapping[str, str]
) -> Iterator[tuple[Found, bool]]:
    """What is fetched from an address, and whether it surely is."""
    remote: dict[str, bool] = {}
    for call in calls:
        words = call.command.words()
        if call.command.name == "fetchcontent_declare" and words and _is_remote(words, texts):
            remote[words[0].lower()] = "FIND_PACKAGE_ARGS" in words or "OVERRIDE_FIND_PACKAGE" in words
    for call in calls:
        if call.runs is False or any(call.folder == folder or call.folder.startswith(f"{folder}/") for folder in off):
            continue
        words, certain = call.command.words(), bool(call.runs) and call.folder in reached
        where = posixpath.normpath(posixpath.join(call.folder, _FILE))
        if call.command.name in {"fetchcontent_makeavailable", "fetchcontent_populate"}:
            for name in words:
                if name.lower() in remote:
                    found = Found(value=name, file=where, line=call.line)
                    yield found, certain and not remote[name.lower()]
        elif call.command.name == "externalproject_add" and words and _is_remote(words, texts):
            yield Found(value=words[0], file=where, line=call.line), certain


def _is_remote(words: Sequence[str], texts: Mapping[str, str]) -> bool:
    """Whether a declared source comes from an address and not from a folder."""
    for key, value in itertools.pairwise(words):
        if key in {"URL", "GIT_REPOSITORY"}:
            return "://" in _VARIABLE.sub(lambda found: texts.get(found[1], ""), value) or value.startswith("git@")
    return False


def _native(calls: Sequence[_Call], folders: Collection[str]) -> Iterator[Found]:
    for call in calls:
        flag = _NATIVE.search(" ".join(call.command.words()))
        if flag is not None and call.runs is not False and call.folder in folders:
            yield Found(value=flag[0], file=posixpath.normpath(f"{call.folder}/{_FILE}"), line=call.line)


def _minimum(calls: Sequence[_Call], top: str) -> Found | None:
    for call in calls:
        words = call.command.words()
        if call.command.name == "cmake_minimum_required" and call.folder == top and len(words) > 1:
            oldest = words[1].partition("...")[0]
            if re.fullmatch(r"\d+(?:\.\d+)*", oldest):
                return Found(value=oldest, file=posixpath.normpath(f"{top}/{_FILE}"), line=call.line)
    return None
