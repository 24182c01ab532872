"""Core metadata (PEP 241 to PEP 639, versions 1.0 to 2.4): read, changed and written without losing anything.

A file is kept as its fields in their order, unknown ones included, and its description; what is not changed is written
back as it was read.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import msgspec
from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from axletree.core.errors import IntegrityError, Problem

if TYPE_CHECKING:
    from collections.abc import Iterable

_FIELD = re.compile(r"([!-9;-~]+):[ \t]*(.*)", re.DOTALL)


class Metadata(msgspec.Struct, frozen=True, kw_only=True):
    """A METADATA file: header fields and the description below them."""

    fields: tuple[tuple[str, str], ...]
    """(name, value) in the order of the file; a value of several lines keeps its indentation."""
    description: str = ""
    """What stands below the empty line."""

    def get(self, name: str) -> str | None:
        """The first value of a field; names are compared without case."""
        return next((value for key, value in self.fields if key.lower() == name.lower()), None)

    def get_all(self, name: str) -> tuple[str, ...]:
        """All values of a field."""
        return tuple(value for key, value in self.fields if key.lower() == name.lower())

    @property
    def name(self) -> str:
        """``Name``, as written; empty where it is missing."""
        return self.get("Name") or ""

    @property
    def version(self) -> str:
        """``Version``, as written; empty where it is missing."""
        return self.get("Version") or ""

    @property
    def requires(self) -> tuple[str, ...]:
        """``Requires-Dist``, as written."""
        return self.get_all("Requires-Dist")


def parse_fields(data: bytes, *, file: str) -> Metadata:
    """Read a file of header fields, as METADATA and WHEEL are.

    Raises:
        IntegrityError: no UTF-8, or lines that are no fields.
    """
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise IntegrityError(Problem(file=file, message=f"the file is not UTF-8 text: {error.reason}")) from error
    text = text.replace("\r\n", "\n").removeprefix("\ufeff")
    head, _, description = text.partition("\n\n") if not text.startswith("\n") else ("", "", text[1:])
    fields: list[tuple[str, str]] = []
    problems: list[Problem] = []
    for number, line in enumerate(head.removesuffix("\n").split("\n") if head else (), start=1):
        if line[:1] in {" ", "\t"} and fields:
            key, value = fields[-1]
            fields[-1] = (key, f"{value}\n{line}")
        elif found := _FIELD.fullmatch(line):
            fields.append((found[1], found[2]))
        else:
            problems.append(
                Problem(file=file, line=number, message="the line is not a valid header field", excerpt=line[:100])
            )
    if problems:
        raise IntegrityError(*problems[:20])
    return Metadata(fields=tuple(fields), description=description)


def parse_metadata(data: bytes, *, file: str = "METADATA") -> Metadata:
    """Read a METADATA file.

    Raises:
        IntegrityError: it is no text of header fields, or lacks a valid name or version.
    """
    metadata = parse_fields(data, file=file)
    problems = [
        Problem(file=file, key=key, message="the field is missing")
        for key in ("Metadata-Version", "Name", "Version")
        if not metadata.get(key)
    ]
    if metadata.version and parse_version(metadata.version) is None:
        problems.append(
            Problem(file=file, key="Version", message=f"{metadata.version!r} is not a valid version (PEP 440)")
        )
    if problems:
        raise IntegrityError(*problems)
    return metadata


def render_metadata(metadata: Metadata) -> bytes:
    """The bytes of a file of header fields, with its description."""
    head = "".join(f"{key}: {value}\n" if value else f"{key}:\n" for key, value in metadata.fields)
    return (f"{head}\n{metadata.description}" if metadata.description else head).encode()


def create_metadata(
    *,
    name: str,
    version: str,
    summary: str = "",
    license: str | None = None,  # noqa: A002 (the field's own name)
    requires_python: str | None = None,
    requires: Iterable[str] = (),
) -> Metadata:
    """Metadata for a tree that brings none.

    Args:
        name: distribution.
        version: with its local label.
        summary: one line.
        license: SPDX expression (PEP 639).
        requires_python: version specifier.
        requires: requirements (PEP 508).

    Raises:
        IntegrityError: a requirement or the version is invalid.
    """
    fields = [("Metadata-Version", "2.4"), ("Name", name), ("Version", version)]
    optional = [("Summary", summary), ("License-Expression", license), ("Requires-Python", requires_python)]
    fields += [(key, " ".join(value.split())) for key, value in optional if value]
    metadata = with_version(Metadata(fields=tuple(fields)), version)
    for requirement in requires:
        metadata = with_requirement(metadata, requirement)
    return metadata


def with_field(metadata: Metadata, name: str, value: str) -> Metadata:
    """The same metadata with another value of a field that is there once, in its place; or behind the version."""
    if metadata.get(name) is not None:
        return _replace(metadata, name, value)
    at = next((number for number, (key, _) in enumerate(metadata.fields, 1) if key.lower() == "version"), None)
    fields = list(metadata.fields)
    fields.insert(len(fields) if at is None else at, (name, value))
    return msgspec.structs.replace(metadata, fields=tuple(fields))


def with_version(metadata: Metadata, version: str) -> Metadata:
    """The same metadata for another version, normalised.

    Raises:
        IntegrityError: no version (PEP 440).
    """
    parsed = parse_version(version)
    if parsed is None:
        raise IntegrityError(Problem(key="Version", message=f"{version!r} is not a valid version (PEP 440)"))
    return _replace(metadata, "Version", str(parsed))


def with_requirement(metadata: Metadata, requirement: str) -> Metadata:
    """Add a requirement; one on the same distribution under the same marker is replaced, in its place.

    Raises:
        IntegrityError: no requirement (PEP 508).
    """
    new = parse_requirement(requirement)
    if new is None:
        raise IntegrityError(
            Problem(key="Requires-Dist", message=f"{requirement!r} is not a valid requirement (PEP 508)")
        )
    fields: list[tuple[str, str]] = []
    placed = False
    last = 0
    for key, value in metadata.fields:
        if key.lower() == "requires-dist":
            if (old := parse_requirement(value)) is not None and same_place(old, new):
                if placed:
                    continue
                placed, value = True, str(new)  # noqa: PLW2901 (the replaced value)
            last = len(fields) + 1
        fields.append((key, value))
    if not placed:
        fields.insert(last or len(fields), ("Requires-Dist", str(new)))
    return msgspec.structs.replace(metadata, fields=tuple(fields))


def parse_version(text: str) -> Version | None:
    """A version (PEP 440); ``None`` for what is none."""
    try:
        return Version(text)
    except InvalidVersion:
        return None


def parse_requirement(text: str) -> Requirement | None:
    """A requirement; ``None`` for what old metadata may hold and PEP 508 forbids."""
    try:
        return Requirement(text)
    except InvalidRequirement:
        return None


def same_place(old: Requirement, new: Requirement) -> bool:
    """Whether two requirements are on the same distribution under the same marker: one replaces the other."""
    return canonicalize_name(old.name) == canonicalize_name(new.name) and str(old.marker) == str(new.marker)


def _replace(metadata: Metadata, name: str, value: str) -> Metadata:
    fields = tuple((key, value if key.lower() == name.lower() else old) for key, old in metadata.fields)
    return msgspec.structs.replace(metadata, fields=fields)
