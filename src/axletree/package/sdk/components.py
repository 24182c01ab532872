"""Which component a file belongs to where nobody says it: TheRock's patterns, tried in the order of the chain."""

from __future__ import annotations

from typing import TYPE_CHECKING

from axletree.core.errors import IntegrityError
from axletree.core.globs import glob_fault, glob_matcher
from axletree.package.sdk.artifact_name import COMPONENTS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from axletree.package.sdk.entries import Component

DEFAULT_INCLUDES: dict[Component, tuple[str, ...]] = {
    "lib": ("**/*.so", "**/*.so.*", "**/*.dll", "**/*.dylib", "**/*.dylib.*"),
    "run": (),
    "dbg": (".build-id/**/*.debug",),
    "dev": ("**/*.a", "**/*.lib", "**/cmake/**", "**/include/**", "**/share/modulefiles/**", "**/pkgconfig/**"),
    "doc": ("**/share/doc/**",),
    "test": (),
}
"""What each component takes by itself (TheRock, ``docs/development/artifacts.md``)."""


def assigning(own: Mapping[Component, Sequence[str]]) -> Callable[[str], Component]:
    """What says of which component a path is: by the globs given, then the usual ones, in the order of the chain.

    What no glob takes is ``run``.

    Raises:
        IntegrityError: a glob is none.
    """
    faults = [
        f"glob {glob!r} of component {component} {fault}"
        for component, globs in own.items()
        for glob in globs
        if (fault := glob_fault(glob)) is not None
    ]
    if faults:
        raise IntegrityError(*faults)
    tests = tuple(
        (component, glob_matcher(globs[component]))
        for globs in (own, DEFAULT_INCLUDES)
        for component in COMPONENTS
        if globs.get(component)
    )
    return lambda path: next((component for component, matches in tests if matches(path)), "run")
