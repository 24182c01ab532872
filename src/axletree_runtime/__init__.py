"""The runtime of an SDK that was installed as Python packages: finds, preloads, expands and tests it.

It is vendored into the selector under the SDK's own name (``rocm_sdk``), so it imports nothing but the standard library
and itself, relatively, and knows no SDK: names come from ``_sdk.json`` beside it and in the platform folders. Importing
it does no work.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import re
    from collections.abc import Sequence
    from pathlib import Path

    __version__: str

__all__ = ["__version__", "explain", "find_libraries", "initialize_process", "preload_libraries"]


def find_libraries(*shortnames: str) -> list[Path]:
    """Absolute paths of the SDK's shared libraries, in the order of their short names (``amdhip64``).

    Of libraries with code for single GPUs it is the one that serves the GPUs of this host (see :func:`explain`).
    Libraries that do not exist on this platform are left out.

    Raises:
        ModuleNotFoundError: a name is unknown or its package is not installed; the text says what to install.
        FileNotFoundError: a package is installed, but its file is not there.
    """
    from ._preload import libraries_in_use
    from ._sdk import this_sdk

    return [found.path for found in libraries_in_use(this_sdk()).find(shortnames)]


def preload_libraries(*shortnames: str, rtld_global: bool = True) -> None:
    """Load libraries into this process, each after all that it needs, and keep them there.

    Args:
        shortnames: ``amdhip64``.
        rtld_global: whether extension modules that are loaded later see their symbols.

    Raises:
        ModuleNotFoundError, FileNotFoundError: as :func:`find_libraries`.
        OSError: the loader refuses one; the text says which, what it lacks, and what to install.
    """
    from ._preload import preload
    from ._sdk import this_sdk

    preload(this_sdk(), shortnames, rtld_global=rtld_global)


def initialize_process(
    *,
    preload_shortnames: Sequence[str] = (),
    rtld_global: bool = True,
    env_override: bool = True,
    check_version: str | re.Pattern[str] | None = None,
    fail_on_version_mismatch: bool = False,
    **kw: Any,
) -> None:
    """Prepare this process for extension modules that were built against the SDK.

    Args:
        preload_shortnames: libraries to load.
        rtld_global: whether extension modules that are loaded later see their symbols.
        env_override: whether the libraries that ``{PREFIX}_PRELOAD_LIBRARIES`` names are loaded as well.
        check_version: the version that is wanted: text in which ``*`` stands for anything, or a pattern that matches
            its beginning. It is checked before anything is loaded.
        fail_on_version_mismatch: raise where the version is another one, instead of a ``UserWarning``.
        kw: arguments of later versions; a warning names them.

    Raises:
        RuntimeError: another version, or what the variable names can't be loaded.
        ModuleNotFoundError, FileNotFoundError, OSError: as :func:`preload_libraries`.
    """
    import warnings

    from ._process import initialize
    from ._sdk import this_sdk

    if kw:
        warnings.warn(f"initialize_process ignores unknown arguments: {', '.join(sorted(kw))}", stacklevel=2)
    initialize(
        this_sdk(),
        preload_shortnames,
        rtld_global=rtld_global,
        env_override=env_override,
        check_version=check_version,
        fail_on_version_mismatch=fail_on_version_mismatch,
    )


def explain() -> str:
    """Which GPUs were found, and the package whose GPU code is used for them and why; several lines of text."""
    from ._libraries import explain as explain_libraries
    from ._sdk import this_sdk

    return explain_libraries(this_sdk())


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from ._sdk import this_sdk

        return this_sdk().file.version
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
