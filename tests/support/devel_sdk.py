"""What tests of the devel tree share: the small SDK in this process, as wheels, and pip and uv that install them."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from axletree_runtime import _devel, _sdk

if TYPE_CHECKING:
    from axletree_runtime._sdk import Sdk
    from support.small_sdk import Site

ROOT = "_rocm_sdk_devel"
INSTALLERS = ("pip", "uv")


def loaded(site: Site) -> Sdk:
    """The SDK of a site directory, in this process; what is installed is read anew."""
    _sdk._read_package.cache_clear()
    return _sdk.load_sdk(site.folder / site.sdk.module)


def expand(site: Site, **options: Any) -> Path:
    """Expand in this process."""
    return _devel.expand(loaded(site), **options)


def snapshot(root: Path) -> dict[str, Any]:
    """Each path of a tree -> content, text of the link, or None for a folder; without the files of the expansion."""
    found: dict[str, Any] = {}
    for place, folders, files in os.walk(root):
        for name in (*folders, *files):
            path = Path(place, name)
            key = path.relative_to(root).as_posix()
            if not key.startswith("_devel"):
                found[key] = (
                    f"-> {path.readlink()}" if path.is_symlink() else path.read_bytes() if name in files else None
                )
    return found


def records(site: Path) -> str:
    """RECORD of the devel package."""
    (record,) = site.glob("rocm_sdk_devel-*.dist-info/RECORD")
    return record.read_text()


def sdk_names(site: Path) -> list[str]:
    """What there is of the SDK in a site directory, but for the selector and what Python writes."""
    return sorted(path.name for path in site.iterdir() if "sdk_" in path.name and path.suffix != ".pyc")


@dataclass(frozen=True)
class Environment:
    """A virtual environment, and the installer that is used in it."""

    folder: Path
    installer: str

    @property
    def python(self) -> Path:
        """Its interpreter."""
        return self.folder / "bin/python"

    @property
    def site(self) -> Path:
        """Its site directory."""
        (site,) = self.folder.glob("lib/python*/site-packages")
        return site

    def install(self, wheels: Path, *words: str) -> None:
        """Install from a folder of wheels."""
        self._call("install", "--no-index", "--find-links", wheels, "--no-deps", *words)

    def uninstall(self, *dists: str) -> None:
        """Uninstall distributions."""
        self._call("uninstall", *(("-y",) if self.installer == "pip" else ()), *dists)

    def command(self, *words: str, **env: str) -> subprocess.CompletedProcess[str]:
        """Run the SDK's command."""
        variables = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1", "ROCM_SDK_DISABLE_DETECTION": "1", **env}
        command: list[str | Path] = [self.python, "-m", "rocm_sdk", *words]
        return subprocess.run(command, env=variables, capture_output=True, text=True, check=False)

    def left(self) -> list[str]:
        """What there is of the SDK without its selector."""
        return sdk_names(self.site)

    def _call(self, action: str, *words: str | Path) -> None:
        if self.installer == "pip":
            options = ["--disable-pip-version-check", "--no-input", "-q"]
            command: list[str | Path] = [sys.executable, "-m", "pip", "--python", self.python, *options, action, *words]
        else:
            command = ["uv", "pip", action, "-q", "-p", self.python, *(["--offline"] if action == "install" else [])]
            command += words
        tools = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        cache_folder = str(self.folder / "cache")
        variables = {**os.environ, "PATH": tools, "UV_CACHE_DIR": cache_folder, "PIP_NO_CACHE_DIR": "1"}
        done = subprocess.run(command, env=variables, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr


def make_environment(folder: Path, installer: str) -> Environment:
    """A new virtual environment without packages."""
    uv = Path(sys.executable).parent / "uv"
    command: list[str | Path] = [uv, "venv", "-q", "--offline", "--no-project", "-p", sys.executable, folder]
    subprocess.run(command, check=True)
    return Environment(folder, installer)


def make_wheels(site: Site, out: Path) -> Path:
    """Wheels of all that is installed in a site directory, as it was when it was installed."""
    out.mkdir(parents=True, exist_ok=True)
    for record in sorted(site.folder.glob("*.dist-info/RECORD")):
        stem = record.parent.name.removesuffix(".dist-info")
        with zipfile.ZipFile(out / f"{stem}-py3-none-any.whl", "w") as wheel:
            for row in record.read_text().splitlines():
                name = row.partition(",")[0]
                path = site.folder / name
                about = zipfile.ZipInfo(name, (2020, 1, 1, 0, 0, 0))
                about.external_attr = (0o100000 | (path.stat().st_mode & 0o777)) << 16
                if path.name != "INSTALLER":
                    text = path.read_text().replace(row_of_installer(record), "") if path == record else None
                    wheel.writestr(about, text if text is not None else path.read_bytes())
    return out


def row_of_installer(record: Path) -> str:
    """The row of RECORD that installers add."""
    return next(row for row in record.read_text().splitlines(keepends=True) if "/INSTALLER," in row)
