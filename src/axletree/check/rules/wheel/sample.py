"""Small wheels for the cases of the rules: one good wheel, and what a case changes about it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from axletree.binary.elf.facts import ElfFacts, VersionNeed
from axletree.check.dist import DistFacts, observe_dist
from axletree.core.values import digest_of
from axletree.package.libraries.policy import Policy
from axletree.package.libraries.providers import Provider
from axletree.package.wheel.info import WheelInfo
from axletree.package.wheel.metadata import create_metadata
from axletree.package.wheel.names import dist_info_folder, parse_wheel_name
from axletree.package.wheel.scan import ElfMember, WheelFacts, WheelMember, WheelScan

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

CORE = "demo/_core.cpython-311-x86_64-linux-gnu.so"
"""Where the extension module of the good wheel lies."""
FILENAME = "demo-1.0-cp311-cp311-manylinux_2_17_x86_64.whl"

_GLIBC = ("2.2.5", "2.14", "2.17", "2.28", "2.34")
_LIBRARIES = frozenset({"libc.so.6", "libm.so.6", "libpthread.so.0", "libdl.so.2", "libstdc++.so.6", "libgcc_s.so.1"})

POLICIES = tuple(
    Policy(
        name=f"manylinux_{major}_{minor}",
        glibc=(major, minor),
        aliases=("manylinux2014",) if minor == 17 else (),
        versions={
            machine: {
                "GLIBC": frozenset(v for v in _GLIBC if int(v.split(".")[1]) <= minor),
                "GLIBCXX": frozenset({"3.4", "3.4.19"} | ({"3.4.29"} if minor >= 34 else set())),
            }
            for machine in ("x86_64", "aarch64")
        },
        libraries=_LIBRARIES,
    )
    for major, minor in ((2, 17), (2, 28), (2, 34))
)
"""Three policies, much shortened."""

PROVIDERS = (
    Provider(
        name="torch",
        distributions=("torch",),
        sonames=("libtorch*.so", "libc10*.so"),
        folders=("torch/lib",),
        loads=("nvidia-cuda-runtime",),
        copies=("libgomp.so.1",),
    ),
    Provider(
        name="nvidia-cuda-runtime",
        distributions=("nvidia-cuda-runtime", "nvidia-cuda-runtime-cu*", "cuda-toolkit[cudart]"),
        sonames=("libcudart.so*",),
        folders=("nvidia/cu13/lib", "nvidia/cuda_runtime/lib"),
    ),
    Provider(
        name="nvidia-cublas",
        distributions=("nvidia-cublas", "nvidia-cublas-cu*", "cuda-toolkit[cublas]"),
        sonames=("libcublas.so*",),
        folders=("nvidia/cu13/lib", "nvidia/cublas/lib"),
    ),
    Provider(name="tbb", distributions=("tbb",), sonames=("libtbb.so*",), folders=("../..",)),
    Provider(
        name="NVIDIA driver",
        kind="driver",
        sonames=("libcuda.so.*", "libcudadebugger.so.*"),
        symbols={"libcuda.so.*": "cu[A-Z]"},
    ),
    Provider(name="the system's MPI", kind="host", sonames=("libmpi.so.*",)),
)
"""A few owners of libraries, as the lists that ship have them."""


def glibc(*versions: str) -> tuple[VersionNeed, ...]:
    """Symbol versions of libc that a file needs."""
    return (VersionNeed(file="libc.so.6", versions=tuple(f"GLIBC_{version}" for version in versions)),)


def library(**changes: Any) -> ElfFacts:
    """An extension module with nothing wrong."""
    good = ElfFacts(
        bits=64,
        order="little",
        kind="shared",
        machine=62,
        dynamic=True,
        needed=("libc.so.6",),
        versions_needed=glibc("2.2.5", "2.14"),
        stack="plain",
        python_symbols=("PyModule_Create2",),
        python_modules=("_core",),
    )
    return msgspec.structs.replace(good, **changes)


def plain_library(**changes: Any) -> ElfFacts:
    """A shared library that has nothing to do with Python."""
    return library(**{"python_symbols": (), "python_modules": (), **changes})


def sample(
    module: ElfFacts | None = None,
    *,
    filename: str = FILENAME,
    elfs: Mapping[str, ElfFacts] | None = None,
    files: Iterable[str] = (),
    requires: Iterable[str] = (),
    wheel: Mapping[str, Any] | None = None,
    damaged: tuple[tuple[str, str], ...] = (),
    **promises: Any,
) -> DistFacts:
    """Facts of a wheel that is right but for what is given.

    Args:
        module: its extension module.
        filename: with the tag.
        elfs: all ELF files, where they are not that module alone.
        files: paths of other files.
        requires: its requirements.
        wheel: replaces fields of its :class:`WheelFacts`.
        damaged: ELF files that cannot be read, and why.
        promises: what else :func:`observe_dist` is told.
    """
    elfs = {CORE: module or library()} if elfs is None else elfs
    name = parse_wheel_name(filename)
    paths = ["demo/__init__.py", *elfs, *files]
    facts = WheelFacts(
        filename=filename,
        name=name,
        dist_info=dist_info_folder(name.project, name.version),
        metadata=create_metadata(name=name.project, version=name.version, requires=requires),
        wheel_info=WheelInfo(tags=name.tags, purelib=not elfs, build=name.build),
        record=(),
        members=tuple(
            WheelMember(path=path, size=1 << 20, compressed=1 << 19, sha256=digest_of(path.encode())) for path in paths
        ),
        size=1 << 20,
    )
    scan = WheelScan(
        wheel=msgspec.structs.replace(facts, **(wheel or {})),
        elfs=tuple(ElfMember(path=path, facts=elf) for path, elf in elfs.items()),
        damaged_elfs=damaged,
    )
    return observe_dist(scan, policies=POLICIES, providers=PROVIDERS, **promises)
