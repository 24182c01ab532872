"""Environments from locks and from an index, made by the real uv and pip with tiny wheels."""

from __future__ import annotations

import hashlib
import os
import platform
import shutil
import subprocess
import sys
import sysconfig
from functools import partial
from typing import TYPE_CHECKING

import pytest

from axletree.core.errors import IntegrityError, StageError
from axletree.host.interpreters import find_interpreter
from axletree.host.venvs import create_venv, forget_wheels, install_with_pip, install_with_uv, installed, wheel_shelf
from axletree.recipe.locks import LockedWheel, make_lock, render_lock
from support.index_server import write_wheel

if TYPE_CHECKING:
    from pathlib import Path

    from axletree.core.records import Interpreter

PYTHON = f"{sys.version_info[0]}.{sys.version_info[1]}{getattr(sys, 'abiflags', '').strip('dm')}"


@pytest.fixture(scope="module")
def interpreter() -> Interpreter:
    return find_interpreter(PYTHON, environ=os.environ)


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("uv-cache")


def locked(folder: Path, *wheels: Path) -> Path:
    """A folder with wheels and the lock of them."""
    entries = [
        LockedWheel(
            name=wheel.name.split("-")[0].replace("_", "-"),
            version=wheel.name.split("-")[1],
            filename=wheel.name,
            size=wheel.stat().st_size,
            sha256=hashlib.sha256(wheel.read_bytes()).hexdigest(),
        )
        for wheel in wheels
    ]
    lock = make_lock((), python=PYTHON, platform=sysconfig.get_platform(), wheels=entries)
    (folder / "pylock.test.toml").write_text(render_lock(lock))
    return folder


@pytest.fixture
def lock_folder(tmp_path: Path) -> Path:
    folder = tmp_path / "locked"
    one = write_wheel(folder, "tiny-one", "1.0+cpu", requires=("tiny-two",), script="tiny", body=MAIN)
    two = write_wheel(folder, "tiny-two", "2.0")
    return locked(folder, one, two)


MAIN = "import sys\nversion = '1.0+cpu'\ndef main():\n    print(version, sys.prefix)\n"


def run(venv: Path, code: str) -> str:
    command = [str(venv / "bin" / "python"), "-I", "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def index(folder: Path, *wheels: Path) -> str:
    """A file index of wheels (PEP 503)."""
    for wheel in wheels:
        page = folder / wheel.name.split("-")[0].replace("_", "-") / "index.html"
        page.parent.mkdir(parents=True, exist_ok=True)
        digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
        page.write_text(f'<a href="{wheel.as_uri()}#sha256={digest}">{wheel.name}</a>')
    return folder.as_uri()


def test_an_environment_holds_exactly_its_lock(
    tmp_path: Path, interpreter: Interpreter, cache: Path, lock_folder: Path
) -> None:
    venv = tmp_path / "made" / "venv"
    create_venv(
        venv,
        interpreter=interpreter,
        uv_cache=cache,
        environ=os.environ | {"PIP_INDEX_URL": "https://nowhere.example", "UV_INDEX_URL": "https://nowhere.example"},
        lock_folder=lock_folder,
    )
    assert installed(venv) == {"tiny-one": "1.0+cpu", "tiny-two": "2.0"}
    assert run(venv, "import tiny_one; print(tiny_one.version)") == "1.0+cpu"
    assert run(venv, "import platform; print(platform.python_version())") == platform.python_version()
    assert [path.name for path in venv.parent.iterdir()] == ["venv"]


def test_an_environment_made_by_uv_can_be_moved(
    tmp_path: Path, interpreter: Interpreter, cache: Path, lock_folder: Path
) -> None:
    create_venv(tmp_path / "a", interpreter=interpreter, uv_cache=cache, environ=os.environ, lock_folder=lock_folder)
    (tmp_path / "a").rename(tmp_path / "b")
    done = subprocess.run([tmp_path / "b" / "bin" / "tiny"], capture_output=True, text=True, check=True)
    assert done.stdout == f"1.0+cpu {tmp_path / 'b'}\n"


def test_the_same_wheels_in_another_folder_are_not_unpacked_again(
    tmp_path: Path, interpreter: Interpreter, lock_folder: Path
) -> None:
    cache = tmp_path / "cache"
    unpacked = []
    for number in range(2):
        folder = lock_folder.rename(tmp_path / f"locked-{number}")
        create_venv(
            tmp_path / f"venv-{number}",
            interpreter=interpreter,
            uv_cache=cache,
            environ=os.environ,
            lock_folder=folder,
            share=True,
        )
        unpacked.append(sorted((cache / "archive-v0").iterdir()))
        lock_folder = folder
    assert unpacked[0] == unpacked[1]
    module = next((tmp_path / "venv-0").glob("lib/*/site-packages/tiny_two/__init__.py"))
    assert module.stat().st_nlink > 1


def test_who_writes_into_an_environment_changes_no_other(
    tmp_path: Path, interpreter: Interpreter, lock_folder: Path
) -> None:
    """Unless it was asked to share files with uv's cache."""
    cache = tmp_path / "cache"
    for name in ("first", "second"):
        create_venv(
            tmp_path / name, interpreter=interpreter, uv_cache=cache, environ=os.environ, lock_folder=lock_folder
        )
        module = next((tmp_path / name).glob("lib/*/site-packages/tiny_two/__init__.py"))
        assert "poison" not in module.read_text()
        with module.open("a") as file:
            file.write("poison = 1\n")


def test_a_wheel_that_was_damaged_is_taken_anew_once_it_is_whole_again(
    tmp_path: Path, interpreter: Interpreter, lock_folder: Path
) -> None:
    """The store puts a fresh file in the place of a damaged one; uv's cache still has another name of the old one."""
    cache = tmp_path / "cache"
    (wheel,) = lock_folder.glob("tiny_two*.whl")
    whole = wheel.read_bytes()
    make = partial(create_venv, interpreter=interpreter, uv_cache=cache, environ=os.environ, lock_folder=lock_folder)
    make(tmp_path / "first")
    wheel.write_bytes(whole[:-100])
    shutil.rmtree(cache / "archive-v0")
    shutil.rmtree(next(cache.glob("wheels-v*")))
    with pytest.raises(StageError):
        make(tmp_path / "second")
    wheel.unlink()
    wheel.write_bytes(whole)
    make(tmp_path / "second")
    assert installed(tmp_path / "second") == installed(tmp_path / "first")


def test_wheels_that_nobody_wants_leave_uvs_cache(tmp_path: Path, interpreter: Interpreter, lock_folder: Path) -> None:
    cache = tmp_path / "cache"
    make = partial(create_venv, interpreter=interpreter, uv_cache=cache, environ=os.environ, lock_folder=lock_folder)
    make(tmp_path / "first")
    wanted, other = sorted(lock_folder.glob("*.whl"))
    assert other.stat().st_nlink == 2
    assert len(list((cache / "archive-v0").iterdir())) == 2
    forget_wheels(cache, in_use={hashlib.sha256(wanted.read_bytes()).hexdigest()}.__contains__)
    assert other.stat().st_nlink == 1
    assert [kept.samefile(wanted) for kept in wheel_shelf(cache).glob("*/*")] == [True]
    make(tmp_path / "second")
    assert installed(tmp_path / "second") == installed(tmp_path / "first")


def test_an_empty_lock_gives_an_empty_environment(tmp_path: Path, interpreter: Interpreter, cache: Path) -> None:
    (tmp_path / "locked").mkdir()
    folder = locked(tmp_path / "locked")
    create_venv(tmp_path / "v", interpreter=interpreter, uv_cache=cache, environ=os.environ, lock_folder=folder)
    assert installed(tmp_path / "v") == {}


def test_a_wheel_that_is_not_the_locked_one_is_refused(
    tmp_path: Path, interpreter: Interpreter, lock_folder: Path
) -> None:
    write_wheel(lock_folder, "tiny-two", "2.0", body="other = 1\n")
    with pytest.raises(IntegrityError, match=r"(?i)hash"):
        create_venv(
            tmp_path / "v",
            interpreter=interpreter,
            uv_cache=tmp_path / "cache",
            environ=os.environ,
            lock_folder=lock_folder,
        )
    assert {path.name for path in tmp_path.iterdir()} <= {"cache", "cache-wheels", "locked"}


def test_missing_wheels_are_all_named(tmp_path: Path, interpreter: Interpreter, cache: Path, lock_folder: Path) -> None:
    for wheel in lock_folder.glob("*.whl"):
        wheel.unlink()
    with pytest.raises(IntegrityError) as caught:
        create_venv(
            tmp_path / "v", interpreter=interpreter, uv_cache=cache, environ=os.environ, lock_folder=lock_folder
        )
    assert len(caught.value.problems) == 2


@pytest.fixture
def empty(tmp_path: Path, interpreter: Interpreter, cache: Path) -> Path:
    venv = tmp_path / "empty"
    create_venv(venv, interpreter=interpreter, uv_cache=cache, environ=os.environ)
    return venv


def install(client: str, venv: Path, *requirements: str, url: str, links: Path, cache: Path) -> dict[str, str]:
    environ = os.environ | {"PIP_FIND_LINKS": str(links.parent / "elsewhere"), "UV_FIND_LINKS": "elsewhere"}
    if client == "uv":
        return install_with_uv(venv, requirements, index_urls=[url], find_links=links, cache=cache, environ=environ)
    return install_with_pip(venv, requirements, index_urls=[url], find_links=links, environ=environ)


@pytest.mark.parametrize("client", ["uv", "pip"])
def test_clients_take_the_built_package_from_the_index_and_the_rest_from_the_folder(
    tmp_path: Path, empty: Path, cache: Path, client: str
) -> None:
    links = tmp_path / "links"
    write_wheel(links, "dep", "1.0+cpu")
    built = write_wheel(tmp_path / "dist", "built", "3.0+torch.2.13.cpu", requires=("dep==1.0",))
    found = install(client, empty, "built", url=index(tmp_path / "simple", built), links=links, cache=cache)
    assert found == {"built": "3.0+torch.2.13.cpu", "dep": "1.0+cpu"}


@pytest.mark.parametrize("client", ["uv", "pip"])
def test_another_torch_is_never_taken(tmp_path: Path, empty: Path, cache: Path, client: str) -> None:
    links = tmp_path / "links"
    write_wheel(links, "dep", "1.0")
    write_wheel(tmp_path / "elsewhere", "dep", "1.0+cpu")
    built = write_wheel(tmp_path / "dist", "built", "3.0", requires=("dep==1.0+cpu",))
    with pytest.raises(StageError) as caught:
        install(client, empty, "built", url=index(tmp_path / "simple", built), links=links, cache=cache)
    assert "dep==1.0+cpu" in str(caught.value)
    assert installed(empty) == {}


@pytest.mark.parametrize("client", ["uv", "pip"])
def test_a_package_rebuilt_in_place_is_taken_anew(
    tmp_path: Path, interpreter: Interpreter, cache: Path, client: str
) -> None:
    links = tmp_path / "links"
    links.mkdir()
    for word in ("old", "new"):
        built = write_wheel(tmp_path / "dist", "built", "3.0", body=f"word = {word!r}\n")
        url = index(tmp_path / "simple", built)
        venv = tmp_path / word
        create_venv(venv, interpreter=interpreter, uv_cache=cache, environ=os.environ)
        install(client, venv, "built==3.0", url=url, links=links, cache=cache)
        assert run(venv, "import built; print(built.word)") == word
