"""pip and uv install from the locks that ``axletree lock`` writes, as they are."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from packaging.pylock import Pylock

from axletree.app.lock import lock_recipe
from axletree.app.lock_context import LockContext
from axletree.recipe.locks import parse_lock
from axletree.recipe.settings import Settings
from support.index_server import Server, make_wheel, serve, write_wheel

if TYPE_CHECKING:
    from collections.abc import Iterator

PYTHON = f"{sys.version_info[0]}.{sys.version_info[1]}{getattr(sys, 'abiflags', '').strip('dm')}"
UV = str(Path(sys.executable).parent / "uv")
RECIPE = f"""
name = "tiny"
version = "1.0"
source = {{ path = "src" }}
[axes]
python = ["{PYTHON}"]
[environments.build]
requires = ["REQUIRED"]
[stages.build]
action = "build"
axes = ["python"]
environment = "build"
[packages.tiny]
from = "build"
"""
COMMANDS = {
    "uv pip sync": [UV, "pip", "sync", "--python=PY", "--no-index", "LOCK"],
    "uv pip install": [UV, "pip", "install", "--python=PY", "--no-index", "-r", "LOCK"],
    "pip install": [sys.executable, "-m", "pip", "--python=PY", "install", "--no-index", "-r", "LOCK"],
}


class Place:
    """A project, an index and a folder of wheels."""

    def __init__(self, folder: Path, server: Server) -> None:
        self.folder, self.server = folder, server
        (folder / "links").mkdir()
        (folder / "src").mkdir()
        variables = {"PIP_CONFIG_FILE": "/dev/null", "PIP_INDEX_URL": f"{server.address}/simple"}
        variables |= {"PIP_FIND_LINKS": str(folder / "links"), "UV_CACHE_DIR": str(folder / "uv")}
        self.environ = {**os.environ, **variables}

    def lock(self, required: str, *, login: str = "") -> Path:
        """The lock of an environment."""
        recipe = self.folder / "tiny.toml"
        recipe.write_text(RECIPE.replace("REQUIRED", required))
        index = f"{self.server.address}/simple".replace("//", f"//{login}")
        context = LockContext(
            environ=self.environ | {"PIP_INDEX_URL": index},
            home=self.folder,
            cwd=self.folder,
            settings=Settings(),
            store=self.folder,
        )
        (file,) = lock_recipe(str(recipe), context)
        Pylock.from_dict(tomllib.loads(Path(file.path).read_text())).validate()
        return Path(file.path)

    def install(self, client: str, lock: Path) -> tuple[int, str, set[str]]:
        """Exit code, what was said, and what an environment has after a client installed a lock into it."""
        venv = self.folder / client.replace(" ", "-")
        subprocess.run([UV, "venv", "-q", "--clear", f"--python={sys.executable}", str(venv)], check=True)
        python = str(venv / "bin/python")
        words = [word.replace("PY", python).replace("LOCK", str(lock)) for word in COMMANDS[client]]
        # Nothing but the lock says where a wheel is.
        environ = {name: value for name, value in self.environ.items() if not name.startswith(("PIP_", "UV_"))}
        environ |= {"PIP_CONFIG_FILE": "/dev/null", "UV_NO_CONFIG": "1", "UV_NO_CACHE": "1", "PIP_NO_CACHE_DIR": "1"}
        done = subprocess.run(words, capture_output=True, text=True, check=False, env=environ, cwd=self.folder)
        listed = subprocess.run(
            [UV, "pip", "freeze", f"--python={python}"], capture_output=True, text=True, check=True, env=environ
        ).stdout
        return done.returncode, done.stderr + done.stdout, {line.partition(" @")[0] for line in listed.splitlines()}


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Place]:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with serve() as server:
        yield Place(tmp_path, server)


@pytest.mark.parametrize("client", COMMANDS)
def test_wheels_of_an_index_are_installed_from_the_lock_alone(place: Place, client: str) -> None:
    for name, version, requires in (("far", "1.0", ("gpu-lib",)), ("gpu-lib", "2.1+cpu", ())):
        file, data = make_wheel(name, version, requires=requires)
        place.server.add_project(name, {file: data})
        place.server.files[f"/files/{file.replace('+', '%2B')}"] = data
    lock = place.lock("far")
    code, said, has = place.install(client, lock)
    assert code == 0, said
    assert {line.partition("==")[0] for line in has} == {"far", "gpu-lib"}


@pytest.mark.parametrize("client", COMMANDS)
def test_wheels_of_a_folder_are_installed_from_beside_the_lock(place: Place, client: str) -> None:
    wheel = write_wheel(place.folder / "links", "near", "1.0")
    file, data = make_wheel("far", "1.0", requires=("near",))
    place.server.add_project("far", {file: data})
    lock = place.lock("far")
    assert str(place.folder) not in lock.read_text()
    code, said, has = place.install(client, lock)
    assert code != 0
    assert wheel.name in said
    assert not has
    (lock.parent / wheel.name).write_bytes(wheel.read_bytes())
    code, said, has = place.install(client, lock)
    assert code == 0, said
    assert {line.partition("==")[0] for line in has} == {"far", "near"}


@pytest.mark.parametrize("login", ["", "somebody:hunter2@"])
def test_an_address_holds_no_credentials(place: Place, login: str) -> None:
    file, data = make_wheel("far", "1.0")
    place.server.add_project("far", {file: data})
    text = place.lock("far", login=login).read_text()
    (wheel,) = parse_lock(text, file="lock").wheels
    assert wheel.url == f"{place.server.address}/files/{file}"
    assert "hunter2" not in text


def test_an_address_with_a_query_is_left_out(place: Place) -> None:
    """It may be signed for one user, or for a minute."""
    file, data = make_wheel("far", "1.0")
    place.server.add_project("far", {file: data})
    page, end = "/simple/far/", b'", "hashes'
    listing = place.server.files[page]
    place.server.files[page] = listing.replace(file.encode() + end, file.encode() + b"?token=hunter2" + end)
    assert place.server.files[page] != listing
    place.server.files[f"/files/{file}?token=hunter2"] = data
    text = place.lock("far").read_text()
    (wheel,) = parse_lock(text, file="lock").wheels
    assert (wheel.url, wheel.filename) == (None, file)
    assert "hunter2" not in text
