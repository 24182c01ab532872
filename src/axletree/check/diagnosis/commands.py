"""Shell lines of a fix, taken apart: what they set, what they install, what is left of them."""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterator

_MARK = "@@"
_FORMER = {"CFLAGS": "-O3", "CXXFLAGS": "-O3"}
"""What a variable that is added to had before: flags of a recipe take the place of the build tool's own."""
OUTPUT = "WHAT THIS PRINTS"
"""Stands for the output of a command inside of a value."""

_REST = re.compile(r"\$\{\w+:?\+[^}]*\}")
_DEFAULT = re.compile(r"\$\{\w+:?-([^}]*)\}")
_NAMED = re.compile(r"\$\{(\w+)\}|\$(\w+)")
_ASSIGNED = re.compile(r"[A-Za-z_]\w*=")
_PIP = re.compile(r"(?:[A-Z_]+=\S+ +)*(?:\S*python[\d.]* -m pip|pip3?|uv pip) +(install|download|config)\b(.*)")
_CONDA = re.compile(r"(?:conda|mamba|micromamba) +(?:install|create)\b")
_WITH_VALUE = frozenset(
    ("-c", "-d", "-f", "-i", "-r", "--extra-index-url", "--find-links", "--index-url", "--no-binary", "--only-binary")
)
_REQUIREMENT = re.compile(r"[A-Za-z0-9][\w.-]*[a-z0-9][\w.-]*(?:\[[\w,]+\])?(?:[<>=!~].*)?")
_OF_SHELL = ("env |", "echo ", "source ", ". ", "rm -rf build", "rm -f build", "uv venv", "ulimit ", "printf ")
_VENV = re.compile(r"\S*python[\d.]* -m venv\b")
_INSTALLERS = frozenset(("pip", "uv"))


class Pieces(msgspec.Struct, frozen=True, kw_only=True):
    """What shell lines do."""

    sets: tuple[tuple[str, str], ...] = ()
    """Variables for the programs after them, with values in which no shell has anything left to do."""
    unsets: tuple[str, ...] = ()
    requires: tuple[str, ...] = ()
    """Distributions that they install."""
    runs: tuple[str, ...] = ()
    """The commands that are left."""
    tools: tuple[str, ...] = ()
    """Programs of the host, by ``tools NAME``: no command of a shell, but a line of ``fix-in-stage``."""
    submodules: bool = False
    """Whether git's submodules are fetched."""


def take_apart(lines: list[str]) -> Pieces:
    """What shell lines do; what only concerns the user's own shell, conda or the project's own install is left out."""
    sets: dict[str, str] = {}
    unsets: list[str] = []
    requires: list[str] = []
    runs: list[str] = []
    tools: list[str] = []
    submodules = False
    for line in lines:
        left = []
        for command in _commands(line):
            word = command.partition(" ")[0]
            if word == "export":
                assigned, printing = _assigned(command, sets)
                sets |= assigned
                left += [printing] if printing else []
            elif word == "tools":
                tools += command.split()[1:]
            elif word == "unset":
                unsets += command.split()[1:]
            elif pip := _PIP.match(command):
                requires += _installed(pip[2]) if pip[1] == "install" else ()
            elif command.startswith("git submodule"):
                submodules = submodules or command.startswith("git submodule update")
            elif not (_CONDA.match(command) or _VENV.match(command) or _is_of_shell(command)):
                left.append(command)
        runs += ["; ".join(left)] if left else []
    return Pieces(
        sets=tuple(sets.items()),
        unsets=tuple(dict.fromkeys(unsets)),
        requires=tuple(dict.fromkeys(requires)),
        runs=tuple(runs),
        tools=tuple(tools),
        submodules=submodules,
    )


def _is_of_shell(command: str) -> bool:
    """Whether a command shows or changes the user's own shell, or a folder that a stage makes anew each time."""
    return command.startswith(_OF_SHELL)


def _commands(line: str) -> Iterator[str]:
    """Commands between ``;`` and ``&&``, outside of quotes and of ``$(...)``."""
    begin = at = 0
    quote = ""
    while at < len(line):
        char = line[at]
        if line[at : at + 2] == "$(" and quote != "'":
            at = _closing(line, at + 2)
        elif quote:
            quote = "" if char == quote else quote
        elif char in "'\"":
            quote = char
        elif char == ";" or line[at : at + 2] == "&&":
            yield line[begin:at].strip()
            begin = at + (1 if char == ";" else 2)
            at = begin - 1
        at += 1
    if line[begin:].strip():
        yield line[begin:].strip()


def _assigned(command: str, known: dict[str, str]) -> tuple[dict[str, str], str]:
    """Variables that ``export`` sets, and the commands whose output they contain."""
    command, printing = _without_output(command)
    found: dict[str, str] = {}
    for word in _words(command)[1:]:
        if _ASSIGNED.match(word):
            name, _, value = word.partition("=")
            found[name] = _plain(value, {**_FORMER, **known, **found}).replace(_MARK, OUTPUT).strip(" :")
    return found, "; ".join(dict.fromkeys(printing))


def _without_output(command: str) -> tuple[str, list[str]]:
    """A command with a mark in the place of each ``$(...)``, and what these run."""
    printing: list[str] = []
    while (begin := command.find("$(")) >= 0:
        end = _closing(command, begin + 2)
        printing.append(command[begin + 2 : end])
        command = f"{command[:begin]}{_MARK}{command[end + 1 :]}"
    return command, printing


def _closing(text: str, at: int) -> int:
    """Where the parenthesis ends that is open at a place."""
    depth, quote = 1, ""
    while at < len(text):
        char = text[at]
        if quote:
            quote = "" if char == quote else quote
        elif char in "'\"":
            quote = char
        else:
            depth += (char == "(") - (char == ")")
            if not depth:
                break
        at += 1
    return at


def _words(command: str) -> list[str]:
    try:
        return shlex.split(command)
    except ValueError:
        return command.split()


def _plain(value: str, known: dict[str, str]) -> str:
    """A value as it is without a shell: variables are what is known of them, others are empty."""
    value = _DEFAULT.sub(r"\1", _REST.sub("", value))
    return _NAMED.sub(lambda found: known.get(found[1] or found[2], ""), value)


def _installed(arguments: str) -> Iterator[str]:
    """Requirements among the arguments of ``pip install``; neither a folder nor a word that stands for a name."""
    words = iter(_words(arguments))
    for word in words:
        if word in {"|", "2>&1", ">"}:
            return
        if word in _WITH_VALUE:
            next(words, None)
        elif _REQUIREMENT.fullmatch(word) and word not in _INSTALLERS:
            yield word
