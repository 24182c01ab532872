"""What a dependency is called where, and how its versions are written there: the table, and looking things up in it."""

from __future__ import annotations

import re
import tomllib
from typing import TYPE_CHECKING, Literal

import msgspec
from packaging.utils import canonicalize_name

from axletree.core.errors import IntegrityError, Problem
from axletree.core.shipped import Shipped
from axletree.package.conda.requires import CONDA_NAMES, Names, conda_name
from axletree.package.drift.tags import tag_version
from axletree.package.wheel.metadata import parse_version

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

Kind = Literal["submodule", "cmake", "pin", "variable", "pypi", "conda", "soname", "tag", "macro"]
"""Where a name or a version is written."""


_LONGEST = 200


class Rewrite(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How versions of one kind are written in another way than the table's own."""

    of: tuple[Kind, ...]
    pattern: str
    """Regular expression that the whole version must match."""
    to: str
    r"""Its own form; ``\1`` stands for a group. One that ends in ``.*`` means all versions that begin so."""


class Macro(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where a vendored copy says its version."""

    file: str
    """Glob pattern from the copy's folder."""
    pattern: str
    """Regular expression; its groups, joined by dots, are the version."""
    base: int | None = None
    """Where the one group is a number made of all parts: 110002 with base 100 is 11.0.2."""


class Dependency(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One line of the table."""

    names: tuple[str, ...] = ()
    """Other names; ``submodule:protobuf`` is one of that kind only."""
    homes: tuple[str, ...] = ()
    """Repositories of the project itself, ``github.com/NVIDIA/nccl``; any other is a fork."""
    versions: tuple[Rewrite, ...] = ()
    macros: tuple[Macro, ...] = ()


class DependencyTable(msgspec.Struct, frozen=True, kw_only=True):
    """All that is known, ready to be asked."""

    dependencies: dict[str, Dependency]
    aliases: dict[str, str]
    """Name, with or without its kind before it -> dependency."""
    conda: Names
    suffixes: tuple[str, ...]
    """What conda packages with the headers of a library add to its name."""


class _File(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    suffixes: tuple[str, ...]
    dependencies: dict[str, Dependency]


def parse_table(data: bytes, *, file: str, conda: Names) -> DependencyTable:
    """Read the table of dependencies.

    Args:
        data: TOML: ``suffixes``, and a table ``dependencies.NAME`` for each that has other names or versions.
        file: its name in errors.
        conda: conda names of distributions.

    Raises:
        IntegrityError: it is not in that form, a pattern is no regular expression, or two dependencies share a name.
    """
    try:
        table = msgspec.convert(tomllib.loads(data.decode("utf-8")), _File)
        for dependency in table.dependencies.values():
            for pattern in [each.pattern for each in dependency.versions] + [
                each.pattern for each in dependency.macros
            ]:
                re.compile(pattern)
    except (ValueError, msgspec.ValidationError, re.error) as error:
        raise IntegrityError(
            Problem(file=file, message=f"the file is not a valid table of dependencies: {error}")
        ) from error
    aliases: dict[str, str] = {}
    for name, dependency in table.dependencies.items():
        for alias in map(_plain, dependency.names):
            other = aliases.setdefault(alias, name)
            if other != name:
                message = f"the dependencies {name} and {other} cannot share this name"
                raise IntegrityError(Problem(file=file, key=alias, message=message))
    return DependencyTable(dependencies=table.dependencies, aliases=aliases, conda=conda, suffixes=table.suffixes)


def _decode(files: Mapping[str, bytes]) -> DependencyTable:
    return parse_table(files[_FILE], file=_FILE, conda=CONDA_NAMES.decode(files))


_FILE = "dependencies.toml"
DEPENDENCIES = Shipped(patterns=(_FILE, *CONDA_NAMES.patterns), decode=_decode)
"""The table that ships."""


def look_up(table: DependencyTable, kind: Kind, name: str) -> str:
    """The dependency that a name of some kind means; a name that the table lacks is its own."""
    plain = _plain(name)
    for candidate in _candidates(table, kind, plain):
        for key in (f"{kind}:{candidate}", candidate):
            if key in table.aliases:
                return table.aliases[key]
        if candidate in table.dependencies:  # its own name
            return candidate
    return str(canonicalize_name(conda_name(plain, table.conda))) if kind == "pypi" else plain


def _candidates(table: DependencyTable, kind: Kind, name: str) -> Iterable[str]:
    yield name
    if kind == "pypi":
        yield re.sub(r"-cu\d+$", "", name)
        yield str(canonicalize_name(conda_name(re.sub(r"-cu\d+$", "", name), table.conda)))
    if kind == "conda":
        yield from (name.removesuffix(suffix) for suffix in table.suffixes if name.endswith(suffix))


def _plain(name: str) -> str:
    return re.sub(r"[-_.\s]+", "-", name.strip()).lower()


def is_known(table: DependencyTable, kind: Kind, name: str) -> bool:
    """Whether the table itself has a name of some kind."""
    return f"{kind}:{_plain(name)}" in table.aliases


def own_version(table: DependencyTable, dependency: str, kind: Kind, text: str) -> str | None:
    """A version, written as files of some kind have it, in the table's own form; ``None`` where it is no version.

    The result is a version, or the beginning of one with ``.*``; for some SONAMEs it is a bound, ``>=2022``.
    """
    if len(text) > _LONGEST:
        return None
    known = table.dependencies.get(dependency)
    for rewrite in known.versions if known is not None else ():
        match = re.fullmatch(rewrite.pattern, text.strip()) if kind in rewrite.of else None
        if match is not None:
            return match.expand(rewrite.to)
    if kind in {"tag", "pin"}:
        found = tag_version(text.strip())
        return None if found is None else str(found)
    version = parse_version(text)
    return None if version is None else str(version)
