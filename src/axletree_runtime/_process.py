"""What a framework calls before it loads its extension modules."""

from __future__ import annotations

import re
import sys
import warnings
from functools import lru_cache
from typing import TYPE_CHECKING

from ._detect import is_on
from ._preload import preload
from ._selection import stale_selection

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ._sdk import Sdk


def initialize(
    sdk: Sdk,
    preload_shortnames: Iterable[str],
    *,
    rtld_global: bool,
    env_override: bool,
    check_version: str | re.Pattern[str] | None,
    fail_on_version_mismatch: bool,
) -> None:
    """Check the SDK's version, then load libraries; see ``initialize_process`` of the package."""
    if check_version is not None:
        _check_version(sdk, check_version, fail=fail_on_version_mismatch)
    _check_selection(sdk)
    preload(sdk, preload_shortnames, rtld_global=rtld_global)
    if env_override:
        _preload_from_environment(sdk, rtld_global=rtld_global)


def matches_version(version: str, wanted: str | re.Pattern[str]) -> bool:
    """Whether a version is the wanted one: text in which ``*`` stands for anything, or a pattern for its beginning."""
    if isinstance(wanted, str):
        return re.fullmatch(".*".join(map(re.escape, wanted.split("*"))), version, re.DOTALL) is not None
    return wanted.match(version) is not None


def _check_version(sdk: Sdk, wanted: str | re.Pattern[str], *, fail: bool) -> None:
    if matches_version(sdk.file.version, wanted):
        return
    asked = wanted if isinstance(wanted, str) else wanted.pattern
    text = f"{sdk.file.dist} {sdk.file.version} is installed, but this program was built for version {asked!r}"
    if fail:
        raise RuntimeError(text)
    warnings.warn(text, stacklevel=4)


@lru_cache(maxsize=1)
def _check_selection(sdk: Sdk) -> None:
    """Warn, once, if the packages that were chosen when this was installed are not for the GPUs that are wanted now."""
    text = stale_selection(sdk)
    if text:
        warnings.warn(f"{sdk.file.dist} {sdk.file.version}: {text}", stacklevel=4)


def _preload_from_environment(sdk: Sdk, *, rtld_global: bool) -> None:
    from ._detect import split_list

    names = split_list(sdk.setting("PRELOAD_LIBRARIES"))
    if not names:
        return
    variable = sdk.variable("PRELOAD_LIBRARIES")
    try:
        preload(sdk, names, rtld_global=rtld_global)
    except (ImportError, OSError) as error:
        if is_on(sdk.setting("VERBOSE")):
            import traceback

            traceback.print_exc(file=sys.stderr)
        asked = f"{variable}={sdk.setting('PRELOAD_LIBRARIES')}"
        raise RuntimeError(f"{asked} failed: {error}. Unset {variable} to continue without it") from error
