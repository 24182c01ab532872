"""pip and uv as a shell finds them, configured to prefer an index with other files of the same names."""

from __future__ import annotations

import atexit
import ensurepip
import hashlib
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import zipfile
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pip
import pytest
import uv
from packaging.version import Version

from axletree.package.index import IndexFile, render_index
from support.index_server import make_wheel

if TYPE_CHECKING:
    from collections.abc import Iterable

CLIENTS = ("old pip", "pip", "uv")
"""The pip that came with this Python, the newest one, uv."""


class Rival(NamedTuple):
    """Files that nobody asked for."""

    folder: Path

    @property
    def address(self) -> str:
        return (self.folder / "simple").as_uri()


def put_root(folder: Path, wheels: Iterable[tuple[str, bytes]]) -> Path:
    """An index root with wheels, given as file name and content."""
    files = []
    folder.mkdir(parents=True, exist_ok=True)
    for name, data in wheels:
        (folder / name).write_bytes(data)
        files.append(IndexFile(filename=name, size=len(data), sha256=hashlib.sha256(data).hexdigest()))
    for page, text in render_index(files).items():
        (folder / page).parent.mkdir(parents=True, exist_ok=True)
        (folder / page).write_bytes(text)
    return folder


def rival(folder: Path, *names: tuple[str, str], more: Iterable[tuple[str, bytes]] = ()) -> Rival:
    """An index that has the same version of each, one with a higher build tag, and a higher version."""
    wheels = [*more]
    for name, version in names:
        higher = f"{Version(version).base_version}.1"
        filename, data = make_wheel(name, version, body="who = 'other'\n")
        parts = filename.split("-")
        wheels += [(filename, data), ("-".join([*parts[:2], "9", *parts[2:]]), data)]
        wheels.append(make_wheel(name, higher, body="who = 'other'\n"))
    return Rival(put_root(folder, wheels))


def run_printed(command: str, client: str, folder: Path, against: Rival) -> subprocess.CompletedProcess[str]:
    """Run a command line as it was printed, by a shell, in an environment of its own in ``folder / "venv"``.

    All places that a user can configure name the rival: the index, a further one, files without an index.
    """
    venv, config = folder / "venv", folder / "pip.conf"
    environ = {name: value for name, value in os.environ.items() if not name.startswith(("PIP_", "UV_", "VIRTUAL_ENV"))}
    environ |= {"UV_CACHE_DIR": str(folder / "uv"), "UV_NO_CONFIG": "1"}
    if not venv.exists():
        make = [uv.find_uv_bin(), "venv", "-q", "--python", sys.executable, str(venv)]
        subprocess.run(make, env=environ, check=True)
        _programs(folder / "bin", client, venv)
    links = str(against.folder)
    config.write_text(
        f"[global]\nindex-url = {against.address}\nextra-index-url = {against.address}\nfind-links = {links}\n"
    )
    environ |= {"PATH": f"{folder / 'bin'}:{os.environ['PATH']}", "VIRTUAL_ENV": str(venv)}
    environ |= {"PIP_CONFIG_FILE": str(config), "PIP_FIND_LINKS": links, "PIP_EXTRA_INDEX_URL": against.address}
    environ |= {"PIP_CACHE_DIR": str(folder / "pip"), "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    environ |= {"UV_DEFAULT_INDEX": against.address, "UV_INDEX": against.address, "UV_FIND_LINKS": links}
    return subprocess.run(["sh", "-c", command], env=environ, cwd="/", capture_output=True, text=True, check=False)


def site_of(folder: Path) -> Path:
    """Where what :func:`run_printed` installs goes."""
    return next((folder / "venv").glob("lib/python*/site-packages"))


def who(folder: Path) -> dict[str, str]:
    """Module in the environment -> what the wheel that it is of says of itself: ``ours``, ``other``."""
    texts = {path.parent.name: path.read_text() for path in site_of(folder).glob("*/__init__.py")}
    return {name: text.split("'")[1] for name, text in texts.items() if text.startswith("who = ")}


@cache
def _only_pip(client: str) -> Path:
    """A folder with a pip alone: the one that this Python brings, unpacked, or the newest."""
    folder = Path(tempfile.mkdtemp(prefix="axletree-pip-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    if client == "pip":
        (folder / "pip").symlink_to(Path(pip.__file__).parent)
        return folder
    wheel = next((Path(ensurepip.__file__).parent / "_bundled").glob("pip-*.whl"), None)
    if wheel is None:
        pytest.skip("this Python brings no pip of its own")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)
    return folder


def _programs(folder: Path, client: str, venv: Path) -> None:
    """``pip`` and ``uv`` for PATH."""
    folder.mkdir()
    lines = {"uv": f'exec {shlex.quote(uv.find_uv_bin())} "$@"'}
    if client != "uv":
        path = shlex.quote(str(_only_pip(client)))
        lines["pip"] = f'PYTHONPATH={path} exec {shlex.quote(str(venv / "bin/python"))} -m pip "$@"'
    for name, line in lines.items():
        program = folder / name
        program.write_text(f"#!/bin/sh\n{line}\n")
        program.chmod(0o755)
