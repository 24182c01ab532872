"""conda's ``environment.yml`` -> an environment of a recipe.

Keys: https://docs.conda.io/projects/conda/en/stable/user-guide/tasks/manage-environments.html; ``sel(linux):`` is
micromamba's, comments such as ``# [linux]`` are conda-lock's.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import msgspec

from axletree.core.errors import Problem, RecipeError
from axletree.core.secrets import looks_secret
from axletree.environment.conda_file import spec_of_address
from axletree.environment.imported import Entry, Imported, Note, name_from, secret_in, without_secrets
from axletree.environment.pip_lines import read_pip_line
from axletree.environment.python_pin import python_pin
from axletree.environment.yaml_nodes import YamlText, kind_of, line_of
from axletree.recipe.match_spec import MatchSpec, parse_match_spec
from axletree.recipe.toml import shown

if TYPE_CHECKING:
    import yaml

_MOST = 5000
"""Items of a file. Large locked environments have some hundred; aliases could name one list endlessly often."""
_NAME = re.compile(r"[a-z0-9_][a-z0-9_.-]*")
_ALTERNATIVE = re.compile(r"(?:(?:[<>]=?|[!=]=|~=|=)?[A-Za-z0-9_.!+*-]+|\^\S+\$)")
_SELECTOR = re.compile(r"sel\((?P<platform>[^)]*)\)")
_BEHIND = re.compile(r"\[(?P<not>not )?(?P<platform>[a-z]+(?:-?\d+)?)\]")
_HERE = frozenset({"linux", "unix", "linux64", "linux-64"})
_ELSEWHERE = frozenset({"win", "win32", "win64", "win-64", "osx", "osx-64", "osx-arm64", "arm64", "aarch64", "ppc64le"})
_LOGIN = "left out, because it contains a login"
_NO_LINUX = "left out, because it is not for Linux on x86-64"
_KEYS = ("name", "channels", "dependencies", "variables", "prefix")
_WHY = {
    "prefix": "left out, because `axletree env create` chooses the folder",
    "platforms": "left out, because environments are for the machine that creates them",
}


class _Read:
    """What is read so far."""

    def __init__(self, text: str, file: str) -> None:
        self.yaml = YamlText(text, file)
        self.channels: list[Entry] = []
        self.requires: list[tuple[Entry, MatchSpec | None]] = []
        self.wheels: list[Entry] = []
        self.files: list[str] = []
        self.notes: list[Note] = []
        self.items = 0

    def note(self, node: yaml.Node, text: str, why: str) -> None:
        self.notes.append(Note(line=line_of(node), text=without_secrets(text), why=why))

    def entry(self, node: yaml.Node, text: str) -> Entry:
        above = self.yaml.comments_above(node)
        return Entry(text=text, above=above, behind=self.yaml.comment_behind(node))


def read_environment_yml(text: str, *, file: str, name: str | None, own: str) -> Imported:
    """Read an ``environment.yml``.

    Args:
        text: its content.
        file: how messages name it.
        name: of the environment, instead of the file's.
        own: the Python of Axletree, for files that name none.

    Raises:
        RecipeError: with every problem of the file.
    """
    read = _Read(text, file)
    root = read.yaml.root
    if root is None or kind_of(root) == "nothing":
        raise RecipeError(Problem(file=file, message="the file is empty"))
    if kind_of(root) != "a mapping":
        read.yaml.wrong(root, f"expected keys such as dependencies, found {kind_of(root)}")
        raise RecipeError(*read.yaml.problems)
    values = {key: (node, value) for key, node, value in read.yaml.pairs(root)}  # type: ignore[arg-type]
    if "package" in values and "metadata" in values:
        read.yaml.wrong(
            values["package"][0], "the file is a lock of conda-lock", "import the file that it was made from"
        )
        raise RecipeError(*read.yaml.problems)
    named = _named(read, values, name)
    _channels(read, values)
    if "dependencies" in values:
        _dependencies(read, values["dependencies"][1])
    elif not read.yaml.problems:
        message = "the file has no dependencies"
        read.yaml.problems.append(Problem(file=file, message=message, hint="add a list: dependencies: [python=3.11]"))
    _rest(read, values)
    if read.yaml.problems:
        raise RecipeError(*sorted(dict.fromkeys(read.yaml.problems), key=lambda problem: problem.line or 0))
    return _imported(read, named, own)


def _named(read: _Read, values: dict[str, tuple[yaml.Node, yaml.Node]], name: str | None) -> str:
    if name is not None or "name" not in values:
        return name or "imported"
    node = values["name"][1]
    given = str(node.value).strip() if kind_of(node) == "a number" else read.yaml.text(node, "a name") or ""
    kept = name_from(given)
    if kept != given:
        read.note(
            node,
            f"name: {given}",
            f"written as {kept or 'imported'}, because uppercase and special characters are not allowed",
        )
    return kept or "imported"


def _channels(read: _Read, values: dict[str, tuple[yaml.Node, yaml.Node]]) -> None:
    for node in read.yaml.items("channels", values["channels"][1]) if "channels" in values else ():
        text = read.yaml.text(node, "the name or URL of a channel")
        if text is None:
            continue
        if secret_in(text):
            read.note(node, text, _LOGIN)
        elif text == "nodefaults":
            read.note(node, text, "left out, because only channels of the recipe are searched anyway")
        elif text == "defaults":
            read.note(node, text, "written as main; for packages of R, add the channel r")
            read.channels.append(read.entry(node, "main"))
        elif text not in [each.text for each in read.channels]:
            read.channels.append(read.entry(node, text))


def _dependencies(read: _Read, node: yaml.Node) -> None:
    for item in read.yaml.items("dependencies", node):
        if not _counted(read, item):
            return
        if kind_of(item) != "a mapping":
            _dependency(read, item)
            continue
        for key, at, value in read.yaml.pairs(item):  # type: ignore[arg-type]
            selector = _SELECTOR.fullmatch(key)
            if key == "pip":
                _pip(read, value)
            elif selector is not None:
                _selected(read, value, selector["platform"].strip())
            else:
                hint = "write a dependency as NAME=VERSION; the only mappings are pip: and sel(linux):"
                read.yaml.wrong(at, f"expected a match spec or pip:, found the mapping {shown(key)!r}", hint)


def _selected(read: _Read, value: yaml.Node, platform: str) -> None:
    """What ``sel(PLATFORM):`` says: one match spec, or a list of them."""
    items = read.yaml.items(f"sel({platform})", value) if kind_of(value) == "a list" else [value]
    for item in items:
        if not _counted(read, item):
            return
        if platform in _HERE:
            _dependency(read, item)
        else:
            text = read.yaml.text(item, "a match spec")
            why = _NO_LINUX if platform in _ELSEWHERE else "left out, because this platform is unknown"
            read.note(item, f"sel({platform}): {text}", why)


def _counted(read: _Read, node: yaml.Node) -> bool:
    """Whether there may be one item more; says once if not."""
    read.items += 1
    if read.items == _MOST + 1:
        read.yaml.wrong(node, f"the file has more than {_MOST} dependencies")
    return read.items <= _MOST


def _dependency(read: _Read, node: yaml.Node) -> None:
    text = read.yaml.text(node, "a match spec")
    if text is None:
        return
    entry = read.entry(node, text)
    platform = _BEHIND.search(entry.behind)
    if platform is not None and (platform["platform"] in (_HERE if platform["not"] else _ELSEWHERE)):
        read.note(node, text, f"{_NO_LINUX} ({platform[0]})")
        return
    if "://" in text and "::" not in text:
        _file(read, node, entry)
        return
    spec = parse_match_spec(text)
    if spec is None or not _is_sound(spec):
        hint = "write it as NAME, NAME=VERSION, NAME=VERSION=BUILD or CHANNEL::NAME"
        read.yaml.wrong(node, f"{without_secrets(text)!r} is not a valid match spec", hint)
    elif secret_in(text):
        read.note(node, text, _LOGIN)
    else:
        read.requires.append((entry, spec))
        _its_channel(read, node, spec)


def _file(read: _Read, node: yaml.Node, entry: Entry) -> None:
    """A dependency that is the address of a package's file."""
    found = spec_of_address(entry.text)
    if found is None:
        read.yaml.wrong(node, f"{without_secrets(entry.text)!r} is not the URL of a conda package")
    elif secret_in(entry.text):
        read.note(node, entry.text, _LOGIN)
    else:
        spec = parse_match_spec(found.spec)
        read.requires.append((msgspec.structs.replace(entry, text=found.spec), spec))
        if spec is not None:
            _its_channel(read, node, msgspec.structs.replace(spec, channel=found.channel))


def _its_channel(read: _Read, node: yaml.Node, spec: MatchSpec) -> None:
    """Add the channel that a spec names: conda searches it too, a recipe's environment only its own."""
    if spec.channel is not None and spec.channel not in [each.text for each in read.channels]:
        read.channels.append(Entry(text=spec.channel))
        read.note(node, f"channel {spec.channel}", "added to channels, because a dependency names it")


def _is_sound(spec: MatchSpec) -> bool:
    """Whether name and version are such that conda has any."""
    words = [word for part in spec.version.replace("(", "").replace(")", "").split("|") for word in part.split(",")]
    versions = all(word == "*" or _ALTERNATIVE.fullmatch(word.strip()) for word in words)
    return (
        _NAME.fullmatch(spec.name) is not None and versions and not any(char in (spec.build or "") for char in "{}= ")
    )


def _pip(read: _Read, node: yaml.Node) -> None:
    for item in read.yaml.items("pip", node):
        if not _counted(read, item):
            return
        text = read.yaml.text(item, "a requirement")
        if text is None:
            continue
        line = read_pip_line(text)
        entry = read.entry(item, line.text)
        if line.kind == "wrong":
            read.yaml.wrong(item, without_secrets(line.why))
        elif line.kind == "wheel":
            read.wheels.append(msgspec.structs.replace(entry, behind=line.comment or entry.behind))
        elif line.kind == "file" and not read.files:
            read.files.append(line.text)
        elif line.kind == "file":
            read.note(
                item, text, "left out, because an environment has only one requirements file; add it there with -r"
            )
        if line.why and line.kind in {"left", "wheel"}:
            read.note(item, text, line.why)


def _rest(read: _Read, values: dict[str, tuple[yaml.Node, yaml.Node]]) -> None:
    """Keys that a recipe's environment does not have."""
    if "variables" in values and kind_of(values["variables"][1]) == "a mapping":
        for key, at, value in read.yaml.pairs(values["variables"][1]):  # type: ignore[arg-type]
            given = "***" if looks_secret(key) else str(getattr(value, "value", ""))
            read.note(
                at,
                f"{key}={given}",
                "left out, because environments set no variables; set it in your shell, or in a stage's env",
            )
    elif "variables" in values:
        read.yaml.wrong(values["variables"][0], f"expected a mapping, found {kind_of(values['variables'][1])}")
    for key, (at, value) in values.items():
        if key == "prefix" or key not in _KEYS:
            text = f"{key}: {value.value}" if kind_of(value) in {"a string", "a number"} else key
            read.note(at, text, _WHY.get(key, "left out, because environments have no such key"))


def _imported(read: _Read, name: str, own: str) -> Imported:
    pythons = [spec for _, spec in read.requires if spec is not None and spec.name == "python"]
    free = [spec for _, spec in read.requires if spec is not None and spec.name == "python-freethreading"]
    pin = python_pin(pythons, free, own=own)
    dropped = () if pin.keeps else ("python", "python-freethreading")
    notes = sorted(read.notes, key=lambda note: note.line or 0)
    if pin.why:
        notes.append(Note(line=None, text=f"python = {pin.python}", why=pin.why))
    channels = tuple(read.channels)
    if not channels:
        channels = (Entry(text="conda-forge"),)
        notes.append(
            Note(line=None, text="channels = conda-forge", why="the default, because the file names no channels")
        )
    return Imported(
        name=name,
        python=pin.python,
        channels=channels,
        requires=tuple(entry for entry, spec in read.requires if spec is None or spec.name not in dropped),
        wheels=tuple(read.wheels),
        requires_from=read.files[0] if read.files else None,
        notes=tuple(notes),
    )
