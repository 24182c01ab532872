"""Read what a torch exports: from its wheel, or from an environment in which it is installed."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from axletree.binary.source import BufferSource
from axletree.core.errors import Problem, UsageError
from axletree.host.archive import map_file
from axletree.host.run import run
from axletree.package.libraries.torch_symbols import (
    LIBRARIES,
    VERSION_MODULE,
    collect_exports,
    read_version,
    wheel_exports,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from axletree.package.libraries.torch_symbols import TorchExports

_PROBE = "import sysconfig; print(sysconfig.get_path('platlib')); print(sysconfig.get_path('purelib'))"
_PROBE_SECONDS = 20
_HINT = "specify a torch wheel, or a virtual environment, its site-packages folder or its Python"


def exports_of_torch(path: Path) -> TorchExports:
    """The exports of the torch at a path.

    Args:
        path: a wheel, a virtual environment's folder, a site-packages folder, or a Python program (it is started once,
            to ask where its packages are; torch itself is not imported).

    Raises:
        UsageError: there is no torch.
        HostError: something can't be read.
        IntegrityError: the wheel or a library is damaged, or torch is for another system than Linux.
    """
    if path.is_file() and path.suffix == ".whl":
        return wheel_exports(map_file(path), filename=path.name)
    packages = _find_packages(path)
    module = packages / VERSION_MODULE
    version = read_version(map_file(module).tobytes()) if module.is_file() else ""
    return collect_exports(_libraries(packages / LIBRARIES), origin=str(path), version=version)


def _find_packages(path: Path) -> Path:
    """The folder that has ``torch`` in it."""
    candidates = tuple(_ask_python(path) if path.is_file() else _below(path))
    found = next((folder for folder in candidates if (folder / LIBRARIES).is_dir()), None)
    if found is not None:
        return found
    if not path.exists():
        raise UsageError(Problem(file=str(path), message="the path does not exist", hint=_HINT))
    places = ", ".join(map(str, candidates))
    raise UsageError(
        Problem(file=str(path), message=f"torch was not found in any of these folders: {places}", hint=_HINT)
    )


def _below(folder: Path) -> Iterator[Path]:
    yield folder
    for pattern in ("lib/python3*/site-packages", "lib64/python3*/site-packages"):
        yield from sorted(folder.glob(pattern))


def _ask_python(program: Path) -> tuple[Path, ...]:
    if not os.access(program, os.X_OK):
        raise UsageError(
            Problem(file=str(program), message="the file is neither a wheel nor an executable", hint=_HINT)
        )
    what = f"asking {program} for its package folders"
    said = run([program, "-I", "-c", _PROBE], what=what, seconds=_PROBE_SECONDS)
    return tuple(dict.fromkeys(Path(line) for line in said.splitlines()))


def _libraries(folder: Path) -> Iterator[tuple[str, BufferSource]]:
    for path in sorted(folder.iterdir()):
        if ".so" in path.name and path.is_file() and path.stat().st_size:
            yield path.name, BufferSource(map_file(path))
