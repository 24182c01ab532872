"""What can be wrong with what a manifest says of the SDK's CMake package."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from axletree.recipe.faults import Fault

if TYPE_CHECKING:
    from collections.abc import Iterator

    from axletree.package.sdk.manifest import About

_TARGET = re.compile(r"[\w.+-]+(::[\w.+-]+)?")
_PACKAGE = re.compile(r"[\w.+-]+")


def cmake_faults(sdk: About) -> Iterator[Fault]:
    """Faults of the keys that say how self tests build a program."""
    if sdk.cmake_package and not _PACKAGE.fullmatch(sdk.cmake_package):
        yield Fault(path=("sdk", "cmake-package"), message=f"{sdk.cmake_package!r} is not a valid CMake package name")
    for number, target in enumerate(sdk.cmake_targets):
        if not _TARGET.fullmatch(target):
            message = f"{target!r} is not a valid CMake target"
            yield Fault(
                path=("sdk", "cmake-targets", number), message=message, hint="expected a name such as hip::device"
            )
    if sdk.cmake_package:
        return
    given = (("targets", sdk.cmake_targets), ("program", sdk.cmake_program), ("compiler", sdk.cmake_compiler))
    for name, value in given:
        if value:
            message = "the key describes how to test a CMake package, but no CMake package is set"
            yield Fault(path=("sdk", f"cmake-{name}"), message=message, hint="set sdk.cmake-package")
