"""Names under which ROCm's own packages tell what they are, for programs that read them; all from ``_sdk.json``."""

from __future__ import annotations

import sys
from typing import Any

__all__ = [  # noqa: F822  # made when they are asked for
    "AVAILABLE_TARGET_FAMILIES",
    "DEFAULT_TARGET_FAMILY",
    "LINUX_TARGET_FAMILIES",
    "PY_PACKAGE_SUFFIX_NONCE",
    "THIS_PACKAGE_ENTRY",
    "THIS_TARGET_FAMILY",
    "WINDOWS_TARGET_FAMILIES",
    "__version__",
    "determine_target_family",
]


def determine_target_family() -> str:
    """The family for this host: what the environment names, else the host's GPUs, else the default.

    Raises:
        ValueError: the environment names what the SDK does not have.
    """
    from ._families import find_target_family, wanted_here
    from ._sdk import this_sdk

    sdk = this_sdk()
    return find_target_family(sdk.file, wanted_here(sdk))[0]


def __getattr__(name: str) -> Any:
    from ._sdk import this_sdk

    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    file = this_sdk().file
    families = sorted(file.families)
    values = {
        "__version__": file.version,
        "PY_PACKAGE_SUFFIX_NONCE": "",
        "DEFAULT_TARGET_FAMILY": file.default_family,
        "AVAILABLE_TARGET_FAMILIES": families,
        "LINUX_TARGET_FAMILIES": families if sys.platform == "linux" else [],
        "WINDOWS_TARGET_FAMILIES": families if sys.platform == "win32" else [],
        "THIS_TARGET_FAMILY": None,
        "THIS_PACKAGE_ENTRY": file.dist,
    }
    return values[name]
