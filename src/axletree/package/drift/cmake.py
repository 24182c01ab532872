"""What CMake files pin: find_package with a version, FetchContent, ExternalProject; and the version of a project.

Files are read, not run: a condition around a command is not known, so nothing that stands in one is certain.
"""

from __future__ import annotations

import itertools
import re
from typing import TYPE_CHECKING

from packaging.version import Version

from axletree.core.errors import IntegrityError
from axletree.package.cmake.syntax import parse_cmake
from axletree.package.drift import ranges
from axletree.package.drift.evidence import Evidence
from axletree.package.drift.names import look_up, own_version
from axletree.recipe.addresses import COMMIT

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from packaging.ranges import VersionRange

    from axletree.package.cmake.syntax import CMakeCommand
    from axletree.package.drift.names import DependencyTable

_REFERENCE = re.compile(r"\$\{([A-Za-z0-9_]+)\}")
_WANTED = re.compile(r"(?P<low>\d+(?:\.\d+)*)(?:\.\.\.(?P<below><)?(?P<high>\d+(?:\.\d+)*))?")
_IN_ADDRESS = re.compile(r"(?:[-_/]|/v|-v)(\d+(?:[._]\d+)+(?:-?(?:a|b|rc)\d+)?)(?=[-_./]|$)", re.IGNORECASE)
_LONGEST = 1000
_ARCHIVE = re.compile(r"\.(?:tar\.\w+|tgz|zip|whl|7z)$")


def find_pins(text: str, *, file: str, table: DependencyTable) -> tuple[Evidence, ...]:
    """What a CMake file pins; nothing for a file that is none."""
    try:
        commands = parse_cmake(text, file=file)
    except IntegrityError:
        return ()
    variables = _variables(commands)
    found: list[Evidence] = []
    for command in commands:
        words = tuple(_filled(word, variables) for word in command.words())
        line = text.count("\n", 0, command.start) + 1
        raw = " ".join(text[command.start : command.end].split())[:200]
        if command.name == "find_package" and words:
            found += _package(words, raw, file, line, table)
        elif command.name in {"fetchcontent_declare", "externalproject_add"} and words:
            found += _download(words, raw, file, line, table)
    return tuple(found)


def project_version(text: str, *, file: str) -> tuple[str, int] | None:
    """Version of the first ``project()`` that has one, and its line; variables that are set once are filled in."""
    try:
        commands = parse_cmake(text, file=file)
    except IntegrityError:
        return None
    variables = _variables(commands)
    for command in commands:
        words = [_filled(word, variables) for word in command.words()]
        upper = [word.upper() for word in words]
        if command.name == "project" and "VERSION" in upper[1:]:
            at = upper.index("VERSION", 1) + 1
            if at < len(words) and re.fullmatch(r"\d+(\.\d+)*", words[at]):
                return words[at], text.count("\n", 0, command.start) + 1
    return None


def _variables(commands: Iterable[CMakeCommand]) -> dict[str, str]:
    """Variables that a file sets once, to one plain value."""
    values: dict[str, set[str | None]] = {}
    for command in commands:
        words = command.words()
        if command.name == "set" and words:
            plain = words[1] if len(words) == 2 or (len(words) > 2 and words[2] == "CACHE") else None
            values.setdefault(words[0], set()).add(plain)
    once = {name: next(iter(found)) for name, found in values.items() if len(found) == 1}
    return {name: value for name, value in once.items() if value is not None and "$" not in value}


def _filled(word: str, variables: Mapping[str, str]) -> str:
    return _REFERENCE.sub(lambda match: variables.get(match[1], match[0]), word)


def _package(words: tuple[str, ...], raw: str, file: str, line: int, table: DependencyTable) -> Iterator[Evidence]:
    name = words[0]
    if "$" in name or not re.fullmatch(r"[A-Za-z0-9_.+-]+", name):
        return
    wanted = _WANTED.fullmatch(words[1]) if len(words) > 1 else None
    dependency = look_up(table, "cmake", name)
    if wanted is None:
        yield Evidence(
            dependency=dependency,
            column="cmake",
            role="mention",
            file=file,
            line=line,
            text=raw,
            spec="*",
            range=ranges.ANY,
            confidence="likely",
            phase="build",
        )
        return
    low = Version(wanted["low"])
    if "EXACT" in words:
        spec, allowed = str(low), ranges.of_specifiers(f"=={low}.*")
    elif wanted["high"] is not None:
        sign = "<" if wanted["below"] else "<="
        spec = f">={low},{sign}{wanted['high']}"
        allowed = ranges.between(low, Version(wanted["high"]), include_upper=not wanted["below"])
    else:
        spec, allowed = f">={low}", ranges.between(low, None)
    yield Evidence(
        dependency=dependency,
        column="cmake",
        role="requires",
        file=file,
        line=line,
        text=raw,
        spec=spec,
        range=allowed,
        confidence="likely",
        phase="build",
    )


def _download(words: tuple[str, ...], raw: str, file: str, line: int, table: DependencyTable) -> Iterator[Evidence]:
    """A source that CMake downloads: at a tag, at a commit, or by an address that has a version in it."""
    options = dict(itertools.pairwise(words))
    tag, address = options.get("GIT_TAG"), options.get("URL") or options.get("GIT_REPOSITORY") or ""
    dependency = look_up(table, "submodule", _name(words[0], address))
    note = "downloaded while CMake runs"
    spec, allowed = _version(tag, options.get("URL"), dependency, table)
    if spec is not None:
        yield Evidence(
            dependency=dependency,
            column="cmake",
            role="pin",
            file=file,
            line=line,
            text=raw,
            spec=spec,
            range=allowed,
            confidence="likely",
            phase="build",
            note=note,
        )


def _name(target: str, address: str) -> str:
    """What is downloaded: the repository's name, else the target's."""
    if address.endswith(".git") or (address and not _ARCHIVE.search(address) and "$" not in address):
        return address.rstrip("/").rpartition("/")[2].removesuffix(".git")
    return re.sub(r"[-_](?:external|src|download|ep|project)$", "", target.strip("_"))


def _version(
    tag: str | None, url: str | None, dependency: str, table: DependencyTable
) -> tuple[str | None, VersionRange | None]:
    address = _ARCHIVE.sub("", (url or "")[:_LONGEST])
    for commit in (tag or "", address.rpartition("/")[2]):
        if COMMIT.fullmatch(commit):
            return commit, None
    texts = [tag] if tag is not None else _IN_ADDRESS.findall(address)[-1:]
    for text in texts:
        version = own_version(table, dependency, "tag", text) if "$" not in text else None
        if version is not None:
            return version, ranges.of_own(version)
    return None, None
