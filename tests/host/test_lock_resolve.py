"""Resolution with the real uv: what is locked, from where, and what can never be locked instead."""

from __future__ import annotations

import hashlib
import os
import sys
import sysconfig
from typing import TYPE_CHECKING

import msgspec
import pytest
from packaging.tags import sys_tags

from axletree.core.errors import HostError, RecipeError
from axletree.host.fetch import download
from axletree.host.indexes import IndexSettings
from axletree.host.interpreters import find_interpreter
from axletree.host.resolve import resolve_environment, wheel_tags
from support.index_server import Server, make_wheel, serve, write_wheel

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from axletree.core.records import Interpreter
    from axletree.recipe.locks import PyLock

PYTHON = f"{sys.version_info[0]}.{sys.version_info[1]}{getattr(sys, 'abiflags', '').strip('dm')}"
CP = f"cp{sys.version_info[0]}{sys.version_info[1]}"
"""The tag of this interpreter."""


@pytest.fixture(scope="module")
def interpreter() -> Interpreter:
    return find_interpreter(PYTHON, environ=os.environ)


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with serve() as running:
        yield running


class Resolver:
    """Resolves with one uv cache; a place is a folder or an index."""

    def __init__(self, interpreter: Interpreter, cache: Path) -> None:
        self.interpreter = interpreter
        self.keep = cache / "downloads"
        self.notes: list[str] = []
        self.environ = {**os.environ, "UV_CACHE_DIR": str(cache), "UV_HTTP_RETRIES": "0", "UV_INDEX_URL": "http://no"}

    def __call__(
        self,
        *requires: str,
        links: Path | None = None,
        index: str | None = None,
        more: tuple[str, ...] = (),
        extra: tuple[str, ...] = (),
        previous: PyLock | None = None,
    ) -> PyLock:
        settings = IndexSettings(
            index_url=index, extra_index_urls=more, find_links=(str(links),) if links is not None else ()
        )
        return resolve_environment(
            requires,
            self.interpreter,
            settings,
            python=PYTHON,
            environ=self.environ,
            extra_indexes=extra,
            previous=previous,
            keep=self.keep,
            note=self.notes.append,
        )


@pytest.fixture
def resolve(interpreter: Interpreter, tmp_path: Path) -> Resolver:
    return Resolver(interpreter, tmp_path / "cache")


def own_requests(server: Server) -> list[str]:
    """Methods of the requests that uv did not make."""
    return [method for method, _, headers in server.requests if headers["user-agent"] == "axletree"]


def pins(lock: PyLock) -> dict[str, str]:
    return {wheel.name: wheel.version for wheel in lock.wheels}


def test_a_folder_of_wheels_is_enough_and_sizes_and_digests_are_filled(resolve: Resolver, tmp_path: Path) -> None:
    one = write_wheel(tmp_path / "w", "tiny-one", "1.0", requires=("tiny-two>=2",))
    write_wheel(tmp_path / "w", "tiny-two", "1.0")
    write_wheel(tmp_path / "w", "tiny-two", "2.5")
    lock = resolve("tiny_one", links=tmp_path / "w")
    assert pins(lock) == {"tiny-one": "1.0", "tiny-two": "2.5"}
    assert lock.requires == ("tiny_one",)
    assert lock.platform == sysconfig.get_platform()
    assert lock.wheels[0].filename == one.name
    assert lock.wheels[0].size == one.stat().st_size
    assert len(lock.wheels[0].sha256) == 64


def test_of_several_builds_of_a_wheel_the_latest_is_locked(resolve: Resolver, tmp_path: Path) -> None:
    for build in ("", "2-", "10-", "10b-"):
        plain = write_wheel(tmp_path / "w", "tiny-one", "1.0", body=f"build = {build!r}\n")
        plain.rename(plain.with_name(f"tiny_one-1.0-{build}py3-none-any.whl"))
    (wheel,) = resolve("tiny-one", links=tmp_path / "w").wheels
    assert wheel.filename == "tiny_one-1.0-10b-py3-none-any.whl"


@pytest.mark.parametrize("as_json", [True, False])
def test_an_index_with_or_without_sizes(resolve: Resolver, server: Server, as_json: bool) -> None:  # noqa: FBT001
    name, data = make_wheel("tiny-one", "1.0")
    server.add_project("tiny-one", {name: data}, as_json=as_json)
    (wheel,) = resolve("tiny-one", index=f"{server.address}/simple").wheels
    assert (wheel.filename, wheel.size) == (name, len(data))
    assert "GET" not in own_requests(server)
    assert not resolve.notes


def test_a_wheel_is_downloaded_only_where_nobody_tells_its_size_and_then_kept(
    resolve: Resolver, server: Server, tmp_path: Path
) -> None:
    name, data = make_wheel("tiny-one", "1.0")
    server.add_project("tiny-one", {name: data}, as_json=False)
    server.heads = False
    (wheel,) = resolve("tiny-one", index=f"{server.address}/simple").wheels
    assert (wheel.sha256, wheel.size) == (hashlib.sha256(data).hexdigest(), len(data))
    assert own_requests(server) == ["HEAD", "GET"]
    (note,) = resolve.notes
    assert note.startswith(f"downloading {server.address}/files/{name} ({len(data)} B)")
    server.files.clear()
    download(
        f"{server.address}/files/{name}",
        tmp_path / name,
        sha256=wheel.sha256,
        size=wheel.size,
        partial_folder=resolve.keep,
    )
    assert (tmp_path / name).read_bytes() == data
    assert not list(resolve.keep.glob("*.partial"))


def test_the_best_wheel_for_the_interpreter_is_taken(resolve: Resolver, tmp_path: Path) -> None:
    here = next(iter(sys_tags()))
    for tag in ("py3-none-any", str(here), "cp39-cp39-linux_x86_64", f"{CP}-{CP}-win_amd64"):
        write_wheel(tmp_path / "w", "tiny-one", "1.0", tag=tag)
    (wheel,) = resolve("tiny-one", links=tmp_path / "w").wheels
    assert wheel.filename == f"tiny_one-1.0-{here}.whl"


def test_the_tags_of_the_running_interpreter_are_those_of_packaging(interpreter: Interpreter) -> None:
    assert wheel_tags(interpreter) == list(sys_tags())


def test_a_local_version_wins_over_the_plain_one_of_an_index(resolve: Resolver, server: Server, tmp_path: Path) -> None:
    name, data = make_wheel("torch", "2.13.0")
    server.add_project("torch", {name: data})
    write_wheel(tmp_path / "w", "torch", "2.13.0+cpu")
    lock = resolve("torch==2.13.0+cpu", links=tmp_path / "w", index=f"{server.address}/simple")
    assert pins(lock) == {"torch": "2.13.0+cpu"}


def test_a_local_version_is_never_met_by_another(resolve: Resolver, server: Server, tmp_path: Path) -> None:
    write_wheel(tmp_path / "w", "torch", "2.13.0")
    write_wheel(tmp_path / "w", "torch", "2.13.0+cu130")
    name, data = make_wheel("torch", "2.13.0")
    server.add_project("torch", {name: data})
    with pytest.raises(RecipeError) as caught:
        resolve(
            "torch==2.13.0+cpu",
            links=tmp_path / "w",
            index=f"{server.address}/simple",
            extra=(f"{server.address}/pytorch",),
        )
    text = str(caught.value)
    assert "torch==2.13.0+cpu" in text
    assert f"a second search, which included {server.address}/pytorch" in text
    assert "╰" not in text
    assert caught.value.exit_code == 2


def test_a_backends_index_is_asked_only_for_what_nobody_else_has(
    resolve: Resolver, server: Server, tmp_path: Path
) -> None:
    for root, name, version in [
        ("/simple", "tiny-one", "1.0"),
        ("/simple", "torch", "2.13.0"),
        ("/pytorch", "tiny-one", "9.0"),
        ("/pytorch", "torch", "2.13.0+cpu"),
    ]:
        server.add_project(name, dict([make_wheel(name, version)]), root=root)
    places = {"index": f"{server.address}/simple", "extra": (f"{server.address}/pytorch",)}
    lock = resolve("torch==2.13.0+cpu", "tiny-one", **places)  # type: ignore[arg-type]
    assert pins(lock) == {"tiny-one": "1.0", "torch": "2.13.0+cpu"}
    server.requests.clear()
    resolve.environ["UV_CACHE_DIR"] = str(tmp_path / "another")
    assert pins(resolve("tiny-one", **places)) == {"tiny-one": "1.0"}  # type: ignore[arg-type]
    assert not any(path.startswith("/pytorch") for _, path, _ in server.requests)


def test_who_wants_no_index_gets_none(resolve: Resolver, server: Server, tmp_path: Path) -> None:
    (tmp_path / "w").mkdir()
    with pytest.raises(RecipeError, match="tiny-one was not found"):
        resolve("tiny-one", links=tmp_path / "w", extra=(f"{server.address}/pytorch",))
    assert not server.requests


def test_further_indexes_are_as_good_as_the_first(resolve: Resolver, server: Server) -> None:
    server.add_project("tiny-one", dict([make_wheel("tiny-one", "1.0")]))
    server.add_project("tiny-one", dict([make_wheel("tiny-one", "1.5")]), root="/more")
    lock = resolve("tiny-one", index=f"{server.address}/simple", more=(f"{server.address}/more",))
    assert pins(lock) == {"tiny-one": "1.5"}


def test_versions_of_a_previous_lock_are_kept_where_they_fit(resolve: Resolver, tmp_path: Path) -> None:
    write_wheel(tmp_path / "w", "tiny-one", "1.0")
    write_wheel(tmp_path / "w", "tiny-two", "1.0")
    old = resolve("tiny-one", "tiny-two", links=tmp_path / "w")
    write_wheel(tmp_path / "w", "tiny-one", "2.0")
    write_wheel(tmp_path / "w", "tiny-two", "2.0")
    kept = resolve("tiny-one", "tiny-two>1", links=tmp_path / "w", previous=old)
    assert pins(kept) == {"tiny-one": "1.0", "tiny-two": "2.0"}
    assert pins(resolve("tiny-one", "tiny-two>1", links=tmp_path / "w"))["tiny-one"] == "2.0"


def test_a_conflict_is_one_readable_error(resolve: Resolver, tmp_path: Path) -> None:
    write_wheel(tmp_path / "w", "tiny-one", "1.0", requires=("tiny-two<2",))
    write_wheel(tmp_path / "w", "tiny-two", "2.0")
    write_wheel(tmp_path / "w", "tiny-two", "1.0")
    with pytest.raises(RecipeError) as caught:
        resolve("tiny-one", "tiny-two>=2", links=tmp_path / "w")
    (problem,) = caught.value.problems
    assert "tiny-one" in problem.message
    assert "tiny-two>=2" in problem.message
    assert "error:" not in problem.message
    assert "cause:" not in problem.message


def test_a_source_distribution_is_not_built(resolve: Resolver, server: Server) -> None:
    server.add_project("tiny-one", {"tiny_one-1.0.tar.gz": b"x"})
    with pytest.raises(RecipeError, match=r"(?s)requirements cannot be satisfied.*wheel"):
        resolve("tiny-one", index=f"{server.address}/simple")


def test_an_index_that_does_not_answer_is_a_trouble_of_the_host(resolve: Resolver) -> None:
    with serve() as stopped:
        address = stopped.address
    with pytest.raises(HostError, match="a package index did not respond"):
        resolve("tiny-one", index=f"{address}/simple")


@pytest.mark.parametrize("text", ["tiny one", "-r /etc/passwd", "tiny @ https://h.example/tiny-1-py3-none-any.whl"])
def test_what_is_no_requirement_is_refused(resolve: Resolver, text: str) -> None:
    with pytest.raises(RecipeError, match="requirement"):
        resolve(text)


def test_an_interpreter_without_a_fitting_wheel(resolve: Resolver, interpreter: Interpreter, tmp_path: Path) -> None:
    write_wheel(tmp_path / "w", "tiny-one", "1.0", tag=str(next(iter(sys_tags()))))
    resolve.interpreter = msgspec.structs.replace(interpreter, version="3.9.1")
    with pytest.raises(RecipeError, match=r"no wheel for tiny-one 1\.0 is compatible with"):
        resolve("tiny-one", links=tmp_path / "w")
