"""Commands that install packages of an SDK from where its others came from, and from nowhere else.

Anybody may publish a distribution under one of these names, and pip takes the higher build tag or version from any
index that it knows. An SDK needs no packages but its own, so every other place can be shut out.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

if TYPE_CHECKING:
    from ._sdk import Sdk

PLACE = "PLACE"
"""In a command: what whoever reads it has to put in."""


def pip_command(sdk: Sdk, *words: str) -> str:
    """A command line of pip.

    Args:
        sdk: the SDK.
        words: options and requirements of each call of pip; several are run one after the other.
    """
    place = _place(sdk)
    # --no-index alone leaves the places that pip is configured with
    alone = f"PIP_CONFIG_FILE=/dev/null pip --isolated install --no-index --find-links {place}"
    return " && ".join(f"{alone} {each}" for each in words) + _note(sdk, place)


def uv_command(sdk: Sdk, words: str) -> str:
    """A command line of uv."""
    place = _place(sdk)
    # pins of a pre-release name pre-releases, which uv would not take as dependencies
    return f"uv pip install --no-config --no-index --find-links {place} --prerelease allow {words}" + _note(sdk, place)


def installer_file(sdk: Sdk, name: str) -> str:
    """What the installer of the selector wrote into a file of its metadata folder; empty where there is none."""
    folder = re.sub(r"[-_.]+", "_", sdk.file.dist).lower()
    try:
        return (sdk.site / f"{folder}-{sdk.file.version}.dist-info" / name).read_text(encoding="utf-8").strip()
    except (OSError, ValueError):
        return ""


def _note(sdk: Sdk, place: str) -> str:
    return f" # {PLACE}: the folder or page with the packages of {sdk.file.sdk}" if place == PLACE else ""


def _place(sdk: Sdk) -> str:
    """Where the selector came from, if it was installed by its address (PEP 610), quoted; else :data:`PLACE`."""
    try:
        about = json.loads(installer_file(sdk, "direct_url.json") or "{}")
        url = str(about["url"])
        scheme, rest = url.split(":", 1)
        known = scheme in ("file", "http", "https") and "archive_info" in about
    except (KeyError, TypeError, ValueError):
        return PLACE
    if not known or "'" in rest or not rest.isprintable():
        return PLACE
    folder = url.partition("#")[0].rpartition("/")[0]
    page = f"{folder}/index.html"
    if scheme != "file":
        return f"'{page}'"
    here = Path(unquote(urlsplit(folder).path))
    if (here / "index.html").is_file():  # it names what lies in another folder as well
        return f"'{page}'"
    return f"'{folder}'" if here.is_dir() else PLACE
