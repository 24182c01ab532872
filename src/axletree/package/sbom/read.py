"""Read bills of materials in ``.dist-info/sboms`` (PEP 770): CycloneDX and SPDX in JSON, as far as names go.

Other forms that PEP 770 allows (XML, tag-value) are recognised by their beginning, not read. Of bills that Axletree
wrote, the libraries taken in are read whole: they are named again where their files are packed or repaired.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from axletree.core.errors import IntegrityError, Problem
from axletree.package.sbom.write import Component

FOLDER = "sboms"
"""Below the metadata folder."""

_OTHERS = (
    (re.compile(rb"\s*(?:<\?xml[^>]*>\s*)?<(?:\w+:)?bom\b[^>]*cyclonedx", re.IGNORECASE), "CycloneDX (XML)"),
    (re.compile(rb"\s*(?:<\?xml[^>]*>\s*)?<rdf:RDF\b", re.IGNORECASE), "SPDX (RDF)"),
    (re.compile(rb"(?:#[^\n]*\n|\s)*SPDXVersion:\s*SPDX-"), "SPDX (tag-value)"),
    (re.compile(rb"(?:#[^\n]*\n|\s)*spdxVersion:\s*[\"']?SPDX-"), "SPDX (YAML)"),
)
_DEPTH = 20


class Sbom(msgspec.Struct, frozen=True, kw_only=True):
    """A bill of materials."""

    format: str
    """``CycloneDX 1.6``, ``SPDX-2.3``, or the name of a form that is not read."""
    components: tuple[tuple[str, str], ...] = ()
    """(name, version) of each part, in the order of the file; versions may be empty."""


def read_sbom(data: bytes, *, file: str) -> Sbom:
    """Read a bill of materials.

    Raises:
        IntegrityError: it is of no form that PEP 770 names.
    """
    for pattern, name in _OTHERS:
        if pattern.match(data):
            return Sbom(format=name)
    document = _document(data, file)
    if document.get("bomFormat") == "CycloneDX":
        return Sbom(format=f"CycloneDX {document.get('specVersion', '')}".strip(), components=tuple(_nested(document)))
    if isinstance(document.get("spdxVersion"), str):
        return Sbom(format=document["spdxVersion"], components=tuple(_named(document.get("packages"), "versionInfo")))
    if "spdx.org/rdf/3" in str(document.get("@context")):
        packages = [each for each in _objects(document.get("@graph")) if each.get("type") == "software_Package"]
        return Sbom(format="SPDX-3", components=tuple(_named(packages, "software_packageVersion")))
    message = "the file is not a bill of materials: the JSON is neither CycloneDX nor SPDX"
    raise IntegrityError(Problem(file=file, message=message))


def read_bundled(data: bytes, *, file: str) -> tuple[Component, ...]:
    """The libraries of others in a bill that :mod:`axletree.package.sbom.write` wrote; nothing in another tool's.

    Raises:
        IntegrityError: it is no JSON.
    """
    return tuple(
        Component(
            name=each["name"],
            version=_text(each, "version"),
            origin="bundled",
            purl=_text(each, "purl"),
            sha256=next((_text(found, "content") for found in _objects(each.get("hashes"))), ""),
            paths=tuple(_text(found, "location") for found in _objects(_occurrences(each))),
            note=_property(each, "axletree:note"),
        )
        for each in _objects(_document(data, file).get("components"))
        if _text(each, "name") and _property(each, "axletree:origin") == "bundled"
    )


def _document(data: bytes, file: str) -> Mapping[str, Any]:
    try:
        document = msgspec.json.decode(data.removeprefix(b"\xef\xbb\xbf"))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise IntegrityError(Problem(file=file, message=f"the file is not a bill of materials: {error}")) from error
    if not isinstance(document, Mapping):
        raise IntegrityError(
            Problem(file=file, message="the file is not a bill of materials: the JSON is not an object")
        )
    return document


def _occurrences(component: Mapping[str, Any]) -> object:
    evidence = component.get("evidence")
    return evidence.get("occurrences") if isinstance(evidence, Mapping) else None


def _property(component: Mapping[str, Any], name: str) -> str:
    properties = _objects(component.get("properties"))
    return next((_text(each, "value") for each in properties if each.get("name") == name), "")


def _text(values: Mapping[str, Any], key: str) -> str:
    value = values.get(key)
    return value if isinstance(value, str) else ""


def _nested(document: Mapping[str, Any], depth: int = 0) -> Iterator[tuple[str, str]]:
    """Components may have components of their own."""
    for each in _objects(document.get("components")):
        yield from _named([each], "version")
        if depth < _DEPTH:
            yield from _nested(each, depth + 1)


def _named(values: object, version: str) -> Iterator[tuple[str, str]]:
    for each in _objects(values):
        name, number = each.get("name"), each.get(version)
        if isinstance(name, str):
            yield name, number if isinstance(number, str) else ""


def _objects(values: object) -> Iterator[Mapping[str, Any]]:
    if isinstance(values, list):
        yield from (each for each in values if isinstance(each, Mapping))
