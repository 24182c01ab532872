"""Builds the selector where it is installed (PEP 517), for the GPUs of that host; it comes in the sdist only.

It needs nothing but Python: no package is downloaded to install the selector. The family is what the variable
``{PREFIX}_TARGET_FAMILY`` names, else what has code for the host's GPUs, else the default; the wheel keeps the answer
in ``_selection.json``.

Installers keep wheels that they built and would hand this choice to the next environment, whatever its GPU. A backend
can't forbid it, but pip takes from its cache only wheels whose tags fit: so under pip the file gets a tag that none
does. ``pip install`` never looks at the tags of what it has just built; this was tested up to the version below, and a
later pip gets an ordinary name. What is reused all the same is noticed when it runs (``_selection``).
"""

from __future__ import annotations

import base64
import hashlib
import os
import re
import sys
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ._extras import extra_fields
from ._families import find_target_family, find_wanted
from ._sdk import load_sdk
from ._select import choose_packages
from ._selection import FILE, Selected

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ._sdk import Sdk

_HOME = Path(__file__).absolute().parent
_LAST_PIP = 26
"""Major version of pip up to which installing what no tag fits was tested."""
_EARLIEST = (1980, 1, 1, 0, 0, 0)
_DYNAMIC = "Dynamic: "


def get_requires_for_build_wheel(config_settings: Mapping[str, Any] | None = None) -> list[str]:
    """Nothing has to be there to build it."""
    del config_settings
    return []


get_requires_for_build_sdist = get_requires_for_build_wheel


def prepare_metadata_for_build_wheel(metadata_directory: str, config_settings: Mapping[str, Any] | None = None) -> str:
    """Write the metadata of the wheel for this host.

    Raises:
        SystemExit: the variable names a family that there is no package for; the text has the choices.
    """
    del config_settings
    sdk = load_sdk(_HOME)
    info = Path(metadata_directory, f"{_stem(sdk)}.dist-info")
    info.mkdir(parents=True, exist_ok=True)
    for name, data in _info_files(sdk, choose_here(sdk)).items():
        (info / name).write_bytes(data)
    return info.name


def build_wheel(
    wheel_directory: str,
    config_settings: Mapping[str, Any] | None = None,
    metadata_directory: str | None = None,
) -> str:
    """Build the wheel for this host.

    Raises:
        SystemExit: as above.
    """
    del config_settings, metadata_directory
    sdk = load_sdk(_HOME)
    selected = choose_here(sdk)
    info, module = f"{_stem(sdk)}.dist-info", sdk.file.module
    files = {
        f"{module}/{path.name}": path.read_bytes()
        for path in sorted(_HOME.iterdir())
        if path.is_file() and path.name != Path(__file__).name
    }
    files[f"{module}/{FILE}"] = selected.as_json().encode()
    files.update({f"{info}/{name}": data for name, data in _info_files(sdk, selected).items()})
    rows = [f"{path},sha256={_hash(data)},{len(data)}\n" for path, data in files.items()]
    files[f"{info}/RECORD"] = "".join([*rows, f"{info}/RECORD,,\n"]).encode()
    name = f"{_stem(sdk)}-py3-none-{'chosen_here' if _is_under_known_pip() else 'any'}.whl"
    with zipfile.ZipFile(Path(wheel_directory, name), "w", zipfile.ZIP_DEFLATED) as archive:
        for path, data in files.items():
            member = zipfile.ZipInfo(path, _EARLIEST)
            member.compress_type, member.external_attr = zipfile.ZIP_DEFLATED, 0o100644 << 16
            archive.writestr(member, data)
    return name


def build_sdist(sdist_directory: str, config_settings: Mapping[str, Any] | None = None) -> str:
    """Pack the files that this was unpacked from again."""
    import tarfile

    del config_settings
    stem, root = _stem(load_sdk(_HOME)), _HOME.parent
    paths = [root / "PKG-INFO", root / "pyproject.toml", *(path for path in _HOME.iterdir() if path.is_file())]
    with tarfile.open(Path(sdist_directory, f"{stem}.tar.gz"), "w:gz", format=tarfile.PAX_FORMAT) as archive:
        for path in sorted(paths):
            archive.add(path, f"{stem}/{path.relative_to(root).as_posix()}", recursive=False)
    return f"{stem}.tar.gz"


def choose_here(sdk: Sdk) -> Selected:
    """The family for this host and the packages that serve it, explained.

    Raises:
        SystemExit: as above.
    """
    try:
        wanted = find_wanted(sdk.file)
    except ValueError as error:
        sys.exit(f"{sdk.file.dist}: {error}")  # the text alone: pip shows all that a backend prints
    family, why = find_target_family(sdk.file, wanted)
    found = choose_packages(sdk, [each for each in sdk.file.packages if each.targets], wanted)
    return Selected(
        family=family,
        by=wanted.by,
        targets=wanted.targets,
        packages=tuple(dict.fromkeys(each.dist for each, _ in found)),
        reasons=(*wanted.reasons, f"{family}: {why}", *dict.fromkeys(reason for _, reason in found)),
    )


def _info_files(sdk: Sdk, selected: Selected) -> dict[str, bytes]:
    about = (_HOME.parent / "PKG-INFO").read_text(encoding="utf-8")
    head, gap, description = about.partition("\n\n")
    lines = [line for line in head.splitlines() if not line.startswith((_DYNAMIC, "Provides-Extra: "))]
    fields = extra_fields(sdk.file.packages, selected.packages, sdk.file.version)
    lines += [f"{name}: {value}" for name, value in fields]
    points = f"[console_scripts]\n{sdk.file.command} = {sdk.file.module}.__main__:main\n"
    made_by = f"{sdk.file.dist} ({sdk.file.version})"
    return {
        "METADATA": ("\n".join(lines) + "\n" + (f"\n{description}" if gap and description else "")).encode(),
        "WHEEL": f"Wheel-Version: 1.0\nGenerator: {made_by}\nRoot-Is-Purelib: true\nTag: py3-none-any\n".encode(),
        "entry_points.txt": points.encode(),
    }


def _stem(sdk: Sdk) -> str:
    return f"{re.sub(r'[-_.]+', '_', sdk.file.dist).lower()}-{sdk.file.version}"


def _hash(data: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()


def _is_under_known_pip() -> bool:
    """Whether a pip runs this whose treatment of tags is known: the program is then a file of its vendored hooks."""
    program = str(getattr(sys.modules.get("__main__"), "__file__", None) or "").replace(os.sep, "/")
    folder, vendored, _ = program.rpartition("/pip/_vendor/")
    if not vendored:
        return False
    try:
        text = Path(folder, "pip/__init__.py").read_text(encoding="utf-8")
    except (OSError, ValueError):
        return False
    version = re.search(r'^__version__ = "(\d+)\.', text, re.MULTILINE)
    return version is not None and int(version[1]) <= _LAST_PIP
