"""What environments are made of: a Python or conda prefix, a GPU toolkit, and the order of both for a GPU world.

CUDA: the environment first, then a toolkit of the system. ROCm: the other way round, since ROCm brings libraries
(Thrust, OpenMP) that environments have in other versions, and its headers must be found first; the guide that PyTorch's
users follow says so for headers, for linking and for running. Folders that compilers and loaders have themselves are in
no list: in front of their place they break ``#include_next``.
"""

from __future__ import annotations

import posixpath
from typing import TYPE_CHECKING, Literal

import msgspec

from axletree.environment.delta import Delta, Order, SearchFolder

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

World = Literal["cpu", "cuda", "rocm"]
SYSTEM = frozenset(
    {
        "/usr/include",
        "/usr/local/include",
        "/usr/lib",
        "/usr/lib64",
        "/lib",
        "/lib64",
        "/usr/local/lib",
        *(f"{root}/lib/{machine}-linux-gnu" for root in ("", "/usr") for machine in ("x86_64", "aarch64")),
        *(f"/usr/include/{machine}-linux-gnu" for machine in ("x86_64", "aarch64")),
        "/usr/bin",
        "/bin",
    }
)
"""Folders that tools look into by themselves, at the right place."""
_VARIABLES = {"include": "CPATH", "link": "LIBRARY_PATH", "run": "LD_LIBRARY_PATH"}
"""How gcc and clang, and the linker through them, and glibc's loader are told a list.

gcc, "Environment Variables Affecting GCC"; ld.so(8). They are the only way that also reaches tools which a build system
calls by itself. ``LIBRARY_PATH`` comes after the system's own folders, so what build systems pass on, ``LDFLAGS``, says
the order for linking too.
"""


class Layer(msgspec.Struct, frozen=True, kw_only=True):
    """One part of an environment: where its things are. Folders that do not exist are not in it."""

    origin: str
    bin: tuple[str, ...] = ()
    include: tuple[str, ...] = ()
    link: tuple[str, ...] = ()
    run: tuple[str, ...] = ()
    cmake: tuple[str, ...] = ()
    """Prefixes that CMake searches for packages."""
    settings: tuple[Delta, ...] = ()
    """Further changes."""


def ordered(layers: Sequence[Layer], toolkit: Layer | None, world: World) -> tuple[Layer, ...]:
    """All layers, the first first."""
    if toolkit is None:
        return tuple(layers)
    return (toolkit, *layers) if world == "rocm" else (*layers, toolkit)


def order_of(layers: Sequence[Layer]) -> Order:
    """The three search orders of layers."""
    return Order(
        include=_entries(layers, "include"),
        link=_entries(layers, "link"),
        run=_entries(layers, "run"),
    )


def _entries(layers: Sequence[Layer], way: Literal["include", "link", "run"]) -> tuple[SearchFolder, ...]:
    found: dict[str, SearchFolder] = {}
    for layer in layers:
        for path in getattr(layer, way):
            if path not in SYSTEM:
                found.setdefault(path, SearchFolder(path=path, origin=layer.origin))
    return tuple(found.values())


def deltas_of(layers: Sequence[Layer], order: Order) -> tuple[Delta, ...]:
    """What sets the order, programs and settings of layers."""
    return tuple(_deltas(layers, order))


def _deltas(layers: Sequence[Layer], order: Order) -> Iterator[Delta]:
    # The last prepended is the first: so layers in reverse, each with its own origin.
    for layer in reversed(layers):
        yield from _prepended("PATH", layer.bin, layer.origin)
    for way, variable in _VARIABLES.items():
        entries: tuple[SearchFolder, ...] = getattr(order, way)
        for origin in reversed(list(dict.fromkeys(entry.origin for entry in entries))):
            yield from _prepended(variable, [entry.path for entry in entries if entry.origin == origin], origin)
    for entry in reversed(order.link):
        if not any(char in entry.path for char in " \t'\"\\"):  # no word of a list of flags
            value = f"-L{entry.path}"
            yield Delta(variable="LDFLAGS", operation="prepend", value=value, origin=entry.origin, separator=" ")
    for layer in reversed(layers):
        yield from _prepended("CMAKE_PREFIX_PATH", layer.cmake, layer.origin)
    for layer in layers:
        yield from layer.settings


def _prepended(variable: str, paths: Sequence[str], origin: str) -> Iterator[Delta]:
    paths = [path for path in paths if path not in SYSTEM]
    if paths:
        yield Delta(variable=variable, operation="prepend", value=":".join(paths), origin=origin)


def with_include(layer: Layer, old: str, new: str) -> Layer:
    """The layer with another folder of headers in the place of one."""
    include = tuple(new if path == old else path for path in layer.include)
    return msgspec.structs.replace(layer, include=include)


def setting(variable: str, value: str, origin: str) -> Delta:
    """A variable with a value."""
    return Delta(variable=variable, operation="set", value=value, origin=origin)


def cuda_layer(root: str, *, include: Sequence[str], link: Sequence[str], run: Sequence[str], origin: str) -> Layer:
    """A CUDA toolkit: an installation, or the folder of NVIDIA's wheels in an environment."""
    return Layer(
        origin=origin,
        bin=(f"{root}/bin",),
        include=tuple(include),
        link=tuple(link),
        run=tuple(run),
        cmake=(root,),
        settings=(
            setting("CUDA_HOME", root, origin),
            setting("CUDA_PATH", root, origin),
            setting("CUDACXX", f"{root}/bin/nvcc", origin),
        ),
    )


def rocm_layer(root: str, *, clang: str, device: str | None, lib: Sequence[str], origin: str) -> Layer:
    """A ROCm installation.

    Args:
        root: ``/opt/rocm``.
        clang: folder of its own clang: never another one.
        device: folder of the device libraries, where that is not where clang looks.
        lib: folders of its libraries.
        origin: how it is called.
    """
    settings = [
        setting("ROCM_PATH", root, origin),
        setting("HIP_PATH", root, origin),
        # Else hipcc calls nvcc where it finds one.
        setting("HIP_PLATFORM", "amd", origin),
        setting("HIP_CLANG_PATH", clang, origin),
    ]
    if device is not None:
        settings.append(setting("DEVICE_LIB_PATH", device, origin))
    return Layer(
        origin=origin,
        bin=(f"{root}/bin",),
        include=(f"{root}/include",),
        link=tuple(lib),
        run=tuple(lib),
        cmake=(root,),
        settings=tuple(settings),
    )


def with_gcc(layer: Layer, gcc: str) -> Layer:
    """ROCm with the headers, start files and libstdc++ of a GCC that its clang would not find by itself.

    Clang looks into the system's folders only. ``--gcc-install-dir`` is there since clang 16, and hipcc passes on what
    these variables have (HIP's documentation, "HIPCC environment variables").
    """
    flags = [
        Delta(
            variable=f"HIPCC_{step}_FLAGS_APPEND",
            operation="prepend",
            value=f"--gcc-install-dir={gcc}",
            origin=layer.origin,
            separator=" ",
        )
        for step in ("COMPILE", "LINK")
    ]
    return msgspec.structs.replace(layer, settings=(*layer.settings, *flags))


def inside(path: str, folder: str) -> bool:
    """Whether a path is a folder, or below it."""
    return path == folder or path.startswith(posixpath.join(folder, ""))
