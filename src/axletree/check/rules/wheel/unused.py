"""Rules about needed libraries that a file takes no symbol from."""

from __future__ import annotations

from typing import TYPE_CHECKING

from axletree.binary.elf.facts import VersionNeed
from axletree.check.engine import Found, Rule, fires, listing, silent, subject
from axletree.check.rules.wheel.sample import CORE, library, plain_library, sample
from axletree.package.libraries.providers import find_providers
from axletree.package.libraries.unused import UnusedNeed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from axletree.check.dist import DistFacts
    from axletree.check.engine import Case

_LIB = "demo/lib/libdemo.so"
_DRIVER = ("libc.so.6", "libcuda.so.1")


def _unused_driver(facts: DistFacts) -> Iterator[Found]:
    for need in facts.unused_drivers:
        by = next(provider.name for provider in find_providers(facts.providers, need.soname))
        uses = "uses" if len(need.files) == 1 else "use"
        needs = subject(need.files, "needs", "need")
        message = f"{needs} {need.soname} from the {by}, but {uses} none of its symbols"
        yield Found(need.files[0], message, evidence=listing(need.files))


def _unused(facts: DistFacts) -> Iterator[Found]:
    for need in facts.unused:
        uses = "uses" if len(need.files) == 1 else "use"
        message = f"{subject(need.files, 'needs', 'need')} {need.soname}, but {uses} none of its symbols"
        yield Found(need.files[0], message, evidence=listing(need.files))


def _driver_cases() -> tuple[Case[DistFacts], ...]:
    return (
        fires("libcuda.so.1 of an extension module that calls no function of it", sample(library(needed=_DRIVER))),
        fires(
            "a library that only uses functions of the CUDA runtime",
            sample(elfs={CORE: library(), _LIB: plain_library(needed=("libcudart.so.13", "libcuda.so.1"))}),
        ),
        fires(
            "functions of another library of the driver",
            sample(library(needed=_DRIVER, driver_symbols=("nvmlInit_v2", "cuvidCreateDecoder"))),
        ),
        silent("a function of the driver", sample(library(needed=_DRIVER, driver_symbols=("cuInit",)))),
        silent(
            "a function that another file uses without needing the library",
            sample(
                elfs={CORE: library(needed=_DRIVER), _LIB: plain_library(driver_symbols=("cuCtxGetCurrent",))},
            ),
        ),
        silent(
            "a symbol version of the library",
            sample(library(needed=_DRIVER, versions_needed=(VersionNeed(file="libcuda.so.1", versions=("CUDA_1",)),))),
        ),
        silent(
            "a library of a driver whose symbols are not known",
            sample(library(needed=("libc.so.6", "libcudadebugger.so.1"))),
        ),
        silent("no library of a driver", sample()),
    )


def _unused_cases() -> tuple[Case[DistFacts], ...]:
    elfs = {CORE: library(needed=("libdemo.so",)), _LIB: plain_library()}
    return (
        fires(
            "a library of the wheel, linked with `--no-as-needed`",
            sample(elfs=elfs, unused=(UnusedNeed(soname="libdemo.so", files=(CORE,)),)),
        ),
        silent("a library whose symbols are used, or not known", sample(elfs=elfs)),
    )


DRIVER_UNUSED = Rule(
    id="dist/driver-unused",
    severity="warning",
    title="A file is linked to the GPU driver but uses none of its symbols",
    why="The linker records every library on its command line after `-Wl,--no-as-needed`. On a machine without "
    "the driver, the file cannot be loaded, although it would never call the driver.",
    fix="link with `-Wl,--as-needed`, or remove the entry with `drop-needed` in a relocate stage or with "
    "`axletree edit-elf --remove-needed`",
    check=_unused_driver,
    cases=_driver_cases,
)
"""Of conda packages too: no other package of an environment brings a driver."""

UNUSED_RULES: tuple[Rule[DistFacts], ...] = (
    DRIVER_UNUSED,
    Rule(
        id="dist/needed-unused",
        severity="info",
        title="A file is linked to a library of the wheel but uses none of its symbols",
        why="The library is loaded with the file, which takes time and memory. That may be intended: some libraries, "
        "such as libtorch_cuda.so, register their functions when they are loaded. Symbols do not show that.",
        fix="link with `-Wl,--as-needed`, unless the library must be loaded for what its constructors do",
        check=_unused,
        cases=_unused_cases,
    ),
)
