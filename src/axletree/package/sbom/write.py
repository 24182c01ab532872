"""Software bills of materials for wheels (PEP 770), written as CycloneDX 1.6 from evidence alone.

Three kinds of evidence are used: libraries that were bundled (each with where it came from, if that is known), vendored
sources whose licence files travel in the metadata folder, and requirements. Nothing is guessed: a version that nothing
states is left out.
"""

from __future__ import annotations

import hashlib
import re
import uuid
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Literal

import msgspec
from packaging.utils import canonicalize_name

from axletree import __version__
from axletree.package.wheel.metadata import parse_requirement

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from axletree.package.wheel.metadata import Metadata

SBOM_NAME = "axletree.cdx.json"
"""Name of the file in ``.dist-info/sboms``."""
TREE_SBOM_NAME = "grafts.cdx.json"
"""Name of the file beside libraries that were taken into a tree, before it is packed."""

_VENDORS = frozenset({"third_party", "third-party", "thirdparty", "3rdparty", "external", "extern", "vendor", "deps"})
"""Folders whose children are other people's sources, by the names that projects use."""
_NAMESPACE = uuid.UUID("b1c9a4b5-3f0e-5c1c-9d65-6d2f0f1d1f77")


class Component(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A part of a wheel, or something that it requires."""

    name: str
    version: str = ""
    """Empty where no evidence states one."""
    origin: Literal["bundled", "vendored", "required"]
    """A binary put into the wheel, source compiled into it, or a distribution that it requires."""
    purl: str = ""
    """Package URL of where it came from."""
    sha256: str = ""
    """Hexadecimal digest of a bundled file as it was before any edit."""
    paths: tuple[str, ...] = ()
    """Where the evidence lies in the wheel: the library itself, or licence files."""
    note: str = ""
    """What else is known, such as the requirement as written."""


def wheel_purl(name: str, version: str) -> str:
    """Package URL of a distribution."""
    return f"pkg:pypi/{canonicalize_name(name)}" + (f"@{_quoted(version)}" if version else "")


def debian_purl(package: str, version: str, architecture: str) -> str:
    """Package URL of a Debian package that a library was taken from."""
    return f"pkg:deb/debian/{package}@{_quoted(version)}?arch={architecture}"


def vendored_components(paths: Iterable[str], *, dist_info: str) -> tuple[Component, ...]:
    """Sources compiled in, told by licence files below ``.dist-info/licenses`` in a vendor folder (PEP 639)."""
    prefix = f"{dist_info}/licenses/"
    found: dict[str, list[str]] = {}
    for path in sorted(paths):
        if path.startswith(prefix) and (name := _vendored_name(path.removeprefix(prefix))):
            found.setdefault(name, []).append(path)
    components = []
    for name, files in sorted(found.items()):
        stem, version = _split_version(name)
        components.append(Component(name=stem, version=version, origin="vendored", paths=tuple(files)))
    return tuple(components)


def required_components(metadata: Metadata) -> tuple[Component, ...]:
    """What a wheel requires; a version only where exactly one is allowed."""
    components: list[Component] = []
    for text in metadata.requires:
        requirement = parse_requirement(text)
        if requirement is None:
            continue
        pins = [part.version for part in requirement.specifier if part.operator == "==" and "*" not in part.version]
        version = pins[0] if len(pins) == 1 == len(requirement.specifier) else ""
        name = canonicalize_name(requirement.name)
        components.append(
            Component(name=name, version=version, origin="required", purl=wheel_purl(name, version), note=text)
        )
    return tuple(sorted(components, key=lambda component: (component.name, component.note)))


def wheel_sbom(
    metadata: Metadata, paths: Iterable[str], *, dist_info: str, bundled: Sequence[Component] = (), epoch: int
) -> bytes:
    """The bill of materials of a wheel, for ``.dist-info/sboms``.

    Args:
        metadata: name, version and requirements.
        paths: what the wheel holds; its licence files tell of vendored sources. For a wheel without compiled code,
            which no such source went into, give none.
        dist_info: the metadata folder in these paths.
        bundled: libraries of others that it holds.
        epoch: date of the document, seconds since 1970.
    """
    name = canonicalize_name(metadata.name)
    subject = Component(name=name, version=metadata.version, origin="bundled", purl=wheel_purl(name, metadata.version))
    vendored = vendored_components(paths, dist_info=dist_info)
    return render_sbom(subject, [*bundled, *vendored, *required_components(metadata)], epoch=epoch)


def render_sbom(subject: Component, components: Sequence[Component], *, epoch: int) -> bytes:
    """A CycloneDX 1.6 document in JSON, the same bytes for the same evidence.

    Args:
        subject: the wheel itself.
        components: its parts and requirements.
        epoch: date of the document, seconds since 1970.
    """
    parts = [_component(component, number) for number, component in enumerate(components)]
    document: dict[str, Any] = {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "timestamp": datetime.fromtimestamp(epoch, tz=UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "tools": {"components": [{"type": "application", "name": "axletree", "version": __version__}]},
            "component": {**_component(subject, -1), "bom-ref": "wheel"},
        },
        "components": parts,
        "dependencies": [{"ref": "wheel", "dependsOn": [part["bom-ref"] for part in parts]}],
    }
    content = hashlib.sha256(msgspec.json.encode(document, order="sorted")).hexdigest()
    document["serialNumber"] = f"urn:uuid:{uuid.uuid5(_NAMESPACE, content)}"
    return msgspec.json.format(msgspec.json.encode(document, order="sorted"), indent=2) + b"\n"


def _component(component: Component, number: int) -> dict[str, Any]:
    data: dict[str, Any] = {
        "type": "library",
        "bom-ref": f"{component.origin}-{number}-{component.name}",
        "name": component.name,
        "scope": "required",
    }
    optional: dict[str, Any] = {
        "version": component.version,
        "purl": component.purl,
        "hashes": [{"alg": "SHA-256", "content": component.sha256}] if component.sha256 else None,
        "evidence": {"occurrences": [{"location": path} for path in component.paths]} if component.paths else None,
    }
    data |= {key: value for key, value in optional.items() if value}
    properties = [{"name": "axletree:origin", "value": component.origin}]
    if component.note:
        properties.append({"name": "axletree:note", "value": component.note})
    return {**data, "properties": properties}


def _vendored_name(path: str) -> str | None:
    """``third_party/fbgemm/external/cutlass/LICENSE`` -> ``cutlass``: the folder below the innermost vendor folder."""
    *folders, _ = path.split("/")
    for index in range(len(folders) - 2, -1, -1):
        if folders[index].lower() in _VENDORS:
            return folders[index + 1]
    return None


def _split_version(name: str) -> tuple[str, str]:
    """``miniz-3.0.2`` -> ``miniz``, ``3.0.2``."""
    found = re.fullmatch(r"(.+?)[-_]v?(\d+(?:\.\d+)+)", name)
    return (found[1], found[2]) if found else (name, "")


def _quoted(version: str) -> str:
    return version.replace("+", "%2B").replace(":", "%3A")
