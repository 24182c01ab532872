"""The WHEEL file (PEP 427) and what else of a ``.dist-info`` folder goes into a wheel that is packed again."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import msgspec

from axletree import __version__
from axletree.core.errors import IntegrityError, Problem
from axletree.package.wheel.metadata import Metadata, parse_fields, render_metadata

if TYPE_CHECKING:
    from collections.abc import Iterable

GENERATOR = f"axletree {__version__}"

_KNOWN = frozenset({"wheel-version", "generator", "root-is-purelib", "tag", "build"})
_MADE_ANEW = frozenset({"METADATA", "WHEEL", "RECORD"})
_OF_AN_INSTALLATION = frozenset(
    {"INSTALLER", "REQUESTED", "direct_url.json", "RECORD.jws", "RECORD.p7s", "uv_cache.json"}
)


class WheelInfo(msgspec.Struct, frozen=True, kw_only=True):
    """A WHEEL file."""

    tags: tuple[str, ...]
    """Each single tag, ``cp311-cp311-linux_x86_64``, in the order of the file."""
    purelib: bool
    """Whether its content goes to ``purelib`` rather than ``platlib``."""
    build: str = ""
    generator: str = GENERATOR
    wheel_version: str = "1.0"
    extra: tuple[tuple[str, str], ...] = ()
    """Other fields, (name, value); kept as they are."""


def parse_wheel_info(data: bytes, *, file: str = "WHEEL") -> WheelInfo:
    """Read a WHEEL file.

    Raises:
        IntegrityError: it is no text of header fields, lacks a field, or is of a later major version.
    """
    fields = parse_fields(data, file=file)
    version = fields.get("Wheel-Version") or ""
    problems = [
        Problem(file=file, key=key, message="the field is missing")
        for key in ("Wheel-Version", "Root-Is-Purelib", "Tag")
        if not fields.get(key)
    ]
    if version and version.split(".")[0].strip() != "1":
        problems.append(
            Problem(file=file, key="Wheel-Version", message=f"version {version!r} is not supported (expected 1.x)")
        )
    if problems:
        raise IntegrityError(*problems)
    return WheelInfo(
        tags=tuple(tag.strip() for tag in fields.get_all("Tag")),
        purelib=(fields.get("Root-Is-Purelib") or "").strip().lower() == "true",
        build=(fields.get("Build") or "").strip(),
        generator=(fields.get("Generator") or "").strip(),
        wheel_version=version.strip(),
        extra=tuple((key, value) for key, value in fields.fields if key.lower() not in _KNOWN),
    )


def render_wheel_info(info: WheelInfo) -> bytes:
    """The bytes of a WHEEL file."""
    fields = [
        ("Wheel-Version", info.wheel_version),
        ("Generator", info.generator),
        ("Root-Is-Purelib", "true" if info.purelib else "false"),
        *(("Tag", tag) for tag in info.tags),
    ]
    if info.build:
        fields.append(("Build", info.build))
    return render_metadata(Metadata(fields=(*fields, *info.extra)))


def carry_dist_info(paths: Iterable[str], *, source: str, target: str) -> dict[str, str]:
    """Where the other files of a ``.dist-info`` folder (entry points, licences, SBOMs ...) go when it is renamed.

    Args:
        paths: all paths of the tree.
        source: the folder as it is in the tree, ``torch_scatter-2.1.2.dist-info``.
        target: the folder in the new wheel.

    Returns:
        Path in the tree -> path in the wheel. What a wheel writer makes anew (METADATA, WHEEL, RECORD) and what only
        tells of an installation or a signature of the old content is left out.
    """
    prefix = f"{source}/"
    left_out = {prefix + name for name in _MADE_ANEW | _OF_AN_INSTALLATION}
    return {
        path: f"{target}/{path.removeprefix(prefix)}"
        for path in paths
        if path.startswith(prefix) and path not in left_out
    }


def carry_data(paths: Iterable[str], *, source: str, target: str) -> dict[str, str]:
    """Where the files of a wheel's ``.data`` folder go when its ``.dist-info`` folder is renamed.

    Args:
        paths: all paths of the wheel.
        source: the ``.dist-info`` folder as it is.
        target: the ``.dist-info`` folder in the new wheel.

    Returns:
        Path in the wheel -> path in the new wheel. Old tools wrote the two folders in different spellings of the name,
        so they are compared without them.
    """
    old, new = source.removesuffix(".dist-info"), target.removesuffix(".dist-info")
    found: dict[str, str] = {}
    for path in paths:
        top, slash, rest = path.partition("/")
        if slash and top.endswith(".data") and _plain(top.removesuffix(".data")) == _plain(old):
            found[path] = f"{new}.data/{rest}"
    return found


def _plain(stem: str) -> str:
    return re.sub(r"[-_.]+", "-", stem).lower()
