"""Match specs of conda taken apart: ``zlib``, ``numpy >=1.26,<2``, ``libblas=*=*mkl``, ``ours::zlib[build=h1_0]``.

The forms are those of conda's ``MatchSpec`` and of CEP 29. A version alone behind a single ``=`` means all that begin
so; with a build behind it, or after a space, it means this one.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from collections.abc import Sequence

_SPEC = re.compile(
    r"(?>(?:(?P<channel>\S+)::)?)(?P<name>[^\s\[\]<>=!~,|]+)\s*+(?P<rest>(?:[^\[\]\s]++(?:\s++(?=[^\[\]\s]))?+)*+)\s*+(?:\[(?P<table>.*)\])?",
    re.DOTALL,
)
_GLUE = re.compile(r"(?<=[<>=!~,|])\s+|\s+(?=[,|])")
"""Spaces inside a version."""
_THREE = re.compile(r"==?(?P<version>[^\s=<>!~,|]+)=(?P<build>[^\s=]+)")
_BEGINS = re.compile(r"=(?P<version>[^\s=<>!~,|]+)")
_FIELD = re.compile(r"""(?<![\w-])([\w-]+)\s*+=\s*(?:"([^"]*)"|'([^']*)'|([^\s,"']+))\s*(?:,|$)""")


class MatchSpec(msgspec.Struct, frozen=True, kw_only=True):
    """A match spec in its parts."""

    name: str
    version: str = "*"
    """As a spec of versions alone has it: ``==1.3``, ``1.3.*``, ``>=1.26,<2``."""
    build: str | None = None
    channel: str | None = None
    more: dict[str, str] = {}
    """What else its brackets ask for: ``md5``, ``build_number``."""


def parse_match_spec(text: str) -> MatchSpec | None:
    """The parts of a match spec; ``None`` where it is none, such as the address of a file."""
    found = _SPEC.fullmatch(text.strip())
    if found is None:
        return None
    version, build = _version_and_build(_GLUE.sub("", found["rest"]))
    table = {match[1].replace("-", "_"): match[2] or match[3] or match[4] or "" for match in _fields(found["table"])}
    channel, _, subdir = (found["channel"] or "").partition("/") if "://" not in text else (found["channel"], "", "")
    if subdir:
        table.setdefault("subdir", subdir)
    return MatchSpec(
        name=found["name"].lower(),
        version=table.pop("version", version),
        build=table.pop("build", build),
        channel=table.pop("channel", channel) or None,
        more=table,
    )


def with_python(specs: Sequence[str], python: str) -> tuple[str, ...]:
    """Specs, and an environment's Python where none of them names it: ``3.11``, ``3.13t`` without a GIL, or none."""
    if not python:
        return tuple(specs)
    names = {spec.name for text in specs if (spec := parse_match_spec(text)) is not None}
    own = [f"python {python.removesuffix('t')}.*"] if "python" not in names else []
    free = ["python-freethreading"] if python.endswith("t") and "python-freethreading" not in names else []
    return (*specs, *own, *free)


def _fields(table: str | None) -> list[re.Match[str]]:
    return list(_FIELD.finditer(table or ""))


def _version_and_build(text: str) -> tuple[str, str | None]:
    if three := _THREE.fullmatch(text):
        version = three["version"]
        return (version if "*" in version else f"=={version}"), three["build"]
    version, _, build = text.partition(" ")
    if begins := _BEGINS.fullmatch(version):
        version = begins["version"] if "*" in begins["version"] else f"{begins['version']}.*"
    elif version and version[0].isalnum() and not any(char in version for char in "*,|"):
        version = f"=={version}"
    return version or "*", build.strip() or None
