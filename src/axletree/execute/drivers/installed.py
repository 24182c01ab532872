"""What a build leaves in its source folder, for projects that install there."""

from __future__ import annotations

import os
import re
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from axletree.disk import remove_tree

if TYPE_CHECKING:
    from collections.abc import Collection

_MANIFEST = "install_manifest.txt"
"""CMake writes it at each install: a line for each file."""
_MODULE = re.compile(r"\.(?:cpython-\w+(?:-[\w-]+)?|abi3|pypy\w+(?:-[\w-]+)?)\.so$")
"""End of an extension module's name, which says what Python it is for."""


def installed_files(source: Path, build: Path) -> tuple[Path, ...]:
    """Files that CMake installed into the source, relative to it, sorted."""
    lines: list[str] = []
    for manifest in _manifests(build):
        with suppress(OSError):
            lines += manifest.read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    paths = {Path(os.path.normpath(line)) for line in lines if line}
    inside = (path.relative_to(source) for path in paths if path.is_relative_to(source))
    return tuple(sorted(path for path in inside if os.path.lexists(source / path)))


def _manifests(build: Path) -> tuple[Path, ...]:
    """CMake's lists of what it installed: of all, and of single folders (target ``c10/install/local``)."""
    return (build / _MANIFEST, *build.glob("*/install_local_manifest.txt"))


def clear_leftovers(source: Path, build: Path, *, ours: Collection[str]) -> None:
    """Remove from a source folder what an earlier build put there and a fresh one would not find.

    That is what CMake installed, perhaps of other settings; setuptools' folders, where it would find files of an older
    source; extension modules of another Python. What CMake and ninja build on stays.

    Args:
        source: folder of the project.
        build: CMake's folder, in there.
        ours: paths of the source itself, relative to the folder.
    """
    for path in installed_files(source, build):
        if path.as_posix() not in ours:
            (source / path).unlink()
    for manifest in _manifests(build):
        manifest.unlink(missing_ok=True)
    for pattern in ("build/lib.*", "build/bdist.*", "build/temp.*", "*.egg-info"):
        for folder in source.glob(pattern):
            if not any(path.startswith(f"{folder.relative_to(source).as_posix()}/") for path in ours):
                with suppress(NotADirectoryError):
                    remove_tree(folder)
    for place, folders, files in os.walk(source):
        if Path(place) == build:
            folders.clear()
            continue
        for name in files:
            path = Path(place, name)
            if _MODULE.search(name) and path.relative_to(source).as_posix() not in ours:
                path.unlink()
