"""Indexes as JSON, HTML and folders are read alike, and a locked file is found wherever it lies."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import pytest

from axletree.core.errors import HostError, IntegrityError
from axletree.host.indexes import IndexSettings
from axletree.host.simple_api import RemoteFile, find_file, list_files, parse_html, parse_json
from support.index_server import Server, make_wheel, serve, write_wheel

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

NAME, WHEEL = make_wheel("tiny-one", "1.0+cpu")
DIGEST = hashlib.sha256(WHEEL).hexdigest()
NOWHERE = IndexSettings(index_url=None)


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with serve() as running:
        yield running


def index(server: Server) -> IndexSettings:
    return IndexSettings(index_url=f"{server.address}/simple")


@pytest.mark.parametrize("as_json", [True, False])
def test_json_and_html_give_the_same_file(server: Server, as_json: bool) -> None:  # noqa: FBT001 (a parameter)
    server.add_project("tiny-one", {NAME: WHEEL}, as_json=as_json)
    (file,) = list_files("Tiny_One", index(server))
    assert file == RemoteFile(
        filename=NAME, url=f"{server.address}/files/{NAME}", sha256=DIGEST, size=len(WHEEL) if as_json else None
    )
    assert "v1+json" in server.requests[0][2]["accept"]


def test_a_project_that_an_index_does_not_know_is_no_error(server: Server) -> None:
    assert list_files("absent", index(server)) == ()


def test_other_statuses_are_errors(server: Server) -> None:
    server.statuses = [401]
    with pytest.raises(HostError, match="status 401") as caught:
        list_files("tiny-one", index(server))
    assert "netrc" in (caught.value.problems[0].hint or "")


def test_a_page_that_says_json_and_is_none_is_an_error(server: Server) -> None:
    server.add_project("tiny-one", {NAME: WHEEL})
    server.files["/simple/tiny-one/"] = b"{}"
    with pytest.raises(HostError, match="not a package index page"):
        list_files("tiny-one", index(server))


def test_an_index_that_is_a_folder(tmp_path: Path) -> None:
    write_wheel(tmp_path / "files", "tiny-one", "1.0+cpu")
    page = tmp_path / "simple" / "tiny-one" / "index.html"
    page.parent.mkdir(parents=True)
    page.write_text(f'<a href="../../files/{NAME.replace("+", "%2B")}#sha256={DIGEST}">x</a>')
    (file,) = list_files("tiny.one", IndexSettings(index_url=(tmp_path / "simple").as_uri()))
    assert (file.filename, file.sha256, file.size) == (NAME, DIGEST, len(WHEEL))
    with pytest.raises(HostError, match="does not exist"):
        list_files("tiny-one", IndexSettings(index_url=(tmp_path / "none").as_uri()))


def test_find_links_folders_and_pages(tmp_path: Path) -> None:
    folder = tmp_path / "wheels"
    wheel = write_wheel(folder, "tiny-one", "1.0+cpu")
    write_wheel(folder, "tiny-one-more", "1.0")
    (folder / "notes.txt").write_text("")
    page = folder / "page.html"
    page.write_text(f'<a href="{wheel.name}">x</a> <a href="notes.txt">y</a>')
    for place in (folder, page):
        (file,) = list_files("tiny-one", IndexSettings(index_url=None, find_links=(str(place),)))
        assert file.filename == NAME
    with pytest.raises(HostError, match="does not exist"):
        list_files("tiny-one", IndexSettings(index_url=None, find_links=(str(tmp_path / "none"),)))


def test_a_local_place_with_the_right_content_is_taken_without_asking_the_network(
    server: Server, tmp_path: Path
) -> None:
    server.add_project("tiny-one", {NAME: WHEEL})
    write_wheel(tmp_path, "tiny-one", "1.0+cpu")
    settings = IndexSettings(index_url=f"{server.address}/simple", find_links=(str(tmp_path),))
    assert find_file(NAME, DIGEST, settings).url.startswith("file:")
    assert not server.requests


def test_a_local_file_with_other_content_is_passed_over(server: Server, tmp_path: Path) -> None:
    server.add_project("tiny-one", {NAME: WHEEL})
    (tmp_path / NAME).write_bytes(b"other")
    settings = IndexSettings(index_url=f"{server.address}/simple", find_links=(str(tmp_path),))
    assert find_file(NAME, DIGEST, settings).url.startswith(server.address)


def test_further_indexes_are_asked_last(server: Server) -> None:
    server.add_project("tiny-one", {NAME: WHEEL})
    file = find_file(NAME, DIGEST, NOWHERE, extra=[f"{server.address}/simple"])
    assert file.sha256 == DIGEST


def test_an_index_without_digests_is_believed_last(server: Server) -> None:
    server.add_project("tiny-one", {NAME: WHEEL})
    server.files["/bare/tiny-one/"] = f'<a href="/bare/{NAME}">x</a>'.encode()
    server.types["/bare/tiny-one/"] = "text/html"
    bare = IndexSettings(index_url=f"{server.address}/bare")
    assert find_file(NAME, DIGEST, bare).url == f"{server.address}/bare/{NAME}"
    assert find_file(NAME, DIGEST, bare, extra=[f"{server.address}/simple"]).url == f"{server.address}/files/{NAME}"


def test_a_file_that_nothing_has_names_all_places_and_no_secret(server: Server, tmp_path: Path) -> None:
    _, other = make_wheel("tiny-one", "1.0+cpu", body="other = 1\n")
    server.add_project("tiny-one", {NAME: other})
    settings = IndexSettings(
        index_url=f"{server.address}/simple".replace("//", "//me:secret@"), find_links=(str(tmp_path / "none"),)
    )
    with pytest.raises(IntegrityError) as caught:
        find_file(NAME, DIGEST, settings, extra=[f"{server.address}/empty"])
    text = str(caught.value)
    assert "secret" not in text
    assert "does not exist" in text
    assert hashlib.sha256(other).hexdigest() in text
    assert f"{server.address}/empty: not found" in text
    assert "hint: " in text


def test_offline_asks_only_this_machine(server: Server, tmp_path: Path) -> None:
    server.add_project("tiny-one", {NAME: WHEEL})
    settings = IndexSettings(index_url=f"{server.address}/simple", find_links=(str(tmp_path),))
    with pytest.raises(HostError, match="skipped because --offline is set"):
        find_file(NAME, DIGEST, settings, offline=True)
    assert not server.requests


def test_pages_with_odd_links() -> None:
    page = (
        '<base href="https://files.example/d/"><a href="a-1-py3-none-any.whl#sha256=nonsense" data-yanked>'
        '<a href="b-1.tar.gz#md5=00" data-requires-python="&gt;=3.9"><a name="x"><a href="../">'
    )
    files = parse_html(page, base="https://h.example/simple/a/")
    assert [(file.filename, file.url, file.sha256, file.yanked, file.requires_python) for file in files] == [
        ("a-1-py3-none-any.whl", "https://files.example/d/a-1-py3-none-any.whl", None, True, None),
        ("b-1.tar.gz", "https://files.example/d/b-1.tar.gz", None, False, ">=3.9"),
    ]


def test_yanked_json_files_keep_their_mark() -> None:
    data = b'{"files": [{"filename": "a-1.tar.gz", "url": "a-1.tar.gz", "hashes": {}, "yanked": "broken"}]}'
    (file,) = parse_json(data, base="https://h.example/simple/a/")
    assert file.yanked == "broken"
    assert file.url == "https://h.example/simple/a/a-1.tar.gz"


def test_a_locked_sdist_with_a_dash_in_its_version_is_found_on_the_page_of_its_project(server: Server) -> None:
    data = b"an archive"
    server.add_project("cffi", {"cffi-1.0.2-2.tar.gz": data})
    settings = IndexSettings(index_url=f"{server.address}/simple")
    found = find_file("cffi-1.0.2-2.tar.gz", hashlib.sha256(data).hexdigest(), settings)
    assert found.url == f"{server.address}/files/cffi-1.0.2-2.tar.gz"


def test_a_folder_gives_the_files_of_the_project_alone(tmp_path: Path) -> None:
    names = ["foo-2-1.0.tar.gz", "foo-2.0.zip", "foo_2-1.1.tgz", "FOO-1.0.2-2.tar.gz", "foo-2.0.linux-x86_64.tar.gz"]
    for name in names:
        (tmp_path / name).touch()
    settings = IndexSettings(index_url=None, find_links=(str(tmp_path),))
    assert [file.filename for file in list_files("foo", settings)] == ["FOO-1.0.2-2.tar.gz", "foo-2.0.zip"]
    assert [file.filename for file in list_files("Foo.2", settings)] == ["foo-2-1.0.tar.gz", "foo_2-1.1.tgz"]
