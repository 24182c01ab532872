"""Which libraries in a wheel are other people's."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from axletree.package.libraries.providers import find_providers

if TYPE_CHECKING:
    from collections.abc import Iterable

    from axletree.package.libraries.providers import Provider

_GRAFTED = re.compile(
    r"(?:^|/)(?:[^/]+\.libs|\.dylibs)/[^/]+$|[-.][0-9a-f]{8}(?:\.so(?:\.[0-9.]+)?|\.dylib|\.dll)$", re.IGNORECASE
)
_LIBRARY = re.compile(r"\.(?:so(?:\.\d+)*|dylib|dll)$", re.IGNORECASE)


def is_grafted(path: str) -> bool:
    """Whether ``auditwheel`` or the like put a library there, by their folders and the hashes in their names."""
    return _GRAFTED.search(path) is not None


def is_bundled(path: str, *, project: str, providers: Iterable[Provider]) -> bool:
    """Whether a file is a library that a project did not make: a grafted one, or one that is known to be another's.

    Args:
        path: of the file in the wheel.
        project: normalised name of the distribution that the wheel is of.
        providers: who owns which libraries, and who ships copies of others'.
    """
    if _LIBRARY.search(path) is None:
        return False
    if is_grafted(path):
        return True
    name = path.rpartition("/")[2]
    known = tuple(providers)
    own = [provider for provider in known if provider.declared_by((project,))]
    if any(provider.brings(name) for provider in own):
        return False
    return any(provider.carries(name) for provider in own) or bool(find_providers(known, name))
