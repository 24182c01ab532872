"""The small files of an SDK's wheels: metadata, console scripts, the Python packages beside the platform folders."""

from __future__ import annotations

import re
from keyword import iskeyword
from typing import TYPE_CHECKING

import msgspec

from axletree.package.sdk.shipped import FILE
from axletree.package.wheel.metadata import Metadata
from axletree.package.wheel.names import dist_info_folder
from axletree.package.wheel.writer import Member

if TYPE_CHECKING:
    from collections.abc import Sequence

    from axletree.package.sdk.manifest import Manifest
    from axletree.package.sdk.shipped import PackageFile, SdkFile, ShippedCommand

REQUIRES_PYTHON = ">=3.9"


def module_of(dist: str) -> str:
    """The Python package of a distribution: ``rocm_sdk_core``."""
    return dist.replace("-", "_")


def metadata(
    manifest: Manifest, *, dist: str, version: str, summary: str = "", requires: Sequence[str] = ()
) -> Metadata:
    """The METADATA of a distribution (core metadata 2.4).

    Args:
        manifest: licence and addresses.
        dist: its name.
        version: its version.
        summary: one line.
        requires: requirements (PEP 508).
    """
    about = manifest.sdk
    fields = [("Metadata-Version", "2.4"), ("Name", dist), ("Version", version)]
    if summary or about.summary:
        fields.append(("Summary", summary or about.summary))
    if about.license:
        fields.append(("License-Expression", about.license))
    fields += [("Project-URL", f"{name}, {url}") for name, url in about.urls.items()]
    fields.append(("Requires-Python", REQUIRES_PYTHON))
    fields += [("Requires-Dist", text) for text in requires]
    return Metadata(fields=tuple(fields))


def shipped_json(shipped: PackageFile | SdkFile) -> bytes:
    """The bytes of ``_sdk.json``."""
    return msgspec.json.format(msgspec.json.encode(shipped, order="deterministic"), indent=1) + b"\n"


def package_members(shipped: PackageFile, *, runtime: str) -> tuple[Member, ...]:
    """The files of a wheel with a platform folder, but for what lies in that.

    Args:
        shipped: what the package ships.
        runtime: import name of the selector, whose runtime starts programs.
    """
    module = module_of(shipped.dist)
    members = [
        Member(path=f"{shipped.folder}/__init__.py", data=b""),
        Member(path=f"{shipped.folder}/{FILE}", data=shipped_json(shipped)),
    ]
    if shipped.kind != "device":
        members += module_members(module, shipped)
        members += _script_members(module, shipped, runtime)
    return tuple(members)


def devel_members(shipped: PackageFile, *, runtime: str) -> tuple[Member, ...]:
    """The files of the devel wheel beside its payload."""
    module = module_of(shipped.dist)
    return (
        *module_members(module, shipped),
        Member(path=f"{module}/{FILE}", data=shipped_json(shipped)),
        *_script_members(module, shipped, runtime),
    )


def module_members(module: str, shipped: PackageFile) -> tuple[Member, ...]:
    """The Python package that says what is installed."""
    facts = {
        "__version__": shipped.version,
        "DIST": shipped.dist,
        "PLATFORM_PACKAGE": shipped.folder,
        "TARGETS": shipped.targets,
    }
    text = "".join(f"{name} = {value!r}\n" for name, value in facts.items())
    head = f'"""{shipped.dist}: its files are in {shipped.folder}."""\n\nfrom ._dist_info import __version__\n'
    return (
        Member(path=f"{module}/__init__.py", data=head.encode()),
        Member(path=f"{module}/_dist_info.py", data=text.encode()),
    )


_TAKEN = frozenset({"os", "sys", "Path", "_run", "_FOLDER"})
"""Names that the module of console scripts has beside its functions."""


def function_name(command: str) -> str:
    """The function that a console script calls: ``amdclangpp`` for ``amdclang++``."""
    name = re.sub(r"\W", "_", command.replace("+", "p"))
    return name if name.isidentifier() and not iskeyword(name) and name not in _TAKEN else f"_{name}"


def _script_members(module: str, shipped: PackageFile, runtime: str) -> tuple[Member, ...]:
    if not shipped.commands:
        return ()
    names: dict[str, ShippedCommand] = {}
    for command in shipped.commands:
        name = function_name(command.name)
        while name in names:
            name += "_"
        names[name] = command
    points = "".join(f"{command.name} = {module}._cli:{name}\n" for name, command in names.items())
    folder = dist_info_folder(shipped.dist, shipped.version)
    return (
        Member(path=f"{module}/_cli.py", data=_render_scripts(names, shipped, runtime).encode()),
        Member(path=f"{folder}/entry_points.txt", data=f"[console_scripts]\n{points}".encode()),
    )


_SCRIPTS = '''"""Console scripts: each becomes the program of its name."""

import os
import sys
from pathlib import Path

_FOLDER = Path(__file__).parent.parent / {folder!r}


def _run(name: str, path: str) -> None:
    try:
        from {runtime}._launch import launch
    except ModuleNotFoundError:  # the selector is not installed: what is here can be started all the same
        os.execv(_FOLDER / path, [str(_FOLDER / path), *sys.argv[1:]])
    launch({folder!r}, name)
'''
_SCRIPT = """

def {name}() -> None:
    _run({command!r}, {path!r})
"""


def _render_scripts(names: dict[str, ShippedCommand], shipped: PackageFile, runtime: str) -> str:
    text = _SCRIPTS.format(folder=shipped.folder, runtime=runtime)
    return text + "".join(
        _SCRIPT.format(name=name, command=command.name, path=command.path) for name, command in names.items()
    )
