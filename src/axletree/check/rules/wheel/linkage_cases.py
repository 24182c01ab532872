"""The cases of the rules about needed libraries."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from axletree.binary.elf.facts import VersionNeed
from axletree.check.engine import Case, fires, silent
from axletree.check.rules.wheel.sample import CORE, library, plain_library, sample

if TYPE_CHECKING:
    from axletree.check.dist import DistFacts

_LIB = "demo/lib/libdemo.so"
_OTHER = "demo/_other.cpython-311-x86_64-linux-gnu.so"


_CALLS: dict[str, Any] = {"needed": ("libcuda.so.1",), "driver_symbols": ("cuInit",)}


def unresolved_cases() -> tuple[Case[DistFacts], ...]:
    """The cases of ``dist/needed-unresolved``."""
    return (
        fires("a library found only on the build machine", sample(library(needed=("libopenblas.so.0",)))),
        fires(
            "a library that the wheel's own library needs",
            sample(elfs={CORE: library(needed=("libdemo.so",)), _LIB: plain_library(needed=("libopenblas.so.0",))}),
        ),
        fires("one of several modules", sample(elfs={CORE: library(), _OTHER: library(needed=("libopenblas.so.0",))})),
        silent("torch's libraries, with torch required", sample(library(needed=("libc10.so",)), requires=("torch",))),
        silent("a library in the wheel", sample(elfs={CORE: library(needed=("libdemo.so",)), _LIB: plain_library()})),
        silent("the driver's library", sample(library(needed=("libcuda.so.1",)))),
    )


def undeclared_cases() -> tuple[Case[DistFacts], ...]:
    """The cases of ``dist/provider-undeclared``."""
    return (
        fires("torch's libraries, with torch not required", sample(library(needed=("libc10.so",)))),
        fires(
            "torch's library in the only module, with torch required only for an extra",
            sample(library(needed=("libc10.so",)), requires=('torch; extra == "test"',)),
        ),
        fires(
            "the CUDA runtime, required on Windows only",
            sample(library(needed=("libcudart.so.13",)), requires=('nvidia-cuda-runtime; sys_platform == "win32"',)),
        ),
        fires(
            "a provider that the user names but the wheel does not require",
            sample(library(needed=("libx.so",)), provided_by={"other": ("libx.so",)}),
        ),
        silent(
            "torch's library, with torch required", sample(library(needed=("libc10.so",)), requires=("torch==2.13.0",))
        ),
        silent(
            "the CUDA runtime, which torch loads, with torch required",
            sample(library(needed=("libc10.so", "libcudart.so.14")), requires=("torch",)),
        ),
        silent(
            "the CUDA runtime from an extra of the umbrella package",
            sample(library(needed=("libcudart.so.13",)), requires=("cuda-toolkit[cudart]==13.0.3",)),
        ),
        silent("no known libraries needed", sample()),
    )


_TBB = "demo/tbbpool.cpython-311-x86_64-linux-gnu.so"
_OMP = "demo/omppool.cpython-311-x86_64-linux-gnu.so"


def optional_cases() -> tuple[Case[DistFacts], ...]:
    """The cases of ``dist/needed-optional``."""
    return (
        fires(
            "modules with similar names that lack different libraries",
            sample(
                elfs={
                    CORE: library(),
                    _TBB: library(needed=("libtbb.so.12",)),
                    _OMP: library(needed=("libgomp.so.1.0.0",)),
                }
            ),
        ),
        fires(
            "a library from an extra, needed by one of several modules",
            sample(
                elfs={CORE: library(), _OTHER: library(needed=("libcublas.so.13",))},
                requires=('nvidia-cublas; extra == "gpu"',),
            ),
        ),
        fires(
            "a binding named after a known library",
            sample(elfs={CORE: library(), "demo/cublas.abi3.so": library(needed=("libcublas.so.13",))}),
        ),
        fires(
            "a plug-in for a known library",
            sample(
                elfs={
                    CORE: library(needed=("libdemo.so",)),
                    _LIB: plain_library(),
                    "demo/lib/libdemo_gpu.so": plain_library(needed=("libcublas.so.13",)),
                }
            ),
        ),
        silent("all libraries provided", sample()),
        silent(
            "the only module, without its library",
            sample(library(needed=("libcublas.so.13",)), requires=('nvidia-cublas; extra == "gpu"',)),
        ),
    )


def uncertain_cases() -> tuple[Case[DistFacts], ...]:
    """The cases of ``dist/needed-uncertain``."""
    return (
        fires(
            "a plug-in for an unknown library",
            sample(elfs={CORE: library(), "demo/plugins/x.so": plain_library(needed=("libknitro.so",))}),
        ),
        silent("a module that needs the same library", sample(library(needed=("libknitro.so",)))),
    )


def driver_cases() -> tuple[Case[DistFacts], ...]:
    """The cases of ``dist/driver-needed``."""
    return (
        fires("an extension module", sample(library(**_CALLS))),
        fires(
            "a library that an extension module needs",
            sample(elfs={CORE: library(needed=("libdemo.so",)), _LIB: plain_library(**_CALLS)}),
        ),
        silent("a library that no file is linked to", sample(elfs={CORE: library(), _LIB: plain_library(**_CALLS)})),
        silent("an extension module that uses nothing of it", sample(library(needed=("libcuda.so.1",)))),
    )


def libpython_cases() -> tuple[Case[DistFacts], ...]:
    """The cases of ``dist/libpython``."""
    return (
        fires("a link to libpython3.11.so.1.0", sample(library(needed=("libpython3.11.so.1.0",)))),
        silent("undefined CPython symbols", sample()),
    )


def stale_cases() -> tuple[Case[DistFacts], ...]:
    """The cases of ``dist/versions-stale``."""
    return (
        fires(
            "libfoo renamed only in the list of needed libraries",
            sample(
                elfs={
                    CORE: library(
                        needed=("libfoo-a1b2.so.1", "libc.so.6"),
                        versions_needed=(VersionNeed(file="libfoo.so.1", versions=("FOO_4.0",)),),
                    ),
                    "demo.libs/libfoo-a1b2.so.1": plain_library(),
                }
            ),
        ),
        silent(
            "libfoo renamed in both places",
            sample(
                elfs={
                    CORE: library(
                        needed=("libfoo-a1b2.so.1",),
                        versions_needed=(VersionNeed(file="libfoo-a1b2.so.1", versions=("FOO_4.0",)),),
                    ),
                    "demo.libs/libfoo-a1b2.so.1": plain_library(),
                }
            ),
        ),
    )


def sibling_cases() -> tuple[Case[DistFacts], ...]:
    """The cases of ``dist/needed-sibling``."""
    return (
        fires(
            "a search path to a folder in a required distribution",
            sample(library(needed=("libcasadi.so.3",), runpath=("$ORIGIN/../casadi",)), requires=("casadi",)),
        ),
        silent(
            "the same search path, with nothing required",
            sample(library(needed=("libcasadi.so.3",), runpath=("$ORIGIN/../casadi",))),
        ),
    )


def host_cases() -> tuple[Case[DistFacts], ...]:
    """The cases of ``dist/needed-host``."""
    return (
        fires("an MPI library", sample(library(needed=("libmpi.so.40",)))),
        silent("libraries that the tag promises", sample()),
    )
