"""The files of ``info/``: how conda, mamba and rattler read them (CEP 34)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import msgspec

from axletree.core.values import canonical_json
from axletree.package.conda.model import PLACEHOLDER, CondaFile, CondaPackage, FileMode

if TYPE_CHECKING:
    from collections.abc import Sequence

_SYSTEMS = {"win": "win32"}
_MACHINES = {"64": "x86_64", "32": "x86", "arm64": "arm64"}


class PathEntry(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """A line of ``paths.json``: what lies at a path of the package."""

    path: str = msgspec.field(name="_path")
    path_type: Literal["hardlink", "softlink", "directory"]
    sha256: str | None = None
    """Of the content, hexadecimal; for a link of the file in the package that it leads to."""
    size_in_bytes: int | None = None
    """Of the content; for a link of its target's name."""
    file_mode: FileMode | None = None
    """How the placeholder is replaced."""
    prefix_placeholder: str | None = None
    no_link: bool = False


class PathsJson(msgspec.Struct, frozen=True, kw_only=True):
    """``paths.json``."""

    paths: tuple[PathEntry, ...]
    paths_version: int = 1


class IndexJson(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """``index.json``: what solvers see. ``timestamp`` is in milliseconds since 1970."""

    name: str
    version: str
    build: str
    build_number: int
    depends: tuple[str, ...] = ()
    arch: str | None = None
    constrains: tuple[str, ...] = ()
    features: str | None = None
    license: str | None = None
    license_family: str | None = None
    noarch: str | None = None
    platform: str | None = None
    python_site_packages_path: str | None = None
    subdir: str | None = None
    timestamp: int | None = None
    track_features: str | list[str] = ""


def index_json(package: CondaPackage, *, epoch: int) -> IndexJson:
    """What ``index.json`` says of a package that was made at a time (seconds since 1970)."""
    system, _, machine = package.subdir.partition("-")
    return IndexJson(
        name=package.name,
        version=package.version,
        build=package.build,
        build_number=package.build_number,
        depends=package.depends,
        arch=_MACHINES.get(machine, machine) or None,
        constrains=package.constrains,
        license=package.about.license,
        license_family=package.about.license_family,
        noarch=package.noarch,
        platform=_SYSTEMS.get(system, system) if machine else None,
        python_site_packages_path=package.site_packages,
        subdir=package.subdir,
        timestamp=epoch * 1000,
        track_features=" ".join(package.track_features),
    )


def info_files(package: CondaPackage, paths: Sequence[PathEntry], *, epoch: int) -> tuple[CondaFile, ...]:
    """All files of ``info/`` below it, for a package with these paths."""
    index = msgspec.to_builtins(index_json(package, epoch=epoch)) | {"depends": list(package.depends)}
    texts: dict[str, bytes] = {
        "index.json": _json(index),
        "paths.json": _json(PathsJson(paths=tuple(paths))),
        "about.json": _json(package.about),
        "hash_input.json": _json(package.hash_input),
        "files": "".join(f"{entry.path}\n" for entry in paths).encode(),
    }
    if package.run_exports is not None:
        texts["run_exports.json"] = _json(package.run_exports)
    if package.noarch == "python":
        texts["link.json"] = _json(
            {"noarch": {"type": "python", "entry_points": package.entry_points}, "package_metadata_version": 1}
        )
    if any(entry.prefix_placeholder for entry in paths):
        texts["has_prefix"] = "".join(_prefix_line(entry) for entry in paths if entry.prefix_placeholder).encode()
    return (*(CondaFile(path=path, data=data) for path, data in texts.items()), *package.info)


OWN = frozenset(
    {"index.json", "paths.json", "about.json", "hash_input.json", "files", "run_exports.json", "link.json"}
    | {"has_prefix"}
)
"""What the writer makes itself."""


def render_script(entry_point: str, *, python: str) -> bytes:
    """The script of an entry point ``name = module:function``, as conda itself writes it.

    Args:
        entry_point: as ``entry_points.txt`` has it.
        python: ``3.11``; the script starts ``bin/python3.11`` of the prefix.
    """
    module, _, function = entry_point.partition("=")[2].partition("[")[0].strip().partition(":")
    module, function = module.strip(), function.strip()
    return f"""\
#!{PLACEHOLDER}/bin/python{python}
# -*- coding: utf-8 -*-
import re
import sys

from {module} import {function.partition(".")[0]}

if __name__ == '__main__':
    sys.argv[0] = re.sub(r'(-script\\.pyw?|\\.exe)?$', '', sys.argv[0])
    sys.exit({function}())
""".encode()


def _prefix_line(entry: PathEntry) -> str:
    """A line of ``has_prefix``, which tools older than ``paths.json`` read."""
    fields = (entry.prefix_placeholder or "", entry.file_mode or "text", entry.path)
    return "{} {} {}\n".format(*(f'"{field}"' if " " in field else field for field in fields))


def _json(value: object) -> bytes:
    return msgspec.json.format(canonical_json(value), indent=2) + b"\n"
