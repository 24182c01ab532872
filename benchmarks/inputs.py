"""Real inputs for benchmarks: the ones that the tests find and keep, so that each script runs without arguments."""

from __future__ import annotations

import sys
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

CUDA = "torch==2.14.1"
"""The official wheel for CUDA 13: 555 MB."""
CPU = "torch==2.13.0"


def wheel(requirement: str) -> Path:
    """The wheel that pip finds for a pinned requirement; ends the program where there is none."""
    from support import inputs  # noqa: PLC0415 (importable only now)

    return _found(lambda: inputs.wheel(requirement))


def debian_library(package: str, pattern: str) -> Path:
    """A library of a Debian package, unpacked."""
    from support import inputs  # noqa: PLC0415 (importable only now)

    folder = _found(lambda: inputs.deb(package))
    return max((path for path in folder.rglob(pattern) if not path.is_symlink()), key=lambda path: path.stat().st_size)


def rocm_archives() -> Path:
    """A folder with Debian's packages of ROCm 5.2, rocSPARSE among them."""
    from support import rocm  # noqa: PLC0415 (importable only now)

    return _found(lambda: rocm.rocm_archives(sparse=True))


def debian_layout() -> Path:
    """An OCI layout with a small Debian system."""
    from support.debian_root import debian_image_twice  # noqa: PLC0415 (importable only now)

    return _found(lambda: debian_image_twice("bookworm", ("libbz2-dev",)).root.parent / "oci")


def cuobjdump() -> Path | None:
    """NVIDIA's tool out of its wheel, or ``None``."""
    try:
        archive = wheel("nvidia-cuda-cuobjdump==13.5.37")
    except SystemExit:
        return None
    with zipfile.ZipFile(archive) as tool:
        name = next(name for name in tool.namelist() if name.endswith("bin/cuobjdump"))
        path = Path(tool.extract(name, archive.parent))
    path.chmod(0o755)
    return path


def _found(find: Callable[[], Path]) -> Path:
    try:
        return find()
    except pytest.skip.Exception as missing:
        sys.exit(f"{Path(sys.argv[0]).name}: {missing}")
