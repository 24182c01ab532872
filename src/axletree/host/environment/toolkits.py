"""Where a GPU toolkit is on this machine, and what it brings: folders that really exist."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from axletree.environment.delta import Delta
from axletree.environment.layers import cuda_layer, rocm_layer, setting

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from axletree.environment.layers import Layer, World

_PROGRAMS = {"cuda": "nvcc", "rocm": "hipcc"}


def find_toolkit(world: World, release: str | None, *, environ: Mapping[str, str], given: str | None) -> Path | None:
    """The root of a toolkit: the given one, what variables name, the usual places, that of the compiler on PATH.

    Args:
        world: of which GPUs.
        release: ``13.0``: its folder goes before one without a number.
        environ: the user's variables.
        given: named by the recipe or the user; it is taken even if nothing is there, so that this is told.
    """
    if world == "cpu":
        return None
    if given is not None:
        return Path(given).expanduser().absolute()
    return next((root for root in _roots(world, release, environ) if _compiler_in(root, world)), None)


def _roots(world: World, release: str | None, environ: Mapping[str, str]) -> Iterator[Path]:
    names = {"cuda": ("CUDA_HOME", "CUDA_PATH"), "rocm": ("ROCM_PATH", "ROCM_HOME")}[world]
    yield from (Path(environ[name]).absolute() for name in names if environ.get(name))
    usual = {"cuda": "/usr/local/cuda", "rocm": "/opt/rocm"}[world]
    if release is not None:
        yield from (Path(f"{usual}-{release}"), *sorted(Path(usual).parent.glob(f"{Path(usual).name}-{release}.*")))
    yield Path(usual)
    found = shutil.which(_PROGRAMS[world], path=environ.get("PATH", os.defpath))
    if found is not None:
        yield Path(found).resolve().parents[1]


def _compiler_in(root: Path, world: World) -> bool:
    return (root / "bin" / _PROGRAMS[world]).exists()


def toolkit_layer(world: World, root: Path, origin: str) -> Layer | None:
    """What a toolkit brings; ``None`` where there is none."""
    if not _compiler_in(root, world):
        return None
    return _cuda(root, origin) if world == "cuda" else _rocm(root, origin)


def _cuda(root: Path, origin: str) -> Layer:
    targets = sorted(root.glob("targets/*-linux"))
    include = _folders([root / "include", *(target / "include" for target in targets)])
    link = _folders([root / "lib64", root / "lib", *(target / "lib" for target in targets)])
    # The driver's library is no part of a toolkit: to link against, there is a stub, never to be loaded.
    stubs = _folders([Path(folder) / "stubs" for folder in link])
    return cuda_layer(str(root), include=include, link=(*link, *stubs), run=link, origin=origin)


def _rocm(root: Path, origin: str) -> Layer:
    machine = os.uname().machine
    clangs = [root / "llvm" / "bin", root / "lib" / "llvm" / "bin", *sorted(root.glob("lib/llvm-*/bin"), reverse=True)]
    clang = next(
        (folder for folder in clangs if (folder / "clang++").exists() or (folder / "clang").exists()), clangs[0]
    )
    libraries = _folders([root / "lib", root / "lib64", root / "lib" / f"{machine}-linux-gnu"])
    own = [folder for folder in (clang.parent / "lib",) if any(folder.glob("lib*.so*"))]
    device = root / "lib" / f"{machine}-linux-gnu" / "amdgcn" / "bitcode"
    layer = rocm_layer(
        str(root),
        clang=str(clang),
        device=str(device) if device.is_dir() else None,
        lib=[folder for folder in libraries if any(Path(folder).glob("lib*.so*"))],
        origin=origin,
    )
    more = [setting("HSA_PATH", str(root), origin)]
    perl = root / "share" / "perl5"
    if perl.is_dir() and str(root) != "/usr":  # a tree that was unpacked elsewhere: its hipcc is a Perl program
        more.append(Delta(variable="PERL5LIB", operation="prepend", value=str(perl), origin=origin))
    run = tuple(dict.fromkeys([*layer.run, *map(str, own)]))
    return replace(layer, run=run, settings=(*layer.settings, *more))


def _folders(paths: Iterable[Path]) -> tuple[str, ...]:
    """Those that are there, each once under the first of its names."""
    found: dict[str, str] = {}
    for path in paths:
        if path.is_dir():
            found.setdefault(os.path.realpath(path), str(path))
    return tuple(found.values())
