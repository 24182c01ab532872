"""What a project that is built against the SDK carries: a module that prepares the process, and a requirement."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from ._sdk import SdkError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ._sdk import Sdk


def init_module(sdk: Sdk, preload: Sequence[str], version: str, *, fail: bool) -> str:
    """Source of the module; its ``initialize`` is called before extension modules are imported.

    Raises:
        ValueError: the SDK has no library of a name.
    """
    known = {name for package in sdk.file.packages for name in package.shortnames if package.kind != "devel"}
    unknown = [name for name in preload if name not in known]
    if unknown:
        raise ValueError(f"no library of {sdk.file.sdk}: {', '.join(unknown)}; known: {', '.join(sorted(known))}")
    names = "".join(f"            {name!r},\n" for name in preload)
    failing = "        fail_on_version_mismatch=True,\n" if fail else ""
    return (
        f'"""Loads what this package needs of {sdk.file.sdk}; written by `{sdk.file.command} framework init-file`."""\n'
        f"\n\ndef initialize():\n    import {sdk.file.module}\n\n    {sdk.file.module}.initialize_process(\n"
        f"        preload_shortnames=[\n{names}        ],\n        check_version={version!r},\n{failing}    )\n"
    )


def write_init_module(sdk: Sdk, place: Path, text: str) -> Path:
    """Write the module to a file, or into a folder under its usual name; a reader never sees half of it."""
    path = place / f"_{sdk.file.sdk.replace('-', '_')}_init.py" if place.is_dir() else place
    if not path.parent.is_dir():
        raise SdkError(f"{path.parent} is not a folder")
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        beside.write_text(text, encoding="utf-8")
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)
    return path


def requirement(sdk: Sdk, extras: Iterable[str]) -> str:
    """What a project's packages require: the selector at this version, with extras.

    Raises:
        ValueError: the SDK has no such extra.
    """
    extras = list(extras)
    known = sdk.extras()
    unknown = [extra for extra in extras if extra not in known]
    if unknown:
        raise ValueError(f"no extra of {sdk.file.dist}: {', '.join(unknown)}; known: {', '.join(known)}")
    return sdk.requirement(extras)
