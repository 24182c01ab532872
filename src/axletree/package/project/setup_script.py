"""setup.py and setup.cfg: what they tell setuptools, as far as it can be read without running them."""

from __future__ import annotations

import ast
import configparser
import itertools
import re
from typing import TYPE_CHECKING

import msgspec

from axletree.package.project.code import called, constants, list_of, parse_python, text_of, texts_in, variable_asked
from axletree.package.project.model import Found

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from axletree.package.project.tree import SourceTree

SCRIPT, CONFIG = "setup.py", "setup.cfg"
_MOST, _MOST_CALLS = 500, 5
"""Requirements of one list, and calls of ``setup``, that are read; real ones have few."""
_OTHER_SYSTEMS = frozenset(
    {
        *(
            "win",
            "win32",
            "win64",
            "windows",
            "nt",
            "msvc",
            "mingw",
            "cygwin",
            "darwin",
            "mac",
            "macos",
            "macosx",
            "osx",
        ),
        *("bsd", "freebsd", "netbsd", "openbsd", "sunos", "solaris", "aix", "android", "ios", "pypy"),
    }
)
"""Words in conditions on systems and interpreters that are not ours: ``sys.platform == "win32"``, ``if IS_MACOS``."""
_OF_EVERY_SYSTEM = frozenset(
    {
        *("c", "m", "dl", "rt", "util", "pthread", "stdc++", "gcc_s", "gcc", "atomic", "nsl", "resolv", "z", "gomp"),
        "python",
    }
)
"""Libraries that every Linux system has, or that the compiler's own are."""
_OF_OTHERS = re.compile(r"torch|c10|cuda|cu[a-z]+|nv[a-z]+|hip|roc[a-z]*|amd")
"""Beginnings of libraries that PyTorch's and the GPU vendors' distributions bring."""
_STABLE_TAG = re.compile(r"cp(\d)(\d+)")


class SetupScript(msgspec.Struct, frozen=True, kw_only=True):
    """What setuptools is told."""

    module: ast.Module
    known: dict[str, ast.expr]
    """Names that setup.py assigns once."""
    arguments: dict[str, ast.expr]
    """Keyword arguments of ``setup()``."""
    config: dict[str, dict[str, str]]
    """Sections of setup.cfg."""
    config_text: str

    def text(self, argument: str, *config: str) -> Found | None:
        """A text by its argument, or by its section and key in setup.cfg."""
        found = text_of(self.arguments.get(argument), self.known)
        if found is not None and found[0]:
            return Found(value=found[0], file=SCRIPT, line=found[1])
        value = self.config.get(config[0], {}).get(config[1], "").strip() if config else ""
        return self.configured(value, config[1]) if value else None

    def texts(self, argument: str, *config: str) -> tuple[Found, ...] | None:
        """Texts of a list; ``None`` where it is made in a way that can't be read."""
        if argument in self.arguments:
            found = list_of(self.arguments[argument], self.known)
            return None if found is None else tuple(Found(value=text, file=SCRIPT, line=at) for text, at in found)
        value = self.config.get(config[0], {}).get(config[1], "") if config else ""
        lines = [line.strip() for line in value.split("\n")[:_MOST]]
        return tuple(self.configured(line, line) for line in lines if line and not line.startswith("#"))

    def configured(self, value: str, mark: str) -> Found:
        """A fact that stands in setup.cfg."""
        lines = self.config_text.split("\n")
        return Found(value=value, file=CONFIG, line=next((n for n, line in enumerate(lines, 1) if mark in line), None))

    @property
    def extras(self) -> tuple[tuple[str, Found], ...]:
        """Extras and their requirements, as far as they can be read."""
        value = self.arguments.get("extras_require")
        value = self.known.get(value.id) if isinstance(value, ast.Name) else value
        found: list[tuple[str, Found]] = []
        if isinstance(value, ast.Dict):
            for key, part in zip(value.keys, value.values, strict=True):
                name = text_of(key, self.known)
                texts = list_of(part, self.known) or []
                found += [(name[0], Found(value=text, file=SCRIPT, line=at)) for text, at in texts if name]
        for name_, lines in self.config.get("options.extras_require", {}).items():
            texts_ = (line.strip() for line in lines.split("\n")[:_MOST])
            found += [(name_, self.configured(line, line)) for line in texts_ if line]
        return tuple(found)


def read_setup(tree: SourceTree) -> SetupScript:
    """What a project tells setuptools by its setup.py and setup.cfg."""
    module = parse_python(tree.text(SCRIPT))
    known = constants(module)
    parser = configparser.ConfigParser(interpolation=None, strict=False)
    try:
        parser.read_string(tree.text(CONFIG))
    except configparser.Error:
        parser = configparser.ConfigParser()
    return SetupScript(
        module=module,
        known=known,
        arguments=_arguments(module, known),
        config={name: dict(parser[name]) for name in parser.sections()},
        config_text=tree.text(CONFIG),
    )


def _arguments(module: ast.Module, known: Mapping[str, ast.expr]) -> dict[str, ast.expr]:
    """Arguments of the call of ``setup``, also those of dictionaries that it is given with ``**``."""
    found: dict[str, ast.expr] = {}
    calls = (node for node in ast.walk(module) if isinstance(node, ast.Call))
    setups = (node for node in calls if called(node.func).rpartition(".")[2] == "setup")
    for node in itertools.islice(setups, _MOST_CALLS):
        for keyword in node.keywords[:_MOST]:
            if keyword.arg is not None:
                found[keyword.arg] = keyword.value
            elif isinstance(keyword.value, ast.Name):
                found |= dict(_of_dictionary(module, keyword.value.id, known))
    return found


def _of_dictionary(module: ast.Module, name: str, known: Mapping[str, ast.expr]) -> Iterator[tuple[str, ast.expr]]:
    value = known.get(name)
    if isinstance(value, ast.Dict):
        for key, part in zip(value.keys, value.values, strict=True):
            if isinstance(key, ast.Constant) and isinstance(key.value, str):
                yield key.value, part
    elif isinstance(value, ast.Call) and called(value.func) == "dict":
        yield from ((keyword.arg, keyword.value) for keyword in value.keywords if keyword.arg)
    for node in ast.walk(module):
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Subscript):
            target = node.targets[0]
            if called(target.value) == name and isinstance(target.slice, ast.Constant):
                yield str(target.slice.value), node.value


def extensions(script: SetupScript, tree: SourceTree) -> Iterator[Found]:
    """Names of the extension modules that setup.py makes on Linux for the CPU, where they are plain texts.

    One whose sources are not there is a trick that makes setuptools believe in extensions.
    """
    elsewhere = set(_of_other_systems(script.module))
    for node in ast.walk(script.module):
        if not (isinstance(node, ast.Call) and called(node.func).endswith("Extension")) or id(node) in elsewhere:
            continue
        if called(node.func).endswith("CUDAExtension"):
            continue  # a build for the CPU has none
        named = next((keyword.value for keyword in node.keywords if keyword.arg == "name"), None)
        found = text_of(node.args[0] if node.args else named, script.known)
        listed = next((keyword.value for keyword in node.keywords if keyword.arg == "sources"), None)
        sources = list_of(node.args[1] if len(node.args) > 1 else listed, script.known)
        there = not sources or any(path.removeprefix("./") in tree.sizes for path, _ in sources)
        if found is not None and "*" not in found[0] and there:
            yield Found(value=found[0].replace("/", "."), file=SCRIPT, line=found[1])


def linked(script: SetupScript) -> Iterator[Found]:
    """Libraries of the host that extension modules are linked with, where they are plain texts: ``ffi``, ``png``."""
    elsewhere = set(_of_other_systems(script.module))
    for node in ast.walk(script.module):
        if isinstance(node, ast.keyword) and node.arg == "libraries" and id(node) not in elsewhere:
            for name, line in list_of(node.value, script.known) or ():
                if name not in _OF_EVERY_SYSTEM and not _OF_OTHERS.match(name):
                    yield Found(value=name, file=SCRIPT, line=line)


def _of_other_systems(module: ast.Module) -> Iterator[int]:
    """Identities of the nodes below conditions on systems and interpreters that are not ours."""
    for node in ast.walk(module):
        if isinstance(node, ast.If) and _asks_for_other_system(node.test):
            yield from (id(each) for statement in node.body for each in ast.walk(statement))


def _asks_for_other_system(test: ast.expr) -> bool:
    """``sys.platform == "win32"``, ``sys.platform.startswith("win")``, ``"darwin" in sys.platform``, ``WINDOWS``."""
    match test:
        case ast.BoolOp(op=ast.And(), values=values):
            return any(map(_asks_for_other_system, values))
        case ast.BoolOp(values=values):
            return all(map(_asks_for_other_system, values))
        case ast.Compare(ops=[ast.Eq() | ast.In()]):
            return any(text.lower() in _OTHER_SYSTEMS for text, _ in texts_in(test))
        case ast.Call(func=func) if called(func).endswith("startswith"):
            return any(text.lower() in _OTHER_SYSTEMS for text, _ in texts_in(test))
        case ast.Call(func=func):
            return _names_other_system(called(func))
        case _:
            return _names_other_system(called(test))


def _names_other_system(name: str) -> bool:
    return not _OTHER_SYSTEMS.isdisjoint(name.rpartition(".")[2].lower().split("_"))


def _behind_variables(script: SetupScript) -> Iterator[int]:
    """Identities of the nodes that count only where an environment variable is set."""
    for node in ast.walk(script.module):
        if isinstance(node, ast.If | ast.IfExp) and variable_asked(node.test, script.known) is not None:
            body = node.body if isinstance(node, ast.If) else [node.body]
            yield from (id(each) for statement in body for each in ast.walk(statement))


def stable_tag(script: SetupScript) -> Found | None:
    """The oldest Python of a wheel that setuptools tags for the stable ABI: only ``bdist_wheel`` decides."""
    value = script.config.get("bdist_wheel", {}).get("py_limited_api", "") or script.config.get("bdist_wheel", {}).get(
        "py-limited-api", ""
    )
    if found := _STABLE_TAG.search(value):
        return msgspec.structs.replace(script.configured(f"{found[1]}.{found[2]}", value), why="stable ABI")
    gated = set(_behind_variables(script))
    for node in ast.walk(script.module):
        if isinstance(node, ast.Dict) and id(node) not in gated:
            for key, part in zip(node.keys, node.values, strict=True):
                tag = text_of(part, script.known)
                if isinstance(key, ast.Constant) and key.value == "py_limited_api" and tag:
                    match = _STABLE_TAG.fullmatch(tag[0])
                    if match is not None:
                        return Found(value=f"{match[1]}.{match[2]}", file=SCRIPT, line=tag[1], why="stable ABI")
    return None
