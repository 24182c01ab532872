"""What a project that is built against the SDK carries: a module that prepares the process, and a requirement."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from ._sdk import Sdk


def init_module(sdk: Sdk, preload: Sequence[str], version: str, *, fail: bool) -> str:
    """Source of the module; its ``initialize`` is called before extension modules are imported.

    Raises:
        ValueError: the SDK has no library of a name.
    """
    known = {name for package in sdk.file.packages for name in package.shortnames if package.kind != "devel"}
    unknown = [name for name in preload if name not in known]
    if unknown:
        raise ValueError(
            f"{sdk.file.sdk} does not include these libraries: {', '.join(unknown)}; available: "
            f"{', '.join(sorted(known))}"
        )
    names = "".join(f"            {name!r},\n" for name in preload)
    failing = "        fail_on_version_mismatch=True,\n" if fail else ""
    return (
        f'"""Loads what this package needs of {sdk.file.sdk}; written by `{sdk.file.command} framework init-file`."""\n'
        f"\n\ndef initialize():\n    import {sdk.file.module}\n\n    {sdk.file.module}.initialize_process(\n"
        f"        preload_shortnames=[\n{names}        ],\n        check_version={version!r},\n{failing}    )\n"
    )


def place_of(sdk: Sdk, path: Path) -> Path:
    """The file that is meant: in a folder the one of the usual name, ``_rocm_init.py``."""
    return path / f"_{sdk.file.sdk.replace('-', '_')}_init.py" if path.is_dir() else path


def requirement(sdk: Sdk, extras: Iterable[str]) -> str:
    """What a project's packages require: the selector at this version, with extras.

    Raises:
        ValueError: the SDK has no such extra.
    """
    extras = list(extras)
    known = sdk.extras()
    unknown = [extra for extra in extras if extra not in known]
    if unknown:
        raise ValueError(
            f"{sdk.file.dist} does not provide these extras: {', '.join(unknown)}; available: {', '.join(known)}"
        )
    return sdk.requirement(extras)
