"""The GPUs that a selector was built for where it was installed, and whether that still is right.

Installers keep what they built, and hand it to other environments: for another GPU, another value of the variable. That
is noticed here, by comparing with what would be chosen now. A selector that was published as a wheel chose nothing.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from ._sources import installer_file, pip_command, uv_command

if TYPE_CHECKING:
    from ._families import Wanted
    from ._sdk import Sdk, SdkPackage

FILE = "_selection.json"
SCHEMA = 1


@dataclass(frozen=True)
class Selected:
    """What was chosen where the selector was built."""

    family: str
    by: str
    """What decided: ``environment``, ``detection`` or ``default``."""
    targets: tuple[str, ...]
    """GPU targets that were wanted."""
    packages: tuple[str, ...]
    """Distributions that its extras bring for them."""
    reasons: tuple[str, ...]

    def as_json(self) -> str:
        """The content of the file."""
        values = {name: list(value) if isinstance(value, tuple) else value for name, value in vars(self).items()}
        return json.dumps({"schema": SCHEMA, **values}, indent=1) + "\n"


def read_selected(sdk: Sdk) -> Selected | None:
    """What was chosen; None for a selector that chose nothing, or whose file is damaged."""
    try:
        raw = json.loads((sdk.home / FILE).read_text(encoding="utf-8"))
        lists = {name: tuple(map(str, raw[name])) for name in ("targets", "packages", "reasons")}
        return Selected(family=str(raw["family"]), by=str(raw["by"]), **lists)
    except (OSError, ValueError, TypeError, KeyError):
        return None


@lru_cache(maxsize=1)
def stale_selection(sdk: Sdk) -> str:
    """Why what was chosen is wrong here, and the commands that mend it, in one line; empty where it is right."""
    from ._families import wanted_here
    from ._sdk import SdkError

    selected = read_selected(sdk)
    if selected is None:
        return ""
    past = f"the SDK was installed with packages for {selected.family} ({_because(selected)})"
    try:
        wanted = wanted_here(sdk)
    except ValueError as error:
        return f"{error}; {past}. Unset the variable or set it to one of these families, then run: {_cure(sdk)}"
    except SdkError:  # a damaged package: whoever needs it says so
        return ""
    missing = _missing(sdk, selected, wanted)
    if not missing:
        return ""
    named = sdk.variable("TARGET_FAMILY")
    now = f"{named}={sdk.setting('TARGET_FAMILY')}" if wanted.family else f"this host has {', '.join(wanted.targets)}"
    return f"{past}, but {now}, which needs {_and(missing)}. To choose again, run: {_cure(sdk)}"


def _missing(sdk: Sdk, selected: Selected, wanted: Wanted) -> list[str]:
    """Distributions for what is wanted that the choice left out, where nothing that is there serves it."""
    from ._families import serves
    from ._select import choose_packages

    if wanted.by == "default":  # no GPU, nothing named: any choice is as good
        return []
    gpus = [each for each in sdk.file.packages if each.targets]
    groups: dict[str, list[SdkPackage]] = {}
    for each in gpus:
        if each.dist in selected.packages or sdk.folder(each) is not None:
            groups.setdefault(each.package, []).append(each)
    missing: list[str] = []
    for package, _ in choose_packages(sdk, gpus, wanted):
        there = [code for each in groups.get(package.package, ()) for code in each.targets]
        served = [gpu for gpu in wanted.targets if any(serves(code, gpu) for code in package.targets)]
        if any(not any(serves(code, gpu) for code in there) for gpu in served):
            missing.append(package.dist)
    return list(dict.fromkeys(missing))


def _because(selected: Selected) -> str:
    if selected.by == "default":
        return "the default because no GPU was found"
    return selected.reasons[0] if selected.reasons else selected.by


def _cure(sdk: Sdk) -> str:
    """The commands that build the selector again and add what it then asks for; what is there stays."""
    extras = [each.extra for each in sdk.installed() if each.extra and not each.targets]
    devel = sdk.devel_package()
    if devel is not None and sdk.devel_module() is not None:
        extras.append(devel.extra)
    wanted = sdk.requirement(extras)
    if installer_file(sdk, "INSTALLER") == "uv":
        return uv_command(sdk, f"--no-cache --reinstall-package {sdk.file.dist} '{wanted}'")
    again = f"--force-reinstall --no-cache-dir --no-deps '{sdk.requirement([])}'"
    return pip_command(sdk, again, *([f"'{wanted}'"] if extras else []))


def _and(names: list[str]) -> str:
    return " and ".join(names)
