"""The cases of the rules about needed libraries."""

from __future__ import annotations

from typing import TYPE_CHECKING

from axletree.binary.elf.facts import VersionNeed
from axletree.check.engine import Case
from axletree.check.rules.wheel.sample import CORE, library, plain_library, sample

if TYPE_CHECKING:
    from axletree.check.dist import DistFacts

_LIB = "demo/lib/libdemo.so"
_OTHER = "demo/_other.cpython-311-x86_64-linux-gnu.so"


def unresolved_cases() -> tuple[Case[DistFacts], ...]:
    """The cases of ``dist/needed-unresolved``."""
    return (
        Case(
            title="a library on the build machine",
            facts=sample(elfs={CORE: library(needed=("libopenblas.so.0",))}),
            fires=True,
        ),
        Case(
            title="a library that the wheel's own library needs",
            facts=sample(
                elfs={CORE: library(needed=("libdemo.so",)), _LIB: plain_library(needed=("libopenblas.so.0",))},
            ),
            fires=True,
        ),
        Case(
            title="one of several modules",
            facts=sample(elfs={CORE: library(), _OTHER: library(needed=("libopenblas.so.0",))}),
            fires=True,
        ),
        Case(
            title="torch's libraries, with torch required",
            facts=sample(elfs={CORE: library(needed=("libc10.so",))}, requires=("torch",)),
            fires=False,
        ),
        Case(
            title="a library in the wheel",
            facts=sample(elfs={CORE: library(needed=("libdemo.so",)), _LIB: plain_library()}),
            fires=False,
        ),
        Case(title="the driver's library", facts=sample(elfs={CORE: library(needed=("libcuda.so.1",))}), fires=False),
    )


def undeclared_cases() -> tuple[Case[DistFacts], ...]:
    """The cases of ``dist/provider-undeclared``."""
    return (
        Case(
            title="torch's libraries, with torch not required",
            facts=sample(elfs={CORE: library(needed=("libc10.so",))}),
            fires=True,
        ),
        Case(
            title="torch's library in the only module, with torch required only for an extra",
            facts=sample(elfs={CORE: library(needed=("libc10.so",))}, requires=('torch; extra == "test"',)),
            fires=True,
        ),
        Case(
            title="the CUDA runtime, required on Windows only",
            facts=sample(
                elfs={CORE: library(needed=("libcudart.so.13",))},
                requires=('nvidia-cuda-runtime; sys_platform == "win32"',),
            ),
            fires=True,
        ),
        Case(
            title="a provider that the user names but the wheel does not require",
            facts=sample(elfs={CORE: library(needed=("libx.so",))}, provided_by={"other": ("libx.so",)}),
            fires=True,
        ),
        Case(
            title="torch's library, with torch required",
            facts=sample(elfs={CORE: library(needed=("libc10.so",))}, requires=("torch==2.13.0",)),
            fires=False,
        ),
        Case(
            title="the CUDA runtime, which torch loads, with torch required",
            facts=sample(elfs={CORE: library(needed=("libc10.so", "libcudart.so.14"))}, requires=("torch",)),
            fires=False,
        ),
        Case(
            title="the CUDA runtime from an extra of the umbrella package",
            facts=sample(elfs={CORE: library(needed=("libcudart.so.13",))}, requires=("cuda-toolkit[cudart]==13.0.3",)),
            fires=False,
        ),
        Case(title="no known libraries needed", facts=sample(), fires=False),
    )


_TBB = "demo/tbbpool.cpython-311-x86_64-linux-gnu.so"
_OMP = "demo/omppool.cpython-311-x86_64-linux-gnu.so"


def optional_cases() -> tuple[Case[DistFacts], ...]:
    """The cases of ``dist/needed-optional``."""
    return (
        Case(
            title="modules with similar names that lack different libraries",
            facts=sample(
                elfs={
                    CORE: library(),
                    _TBB: library(needed=("libtbb.so.12",)),
                    _OMP: library(needed=("libgomp.so.1.0.0",)),
                }
            ),
            fires=True,
        ),
        Case(
            title="a library from an extra, needed by one of several modules",
            facts=sample(
                elfs={CORE: library(), _OTHER: library(needed=("libcublas.so.13",))},
                requires=('nvidia-cublas; extra == "gpu"',),
            ),
            fires=True,
        ),
        Case(
            title="a binding named after a known library",
            facts=sample(
                elfs={CORE: library(), "demo/cublas.abi3.so": library(needed=("libcublas.so.13",))},
            ),
            fires=True,
        ),
        Case(
            title="a plug-in for a known library",
            facts=sample(
                elfs={
                    CORE: library(needed=("libdemo.so",)),
                    _LIB: plain_library(),
                    "demo/lib/libdemo_gpu.so": plain_library(needed=("libcublas.so.13",)),
                },
            ),
            fires=True,
        ),
        Case(title="all libraries provided", facts=sample(), fires=False),
        Case(
            title="the only module, without its library",
            facts=sample(
                elfs={CORE: library(needed=("libcublas.so.13",))}, requires=('nvidia-cublas; extra == "gpu"',)
            ),
            fires=False,
        ),
    )


def uncertain_cases() -> tuple[Case[DistFacts], ...]:
    """The cases of ``dist/needed-uncertain``."""
    return (
        Case(
            title="a plug-in for an unknown library",
            facts=sample(
                elfs={CORE: library(), "demo/plugins/x.so": plain_library(needed=("libknitro.so",))},
            ),
            fires=True,
        ),
        Case(
            title="a module that needs the same library",
            facts=sample(elfs={CORE: library(needed=("libknitro.so",))}),
            fires=False,
        ),
    )


def driver_cases() -> tuple[Case[DistFacts], ...]:
    """The cases of ``dist/driver-needed``."""
    return (
        Case(title="an extension module", facts=sample(elfs={CORE: library(needed=("libcuda.so.1",))}), fires=True),
        Case(
            title="a library that an extension module needs",
            facts=sample(elfs={CORE: library(needed=("libdemo.so",)), _LIB: plain_library(needed=("libcuda.so.1",))}),
            fires=True,
        ),
        Case(
            title="a library that no file is linked to",
            facts=sample(elfs={CORE: library(), _LIB: plain_library(needed=("libcuda.so.1",))}),
            fires=False,
        ),
    )


def libpython_cases() -> tuple[Case[DistFacts], ...]:
    """The cases of ``dist/libpython``."""
    return (
        Case(
            title="a link to libpython3.11.so.1.0",
            facts=sample(elfs={CORE: library(needed=("libpython3.11.so.1.0",))}),
            fires=True,
        ),
        Case(title="undefined CPython symbols", facts=sample(), fires=False),
    )


def stale_cases() -> tuple[Case[DistFacts], ...]:
    """The cases of ``dist/versions-stale``."""
    return (
        Case(
            title="libfoo renamed only in the list of needed libraries",
            facts=sample(
                elfs={
                    CORE: library(
                        needed=("libfoo-a1b2.so.1", "libc.so.6"),
                        versions_needed=(VersionNeed(file="libfoo.so.1", versions=("FOO_4.0",)),),
                    ),
                    "demo.libs/libfoo-a1b2.so.1": plain_library(),
                }
            ),
            fires=True,
        ),
        Case(
            title="libfoo renamed in both places",
            facts=sample(
                elfs={
                    CORE: library(
                        needed=("libfoo-a1b2.so.1",),
                        versions_needed=(VersionNeed(file="libfoo-a1b2.so.1", versions=("FOO_4.0",)),),
                    ),
                    "demo.libs/libfoo-a1b2.so.1": plain_library(),
                }
            ),
            fires=False,
        ),
    )


def sibling_cases() -> tuple[Case[DistFacts], ...]:
    """The cases of ``dist/needed-sibling``."""
    return (
        Case(
            title="a search path to a folder in a required distribution",
            facts=sample(
                elfs={CORE: library(needed=("libcasadi.so.3",), runpath=("$ORIGIN/../casadi",))}, requires=("casadi",)
            ),
            fires=True,
        ),
        Case(
            title="the same search path, with nothing required",
            facts=sample(elfs={CORE: library(needed=("libcasadi.so.3",), runpath=("$ORIGIN/../casadi",))}),
            fires=False,
        ),
    )


def host_cases() -> tuple[Case[DistFacts], ...]:
    """The cases of ``dist/needed-host``."""
    return (
        Case(title="an MPI library", facts=sample(elfs={CORE: library(needed=("libmpi.so.40",))}), fires=True),
        Case(title="libraries that the tag promises", facts=sample(), fires=False),
    )
